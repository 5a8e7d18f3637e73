"""Calls that were never made, put between the rows of a tree: they take no time yet."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64
from teller_core.data.trace import NO_LINK, Trace
from teller_core.data.tree import ROOT, Tree


class Added(NamedTuple):
    """A row that comes before the row ``before`` of a tree, behind those that were added there earlier. It hangs below
    ``parent``, or where that is None below the one added just before it. Where it ``wraps``, the row ``before`` and all below
    it hang below it. It begins and ends at ``start`` ns, on the tree's own clock; ``like``: a row whose lane it is on.
    """

    before: int
    parent: int | None
    start: int
    name: str
    like: int
    category: str
    layer: int
    wraps: bool = False


class Grown(NamedTuple):
    """``tree`` with what was added; where its rows were put: ``place`` int64 for those that it had, and one more for its end;
    ``new`` int64 for those that were added.
    """

    tree: Tree
    place: Int64
    new: Int64


def with_rows(tree: Tree, added: Sequence[Added]) -> Grown:
    """``tree`` with the rows ``added``, which are in the order of where they come."""
    rows, count = len(tree), len(added)
    before = np.array([one.before for one in added], dtype=np.int64)
    order = np.argsort(before, kind="stable")
    shift = np.searchsorted(before[order], np.arange(rows + 1), side="right")
    place = np.arange(rows + 1, dtype=np.int64) + shift
    new = np.empty(count, dtype=np.int64)
    new[order] = before[order] + np.arange(count)
    parent, size = _hung(tree, added, place, new)
    return Grown(
        Tree(_trace(tree, added, place[:-1], new), parent, np.arange(rows + count, dtype=np.int32) + size), place, new
    )


def _hung(tree: Tree, added: Sequence[Added], place: Int64, new: Int64) -> tuple[Int32, Int32]:
    """The parent of each row, and how many rows its subtree has, itself included."""
    total = len(tree) + len(added)
    parent, size = np.full(total, ROOT, dtype=np.int32), np.ones(total, dtype=np.int32)
    old = place[:-1]
    parent[old] = np.where(tree.parent == ROOT, ROOT, old[np.maximum(tree.parent, 0)])
    size[old] = tree.stop - np.arange(len(tree), dtype=np.int32)
    for k, one in enumerate(added):
        row = int(new[k])
        parent[row] = new[k - 1] if one.parent is None else ROOT if one.parent == ROOT else place[one.parent]
        if one.wraps:
            parent[place[one.before]] = row
            size[row] += tree.stop[one.before] - one.before
        above = int(parent[row])
        while above != ROOT:
            size[above] += 1
            above = int(parent[above])
    return parent, size


def _trace(tree: Tree, added: Sequence[Added], old: Int64, new: Int64) -> Trace:
    """The columns of the trace with the new rows in their places. Words that are new stand behind those that were there."""
    trace = tree.trace
    names = {name: at for at, name in reversed(list(enumerate(trace.names)))}
    categories = {name: at for at, name in reversed(list(enumerate(trace.categories)))}
    name = [names.setdefault(one.name, max(len(trace.names), len(names))) for one in added]
    category = [categories.setdefault(one.category, max(len(trace.categories), len(categories))) for one in added]
    more = [one for one, at in names.items() if at >= len(trace.names)]
    words = [one for one, at in categories.items() if at >= len(trace.categories)]

    def column(was: "np.ndarray[tuple[int], np.dtype[np.generic]]", value: "Sequence[int] | Int64"):
        out = np.empty(len(was) + len(new), dtype=was.dtype)
        out[old], out[new] = was, np.asarray(value, dtype=was.dtype)
        return out

    zero = np.zeros(len(new), dtype=np.int64)
    return replace(
        trace,
        start=column(trace.start, [one.start for one in added]),
        dur=column(trace.dur, zero),
        name=column(trace.name, name),
        lane=column(trace.lane, [int(trace.lane[one.like]) for one in added]),
        category=column(trace.category, category),
        layer=column(trace.layer, [one.layer for one in added]),
        link=column(trace.link, zero + NO_LINK),
        arg=column(trace.arg, zero - 1),
        names=[*trace.names, *more],
        categories=[*trace.categories, *words],
    )
