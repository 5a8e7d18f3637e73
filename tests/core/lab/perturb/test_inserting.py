"""Rows are put into a tree where they are to come, and all others keep their order and what they hang below."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.lab.perturb.inserting import Added, with_rows
from tests.core.judge.service import Rows


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    rows, now = Rows(), 0

    def grow(depth: int) -> None:
        nonlocal now
        rows.open(draw(st.sampled_from("abc")), Layer.OPERATOR, now)
        now += draw(st.integers(0, 9))
        for _ in range(draw(st.integers(0, 3)) if depth < 3 else 0):
            grow(depth + 1)
        now += draw(st.integers(0, 9))
        rows.close(now)

    for _ in range(draw(st.integers(1, 3))):
        grow(0)
    return rows.tree()


def nested(tree: Tree, row: int = -1) -> list:
    """The tree as lists of (name, what is below it): the oracle's own form."""
    children = [k for k in range(len(tree)) if tree.parent[k] == row]
    return [(tree.trace.names[int(tree.trace.name[k])], nested(tree, k)) for k in children]


@given(trees(), st.data())
def test_a_row_added_behind_another_is_its_next_sibling(tree: Tree, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(tree) - 1), unique=True, max_size=4))
    by_place = {int(tree.stop[row]): row for row in sorted(chosen, reverse=True)}
    chosen = sorted(by_place.values())
    added = [
        Added(int(tree.stop[r]), int(tree.parent[r]), int(tree.trace.end[r]), f"new {r}", r, "runtime", Layer.RUNTIME)
        for r in chosen
    ]
    grown = with_rows(tree, added)
    grown.tree.check()

    def expected(row: int) -> list:
        out = []
        for k in (k for k in range(len(tree)) if tree.parent[k] == row):
            out.append((tree.trace.names[int(tree.trace.name[k])], expected(k)))
            if k in chosen:
                out.append((f"new {k}", []))
        return out

    assert nested(grown.tree) == expected(-1)
    assert np.array_equal(grown.tree.trace.start[grown.place[:-1]], tree.trace.start)
    assert grown.place[-1] == len(grown.tree)


@given(trees(), st.data())
def test_a_row_that_wraps_another_takes_its_place(tree: Tree, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(tree) - 1))
    one = Added(row, int(tree.parent[row]), int(tree.trace.start[row]), "new", row, "x", Layer.RUNTIME, wraps=True)
    grown = with_rows(tree, [one])
    new, old = int(grown.new[0]), int(grown.place[row])
    assert grown.tree.parent[old] == new
    assert grown.tree.stop[new] == grown.tree.stop[old]
    lasting = grown.tree.trace.dur.copy()
    lasting[new] = lasting[old]  # it takes no time yet, so what it wraps would leave it
    replace(grown.tree, trace=replace(grown.tree.trace, dur=lasting)).check()


def test_new_words_stand_behind_the_known_ones() -> None:
    rows = Rows()
    rows.leaf("a", Layer.OPERATOR, 10, 5)
    grown = with_rows(rows.tree(), [Added(1, -1, 15, "b", 0, "y", Layer.RUNTIME), Added(1, None, 15, "a", 0, "x", 4)])
    trace = grown.tree.trace
    assert [trace.names[int(k)] for k in trace.name] == ["a", "b", "a"]
    assert list(trace.names) == ["a", "b"]
    assert [trace.categories[int(k)] for k in trace.category] == ["x", "y", "x"]
    assert grown.tree.parent.tolist() == [-1, -1, 1]
    assert UNKNOWN not in trace.start
