"""The call-chain tree: the rows of one trace in pre-order, with parents."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from teller_core.data.long_columns import Column
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Trace

ROOT = -1
"""The parent of a row that has none."""
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
PIECE = 1 << 20
_NONE = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class Tree:
    """``trace`` holds the rows in pre-order; ``parent`` int32 (ROOT for none); ``stop`` int32.

    The subtree of row ``i`` is ``range(i, stop[i])``. On one lane a parent contains its children in time. A kernel hangs
    under the call that launched it and a graph launch owns every kernel it replays, so a child on a device lane starts
    after its parent and may outlive it. ``crossings`` counts host ranges that overlap another range of their lane without
    one containing the other: such a range hangs under the innermost range that contains all of it.
    """

    trace: Trace
    parent: Int32
    stop: Int32
    crossings: int = 0
    unlaunched: int = 0
    """Device rows whose launch is not in the file: work queued before the window, for the most part."""

    def __len__(self) -> int:
        return len(self.parent)

    def columns(self) -> list[Column]:
        """All columns, those of the trace included."""
        trace = self.trace
        mine = (trace.start, trace.dur, trace.name, trace.lane, trace.category, trace.layer, trace.link, trace.arg)
        return [*mine, self.parent, self.stop]

    def depth(self) -> Int32:
        """int32: how many ancestors each row has."""
        change = np.zeros(len(self) + 1, dtype=np.int64)
        change[1:] += 1
        np.subtract.at(change, self.stop, 1)
        return np.cumsum(change)[: len(self)].astype(np.int32)

    def ancestors(self, row: int) -> list[int]:
        """Rows above ``row``, nearest first."""
        above: list[int] = []
        while (row := int(self.parent[row])) != ROOT:
            above.append(row)
        return above

    def children(self, row: int) -> list[int]:
        """Rows directly below ``row``, in order."""
        below: list[int] = []
        child, last = row + 1, int(self.stop[row])
        while child < last:
            below.append(child)
            child = int(self.stop[child])
        return below

    def subtree(self, row: int) -> "Tree":
        """The tree of ``row`` and all below it, with ``row`` as its only root. Copies no column."""
        return self.part(row, int(self.stop[row]))

    def part(self, low: int, high: int) -> "Tree":
        """Rows ``low`` to ``high``, with subtrees that are whole, as a tree: what hung below a row before them is a root now."""
        parent = np.maximum(self.parent[low:high] - np.int32(low), np.int32(ROOT))
        return Tree(slice_rows(self.trace, low, high), parent, self.stop[low:high] - np.int32(low))

    def self_time(self) -> Int64:
        """int64 ns: the part of each row's time that no child on its own lane covers.

        Children on other lanes (kernels of a launch) run elsewhere and take nothing away.
        """
        own = self.trace.dur.copy()
        crossed: list[Int32] = []
        for child in _on_lane_of_parent(self):
            above = self.parent[child]
            np.subtract.at(own, above, self.trace.dur[child])
            crossed.append(above[_overlaps_next(self, child)])
        covered_until: dict[int, int] = {}
        child = _children_of(self, np.unique(np.concatenate(crossed or [_NONE])))
        twice = np.zeros(len(child), dtype=np.int64)
        for at, row in enumerate(child.tolist()):
            above, begin = int(self.parent[row]), int(self.trace.start[row])
            end, until = begin + int(self.trace.dur[row]), covered_until.get(above, begin)
            twice[at] = max(0, min(until, end) - begin)
            covered_until[above] = max(until, end)
        # Children of 2**62 ns overflow a sum on the way to a result that fits: in arrays it wraps there and back.
        np.add.at(own, self.parent[child], twice)
        return own

    def paths(self, symbol: Int64, root: Int32 | None = None) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
        """uint64: one number for the chain of symbols down to each row, its own included; equal chains, equal numbers.

        ``symbol`` int64 a row, 0 for a row that its chain passes over. ``root`` int32: the row where each row's chain
        begins (an ancestor, itself, or a sibling of one), the top of the tree by default. A chain is the wrapping sum of
        its symbols mixed with their depths, so two different chains meet with a probability of about 2**-64.
        """
        shown = symbol != 0
        level = _sum_above(shown.astype(np.int32), self.stop)
        level -= shown
        if root is not None:
            _take_off(level, level.copy(), root)
        path = level.astype(np.uint64)
        path *= GOLDEN
        path += symbol.view(np.uint64)
        _mix(path)
        path *= shown
        own, path = path.view(np.int64), _sum_above(path.view(np.int64), self.stop)
        if root is not None:
            _take_off(path, np.subtract(path, own, out=own), root)
        return path.view(np.uint64)

    def check(self) -> None:
        """Raise ValueError where the rows are not the pre-order of a forest or a host child leaves its parent's time."""
        self.trace.check()
        rows = np.arange(len(self), dtype=np.int64)
        if len(self.parent) != len(self.trace) or len(self.stop) != len(self.trace):
            raise ValueError("parent and stop must have one entry a row")
        if np.any(self.parent >= rows):
            raise ValueError("a parent must come before its child")
        if np.any(self.stop <= rows) or np.any(self.stop > len(self)):
            raise ValueError("stop must lie behind its row and within the tree")
        child = np.flatnonzero(self.parent >= 0)
        above = self.parent[child]
        if np.any(self.stop[child] > self.stop[above]):
            raise ValueError("a subtree leaves its parent's subtree")
        same = self.trace.lane[child] == self.trace.lane[above]
        child, above = child[same], above[same]
        start, end = self.trace.start, self.trace.end
        if np.any(start[child] < start[above]) or np.any(end[child] > end[above]):
            raise ValueError("a span leaves the time of its parent on the same lane")


def slice_rows(trace: Trace, low: int, high: int) -> Trace:
    """Rows ``low`` to ``high`` of ``trace``, sharing its tables and its memory."""
    return replace(
        trace,
        start=trace.start[low:high],
        dur=trace.dur[low:high],
        name=trace.name[low:high],
        lane=trace.lane[low:high],
        category=trace.category[low:high],
        layer=trace.layer[low:high],
        link=trace.link[low:high],
        arg=trace.arg[low:high],
    )


def _on_lane_of_parent(tree: Tree) -> Iterator[Int64]:
    """Rows (ascending) that lie on the lane of their parent, a piece at a time."""
    lane = tree.trace.lane
    for low in range(0, len(tree), PIECE):
        child = np.flatnonzero(tree.parent[low : low + PIECE] >= 0) + low
        yield child[lane[child] == lane[tree.parent[child]]]


def _overlaps_next(tree: Tree, child: Int64) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """bool: the sibling that follows begins before the child ends, or lies on another lane (then a later one may)."""
    parent, lane, trace = tree.parent, tree.trace.lane, tree.trace
    following = np.minimum(tree.stop[child], len(tree) - 1)
    near = (parent[following] == parent[child]) & (following > child)
    end = trace.start[child] + trace.dur[child]
    return near & ((lane[following] != lane[child]) | (end > trace.start[following]))


def _children_of(tree: Tree, parents: Int32) -> Int64:
    """Children (rows) of ``parents`` on their lane, by parent and row, of those that have children which overlap."""
    if not len(parents):
        return np.empty(0, dtype=np.int64)
    child = np.concatenate([rows[np.isin(tree.parent[rows], parents)] for rows in _on_lane_of_parent(tree)])
    parent = tree.parent[child]
    order = np.lexsort((child, parent))
    child, parent = child[order], parent[order]
    start = tree.trace.start[child]
    touching = (parent[:-1] == parent[1:]) & ((start + tree.trace.dur[child])[:-1] > start[1:])
    return child[np.isin(parent, np.unique(parent[1:][touching]))]


def _sum_above(value: Column, stop: Int32) -> Column:
    """The sum of ``value``, wrapping, over each row and its ancestors, in the dtype of ``value``."""
    change = np.zeros(len(value) + 1, dtype=value.dtype)
    change[:-1] = value
    np.subtract.at(change, stop, value)
    return np.cumsum(change, out=change)[:-1]


def _take_off(value: Column, before: Column, root: Int32) -> None:
    """Subtract ``before[root]`` from ``value``, a piece at a time: a tree may be too long for a third such column."""
    for low in range(0, len(value), PIECE):
        value[low : low + PIECE] -= before[root[low : low + PIECE]]


def _mix(value: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> None:
    """Spread every bit of ``value`` in place, a bijection (the finalizer of SplitMix64, Steele, Lea and Flood 2014)."""
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
