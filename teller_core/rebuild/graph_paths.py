"""Trees in which the kernels of a replayed graph stand under the operators that they were captured under.

These operators did not run again: they take no time, stand at the start of the graph's launch, and are on a thread of their
own, CAPTURED. Kernels of one operator become its children; those without one stay right below the launch.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64
from teller_core.data.trace import CAPTURED, NO_LINK, Lane, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.rebuild.graph_capture import Fit, Graph

CATEGORY = "captured"
COLUMNS = ("start", "dur", "name", "lane", "category", "layer", "link", "arg")
MOST_ROWS = 1 << 24
"""Operators put into one tree. Kernels of replays beyond that keep no operator."""


@dataclass(frozen=True)
class Layout:
    """What stands below one launch, in pre-order: ``kernel`` int32 the how-manieth kernel it is or -1, ``path`` int64 the row of
    the capture's tree or -1, ``parent`` int32 relative to the layout (-1: the launch), ``stop`` int32 relative.
    """

    graph: int
    kernel: Int32
    path: Int64
    parent: Int32
    stop: Int32

    @property
    def added(self) -> int:
        """Rows that are no kernels."""
        return int((self.path >= 0).sum())


class Placed(NamedTuple):
    """A launch, at ``row``, and what is to stand below it."""

    row: int
    layout: Layout


def layout_of(fit: Fit, graph: Graph) -> Layout:
    """The layout of a replay that fits ``graph``: parents before children, siblings by their first kernel."""
    below: dict[int, list[tuple[int, int]]] = {}
    seen: set[int] = set()
    for k, at in enumerate(fit.kernel.tolist()):
        node = int(graph.node[at]) if at >= 0 else -1
        below.setdefault(node, []).append((k, -1))
        while node >= 0 and node not in seen:
            seen.add(node)
            over = int(graph.above[node])
            below.setdefault(over, []).append((k, node))
            node = over
    kernel: list[int] = []
    path: list[int] = []
    parent: list[int] = []
    waiting = [(entry, -1) for entry in reversed(below.get(-1, []))]
    while waiting:
        (k, node), over = waiting.pop()
        here = len(kernel)
        kernel.append(k if node < 0 else -1)
        path.append(-1 if node < 0 else int(graph.path[node]))
        parent.append(over)
        if node >= 0:
            waiting.extend((entry, here) for entry in reversed(below[node]))
    return Layout(
        fit.graph,
        np.array(kernel, dtype=np.int32),
        np.array(path, dtype=np.int64),
        np.array(parent, dtype=np.int32),
        _stops(parent),
    )


def _stops(parent: Sequence[int]) -> Int32:
    stop = np.arange(1, len(parent) + 1, dtype=np.int32)
    for at in range(len(parent) - 1, -1, -1):
        if parent[at] >= 0:
            stop[parent[at]] = max(stop[parent[at]], stop[at])
    return stop


def with_paths(tree: Tree, placed: Sequence[Placed], graphs: Sequence[Graph]) -> Tree:
    """``tree`` with the layouts of ``placed`` (launches by row, none below another) below their launches."""
    words = _Words(tree.trace, graphs)
    pieces = _Pieces(tree)
    for launch in placed:
        pieces.add(launch, words)
    pieces.close()
    source, captured = np.concatenate(pieces.source), np.concatenate(pieces.captured)
    old = source >= 0
    moved = np.empty(len(tree) + 1, dtype=np.int64)
    moved[source[old]] = np.flatnonzero(old)
    moved[len(tree)] = len(source)
    # A row's subtree ends where the next row that is no descendant begins: kernels only move within their launch.
    parent = np.concatenate(pieces.parent)
    stop = np.concatenate(pieces.stop)
    plain = parent == _PLAIN
    above = tree.parent[source[plain]]
    parent[plain] = np.where(above == ROOT, ROOT, moved[above])
    stop[plain] = pieces.boundary(tree.stop[source[plain]])
    trace = words.trace_of(tree.trace, source, captured, np.concatenate(pieces.launch))
    return replace(tree, trace=trace, parent=parent.astype(np.int32), stop=stop.astype(np.int32))


_PLAIN = -2
"""Instead of a parent: it follows from the tree as it was."""


class _Pieces:
    """The rows of the new tree, piece by piece: ``source`` the old row or -1, ``captured`` an entry of _Words or -1, ``launch``
    the old row of the launch that a new row belongs to.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.done = 0
        self.length = 0
        self.source: list[Int64] = []
        self.captured: list[Int64] = []
        self.launch: list[Int64] = []
        self.parent: list[Int64] = []
        self.stop: list[Int64] = []
        self.starts: list[int] = []
        self.shifts: list[int] = []

    def add(self, placed: Placed, words: "_Words") -> None:
        layout, base = placed.layout, placed.row + 1
        self._copy(base)
        self._shift(base)
        at = self.length
        self.source.append(np.where(layout.kernel >= 0, base + layout.kernel, -1).astype(np.int64))
        self.captured.append(words.entries(layout))
        self.launch.append(np.full(len(layout.kernel), placed.row, dtype=np.int64))
        self.parent.append(np.where(layout.parent < 0, at - 1, at + layout.parent).astype(np.int64))
        self.stop.append((at + layout.stop).astype(np.int64))
        self.length += len(layout.kernel)
        self.done = int(self.tree.stop[placed.row])

    def close(self) -> None:
        self._copy(len(self.tree))
        self._shift(len(self.tree) + 1)

    def _copy(self, until: int) -> None:
        """The old rows from where it stands to before ``until``, as they are."""
        self._shift(self.done)
        rows = np.arange(self.done, until, dtype=np.int64)
        none = np.full(len(rows), -1, dtype=np.int64)
        self.source.append(rows)
        self.captured.append(none)
        self.launch.append(none)
        self.parent.append(np.full(len(rows), _PLAIN, dtype=np.int64))
        self.stop.append(none)
        self.length += len(rows)
        self.done = until

    def _shift(self, row: int) -> None:
        self.starts.append(row)
        self.shifts.append(self.length - self.done)

    def boundary(self, row: Int32) -> Int64:
        """Where in the new tree the old boundary before each ``row`` lies; none lies inside the rows below a launch."""
        index = np.searchsorted(np.array(self.starts), row, side="right") - 1
        return row.astype(np.int64) + np.array(self.shifts)[index]


class _Words:
    """Names and arguments that the new rows bring, added to those of the trace."""

    def __init__(self, trace: Trace, graphs: Sequence[Graph]) -> None:
        self.graphs = graphs
        self.names, self.args = _Texts(trace.names), _Texts(trace.args)
        self.rows: list[tuple[int, int, int]] = []
        self.known: dict[tuple[int, int], int] = {}

    def entries(self, layout: Layout) -> Int64:
        """int64 a row of ``layout``: the entry that it is, -1 for a kernel."""
        return np.array([self._entry(layout.graph, row) if row >= 0 else -1 for row in layout.path.tolist()], np.int64)

    def _entry(self, graph: int, row: int) -> int:
        key = (graph, row)
        if key not in self.known:
            trace = self.graphs[graph].tree.trace
            name, arg = trace.names[int(trace.name[row])], int(trace.arg[row])
            said = -1 if arg < 0 else self.args.number(trace.args[arg])
            self.known[key] = len(self.rows)
            self.rows.append((self.names.number(name), int(trace.layer[row]), said))
        return self.known[key]

    def trace_of(self, trace: Trace, source: Int64, captured: Int64, launch: Int64) -> Trace:
        """The columns of the new rows: from ``source`` where it is a row, else from the entry, at the start of its ``launch``."""
        new = np.flatnonzero(captured >= 0)
        rows = np.array(self.rows, dtype=np.int64).reshape(-1, 3)[captured[new]]
        pick = np.maximum(source, 0)
        lanes, categories = list(trace.lanes), list(trace.categories)
        of_lane = np.arange(len(lanes), dtype=np.int32)
        for at in map(int, np.unique(trace.lane[launch[new]])):
            own = Lane(lanes[at].process, CAPTURED, False)
            if own not in lanes:
                lanes.append(own)
            of_lane[at] = lanes.index(own)
        if CATEGORY not in categories:
            categories.append(CATEGORY)
        columns = {name: getattr(trace, name)[pick] for name in COLUMNS}
        columns["start"][new], columns["dur"][new] = trace.start[launch[new]], 0
        columns["name"][new], columns["layer"][new], columns["arg"][new] = rows[:, 0], rows[:, 1], rows[:, 2]
        columns["lane"][new] = of_lane[trace.lane[launch[new]]]
        columns["category"][new], columns["link"][new] = categories.index(CATEGORY), NO_LINK
        return replace(
            trace, **columns, names=self.names.texts, lanes=lanes, categories=categories, args=self.args.texts
        )


class _Texts:
    """A table of texts that grows; numbers that were given stay."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        self.numbers = {text: i for i, text in reversed(list(enumerate(texts)))}

    def number(self, text: str) -> int:
        """The number of ``text``, put in if it is new."""
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
        return self.numbers[text]
