"""Chains of symbols as numbers, and own times, against the plain definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree
from tests.core.judge.service import Rows


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Forests with siblings that overlap, touch or lie on other lanes."""
    rows = Rows()

    def node(start: int, end: int, lane: int, depth: int) -> None:
        rows.open(draw(st.sampled_from("abc")), Layer.OPERATOR, start, lane)
        low = start
        for _ in range(draw(st.integers(0, 3)) if depth and end > start else 0):
            low = draw(st.integers(low, end))
            node(low, draw(st.integers(low, end)), draw(st.sampled_from([lane, lane, 1 - lane, 2])), depth - 1)
        rows.close(end)

    for _ in range(draw(st.integers(1, 3))):
        low = draw(st.integers(0, 40))
        node(low, low + draw(st.integers(0, 40)), draw(st.integers(0, 1)), 2)
    return rows.tree()


@settings(max_examples=60)
@given(trees(), st.sets(st.sampled_from("abc")))
def test_equal_chains_of_shown_symbols_have_equal_numbers(tree: Tree, hidden: set[str]) -> None:
    names = [tree.trace.names[int(n)] for n in tree.trace.name]
    symbol = np.array([0 if name in hidden else ord(name) for name in names], dtype=np.int64)
    chains = [
        tuple(names[r] for r in [*reversed(tree.ancestors(row)), row] if names[r] not in hidden)
        for row in range(len(tree))
    ]
    number = tree.paths(symbol).tolist()
    assert all((number[a] == number[b]) == (chains[a] == chains[b]) for a in range(len(tree)) for b in range(a))


@settings(max_examples=60)
@given(trees())
def test_a_chain_may_begin_at_any_row_and_is_then_the_same_below_every_such_row(tree: Tree) -> None:
    top = np.arange(len(tree), dtype=np.int32)
    for row in range(len(tree)):
        if tree.parent[row] != ROOT and tree.parent[tree.parent[row]] != ROOT:
            top[row] = top[tree.parent[row]]
    names = [tree.trace.names[int(n)] for n in tree.trace.name]
    chains: list[tuple[str, ...]] = []
    for row in range(len(tree)):
        chain = [r for r in [*reversed(tree.ancestors(row)), row] if r >= top[row]]
        chains.append(tuple(names[r] for r in chain))
    number = tree.paths(np.array([ord(name) for name in names], dtype=np.int64), top).tolist()
    assert all((number[a] == number[b]) == (chains[a] == chains[b]) for a in range(len(tree)) for b in range(a))


@settings(max_examples=60)
@given(trees())
def test_own_time_is_what_no_child_on_the_same_lane_covers(tree: Tree) -> None:
    start, end, lane = tree.trace.start.tolist(), tree.trace.end.tolist(), tree.trace.lane.tolist()
    for row, own in enumerate(tree.self_time().tolist()):
        below = [c for c in tree.children(row) if lane[c] == lane[row]]
        covered = {t for c in below for t in range(start[c], end[c])}
        assert own == end[row] - start[row] - len(covered)
