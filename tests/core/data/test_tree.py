"""A tree keeps its own rules, and what it computes agrees with doing it by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.trace import NO_LINK, Lane, Layer, Origin, Trace
from teller_core.data.tree import ROOT, Tree


def trace_of(rows: list[tuple[int, int, int]]) -> Trace:
    """A trace of (start, dur, lane) rows."""
    n = len(rows)
    column = np.array(rows, dtype=np.int64).reshape(n, 3)
    return Trace(
        start=column[:, 0].copy(),
        dur=column[:, 1].copy(),
        name=np.zeros(n, np.int32),
        lane=column[:, 2].astype(np.int32),
        category=np.zeros(n, np.uint8),
        layer=np.full(n, Layer.OPERATOR, np.uint8),
        link=np.full(n, NO_LINK, np.int64),
        arg=np.full(n, -1, np.int32),
        names=["aten::mm"],
        lanes=[Lane("1", "1", False), Lane("1", "stream 7", True)],
        categories=["cpu_op"],
        args=[],
        origin=Origin("kineto", "unix"),
    )


def tree_of(rows: list[tuple[int, int, int]], parent: list[int], stop: list[int]) -> Tree:
    return Tree(trace_of(rows), np.array(parent, np.int32), np.array(stop, np.int32))


CALL = tree_of(
    [(0, 100, 0), (10, 30, 0), (15, 5, 0), (200, 40, 1), (50, 20, 0), (300, 10, 0)],
    [ROOT, 0, 1, 1, 0, ROOT],
    [5, 4, 3, 4, 5, 6],
)


def test_a_whole_tree_passes_its_own_check():
    CALL.check()
    assert CALL.depth().tolist() == [0, 1, 2, 2, 1, 0]
    assert CALL.children(0) == [1, 4]
    assert CALL.ancestors(3) == [1, 0]


def test_time_on_another_lane_is_not_taken_from_the_call_that_launched_it():
    assert CALL.self_time().tolist() == [50, 25, 5, 40, 20, 10]


def test_siblings_that_cross_are_not_counted_twice():
    crossed = tree_of([(0, 100, 0), (10, 40, 0), (30, 40, 0), (60, 5, 0)], [ROOT, 0, 0, 2], [4, 2, 4, 4])
    assert crossed.self_time().tolist() == [40, 40, 35, 5]


def test_siblings_that_cross_for_centuries_are_counted_exactly():
    long = 2**62
    crossed = tree_of([(0, 2 * long - 1, 0), *((at, long, 0) for at in range(4))], [ROOT, 0, 0, 0, 0], [5, 2, 3, 4, 5])
    assert crossed.self_time().tolist() == [long - 4, *[long] * 4]


def test_a_subtree_is_a_tree_of_its_own():
    below = CALL.subtree(1)
    below.check()
    assert below.parent.tolist() == [ROOT, 0, 0]
    assert below.stop.tolist() == [3, 2, 3]
    assert np.shares_memory(below.trace.start, CALL.trace.start)


@pytest.mark.parametrize(
    ("parent", "stop"),
    [
        ([0, 0, 1, 1, 0, ROOT], [5, 4, 3, 4, 5, 6]),
        ([ROOT, 0, 1, 1, 0, ROOT], [5, 4, 3, 4, 5, 5]),
        ([ROOT, 0, 1, 1, 0, ROOT], [4, 5, 3, 4, 5, 6]),
        ([ROOT, 0, 0, 0, 0, 1], [6, 6, 3, 4, 5, 6]),
    ],
)
def test_a_broken_tree_is_refused(parent: list[int], stop: list[int]):
    with pytest.raises(ValueError):
        replace(CALL, parent=np.array(parent, np.int32), stop=np.array(stop, np.int32)).check()


@st.composite
def nested(draw: st.DrawFn) -> Tree:
    """A random tree on one lane, built top down, siblings touching at most."""
    rows: list[tuple[int, int, int]] = []
    parent: list[int] = []
    stop: list[int] = []

    def grow(start: int, dur: int, above: int, depth: int) -> None:
        me = len(rows)
        rows.append((start, dur, 0))
        parent.append(above)
        stop.append(0)
        cuts = sorted(draw(st.lists(st.integers(0, dur), max_size=6))) if depth < 4 else []
        for low, high in zip(cuts[::2], cuts[1::2], strict=False):
            grow(start + low, high - low, me, depth + 1)
        stop[me] = len(rows)

    for root in range(draw(st.integers(1, 3))):
        grow(root * 10_000, draw(st.integers(0, 9_999)), ROOT, 0)
    return tree_of(rows, parent, stop)


@given(nested())
def test_self_time_of_a_tree_adds_up_to_the_time_of_its_roots(tree: Tree):
    tree.check()
    own = tree.self_time()
    assert int(own.min()) >= 0
    assert int(own.sum()) == int(tree.trace.dur[tree.parent == ROOT].sum())


@given(nested())
def test_depth_is_the_number_of_ancestors(tree: Tree):
    assert tree.depth().tolist() == [len(tree.ancestors(row)) for row in range(len(tree))]
