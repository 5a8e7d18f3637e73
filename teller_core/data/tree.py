"""The call-chain tree: the rows of one trace in pre-order, with parents."""

from dataclasses import dataclass, replace

import numpy as np

from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Trace

ROOT = -1
"""The parent of a row that has none."""


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
        low, high = row, int(self.stop[row])
        parent = self.parent[low:high] - low
        parent = np.where(parent < 0, ROOT, parent).astype(np.int32)
        return Tree(slice_rows(self.trace, low, high), parent, self.stop[low:high] - np.int32(low))

    def self_time(self) -> Int64:
        """int64 ns: the part of each row's time that no child on its own lane covers.

        Children on other lanes (kernels of a launch) run elsewhere and take nothing away.
        """
        start, end, lane = self.trace.start, self.trace.end, self.trace.lane
        own = self.trace.dur.copy()
        child = np.flatnonzero(self.parent >= 0)
        child = child[lane[child] == lane[self.parent[child]]]
        np.subtract.at(own, self.parent[child], self.trace.dur[child])
        covered_until: dict[int, int] = {}
        for row in _overlapping_siblings(self, child).tolist():
            above = int(self.parent[row])
            until = covered_until.get(above, int(start[row]))
            own[above] += max(0, min(until, int(end[row])) - int(start[row]))
            covered_until[above] = max(until, int(end[row]))
        return own

    def paths(self, symbol: Int64, root: Int32 | None = None) -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
        """uint64: one number for the chain of symbols down to each row, its own included; equal chains, equal numbers.

        ``symbol`` int64 a row, 0 for a row that its chain passes over. ``root`` int32: the row where each row's chain
        begins (an ancestor, itself, or a sibling of one), the top of the tree by default. A chain is the wrapping sum of
        its symbols mixed with their depths, so two different chains meet with a probability of about 2**-64.
        """
        shown = (symbol != 0).astype(np.int64)
        level = _sum_above(shown, self.stop) - shown
        if root is not None:
            level -= level[root]
        weight = _mix(symbol.view(np.uint64) + level.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15))
        weight *= shown.astype(np.uint64)
        path = _sum_above(weight.view(np.int64), self.stop)
        if root is not None:
            path -= (path - weight.view(np.int64))[root]
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


def _overlapping_siblings(tree: Tree, child: "np.ndarray[tuple[int], np.dtype[np.intp]]") -> Int64:
    """Children (rows, ascending) of every parent that has children overlapping in time on its own lane."""
    parent, start, end, lane = tree.parent, tree.trace.start, tree.trace.end, tree.trace.lane
    following = np.minimum(tree.stop[child], len(tree) - 1)
    near = (parent[following] == parent[child]) & (following > child)
    near &= (lane[following] != lane[child]) | (end[child] > start[following])
    if not near.any():
        return np.empty(0, dtype=np.int64)
    child = child[np.isin(parent[child], np.unique(parent[child[near]]))]
    order = child[np.lexsort((child, parent[child]))]
    before, after = order[:-1], order[1:]
    touching = (parent[before] == parent[after]) & (end[before] > start[after])
    crossed = np.unique(parent[after[touching]])
    return order[np.isin(parent[order], crossed)].astype(np.int64)


def _sum_above(value: Int64, stop: Int32) -> Int64:
    """int64, wrapping: the sum of ``value`` over each row and its ancestors."""
    change = np.zeros(len(value) + 1, dtype=np.int64)
    change[:-1] = value
    np.subtract.at(change, stop, value)
    return np.cumsum(change)[:-1]


def _mix(value: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> "np.ndarray[tuple[int], np.dtype[np.uint64]]":
    """uint64: a bijection that spreads every bit (the finalizer of SplitMix64, Steele, Lea and Flood 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
