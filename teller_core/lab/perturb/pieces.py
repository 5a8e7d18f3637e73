"""Parts of real recordings that can be replayed: some steps that follow one another, on all their ranks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from teller_core.context.linking import clear, linked
from teller_core.data.capture import GRAPH_CAPTURE, Capture
from teller_core.data.linked import Linked, Met, StepSpans
from teller_core.data.steps import Steps, StepWork
from teller_core.data.table import UNKNOWN, Int32, Int64, Mask, take
from teller_core.data.trace import Layer, Trace
from teller_core.data.tree import Tree
from teller_core.judge.replay import Network, network
from teller_core.lab.benchmark.cut_trees import CutTree, cut_tree

MOST_STEPS = 5
MOST_ROWS = 33_000
"""Of a piece: an episode holds eight of it and more."""
MOST_PIECES = 8
"""Of a recording."""
LEAST_SPANS = 20
"""A step of fewer has nothing that could be slow."""
OPENING = 2
"""The first steps of a profile: it sets itself up in them."""


@dataclass(frozen=True)
class Piece:
    """``steps`` int32: positions in the capture; ``graph``: their rows. ``low``, ``high`` int32 [steps, parts]: the rows of each
    step on each part of the graph, 0 and 0 where it has none. ``of_row`` int32 a row and ``of_moment`` int32 a moment of the
    graph: which of ``steps`` it belongs to, -1 for none. ``ticks``: ns of the clock of each part's recording.
    """

    steps: Int32
    graph: Network
    low: Int32
    high: Int32
    of_row: Int32
    of_moment: Int32
    ticks: Sequence[int]

    @property
    def linked(self) -> Linked:
        """The rows of the graph."""
        return self.graph.linked

    def part(self, row: int) -> int:
        """The part of the graph that a row is in."""
        return int(self.linked.lane_part[self.linked.lane[row]])

    def main(self, part: int) -> int:
        """The thread of a part that made most calls, as a lane of the graph, -1 where no thread made any."""
        rows = self.linked
        calls = np.flatnonzero(rows.host & (rows.lane_part[rows.lane] == part) & (self.of_row >= 0))
        return int(np.argmax(np.bincount(rows.lane[calls]))) if len(calls) else -1


def pieces(capture: Capture) -> list[Piece]:
    """At most MOST_PIECES of ``capture``, which must be :func:`ready`, in the order of their steps."""
    work = capture.work
    size = np.where(work.row >= 0, work.row_stop - work.row, 0)
    total = np.bincount(work.step, weights=size, minlength=len(capture.steps.engine)).astype(np.int64)
    seen = np.flatnonzero((total >= LEAST_SPANS) & (total <= MOST_ROWS))
    if len(seen) > 2 * OPENING:
        seen = seen[OPENING:]
    groups = _in_a_row(seen, total)
    longest = max((len(group) for group in groups), default=0)
    groups = [group for group in groups if len(group) == longest]
    chosen = np.unique(np.linspace(0, len(groups) - 1, min(len(groups), MOST_PIECES)).round().astype(np.int64))
    return [piece(capture, groups[int(at)]) for at in chosen]


def _in_a_row(seen: Int64, rows: Int64) -> list[list[int]]:
    """The steps ``seen``, those that follow one another together as far as they are small enough. ``rows`` of each step."""
    groups: list[list[int]] = []
    for step in map(int, seen):
        last = groups[-1] if groups else []
        near = bool(last) and step == last[-1] + 1 and len(last) < MOST_STEPS
        if near and int(rows[last].sum() + rows[step]) <= MOST_ROWS:
            last.append(step)
        else:
            groups.append([step])
    return groups


def piece(capture: Capture, steps: Sequence[int]) -> Piece:
    """The rows of ``steps``, linked and ready to be replayed."""
    work = take(capture.work, np.isin(capture.work.step, np.array(steps, dtype=np.int32)) & (capture.work.row >= 0))
    parts: list[StepSpans] = []
    for rank in map(int, np.unique(work.rank)):
        own, tree = work.rank == rank, capture.ranks[rank].tree
        if tree is not None:
            low, high = int(work.row[own].min()), int(work.row_stop[own].max())
            parts.append(StepSpans(rank, low, tree.part(low, high), capture.ranks[rank].shift))
    parts = clear(parts, capture.ranks)
    low, high = (np.zeros((len(steps), len(parts)), dtype=np.int32) for _ in range(2))
    first = 0
    for at, part in enumerate(parts):
        for number, step in enumerate(steps):
            mine = np.flatnonzero((work.rank == part.rank) & (work.step == step))
            if len(mine):
                low[number, at] = int(work.row[mine].min()) - part.first + first
                high[number, at] = int(work.row_stop[mine].max()) - part.first + first
        first += len(part.tree)
    met = Met(take(capture.collectives, np.isin(capture.collectives.step, np.array(steps))), capture.meetings)
    ticks = [_tick(part.tree.trace) for part in parts]
    return made(np.array(steps, dtype=np.int32), network(linked(parts, met)), (low, high), ticks)


def _tick(trace: Trace) -> int:
    """ns: what all times of a recording are multiples of. Most producers count microseconds."""
    return max(int(np.gcd.reduce(np.concatenate([trace.start, trace.dur]))), 1) if len(trace) else 1


def made(steps: Int32, graph: Network, bounds: tuple[Int32, Int32], ticks: Sequence[int]) -> Piece:
    """A piece of ``graph``, whose steps have the rows from the one to the other of ``bounds`` ([steps, parts] each)."""
    low, high = bounds
    rows = graph.linked
    of_row = np.full(len(rows), -1, dtype=np.int32)
    for step in range(len(low)):
        for begin, end in zip(low[step].tolist(), high[step].tolist(), strict=True):
            of_row[begin:end] = step
    outside = np.flatnonzero(of_row[rows.calls.row] < 0)  # calls on threads of their own lie in no step's rows
    if len(outside) and len(low):
        some = [one[end > one] for one, end in zip(low, high, strict=True)]
        begins = np.array([rows.start[one].min() for one in some], dtype=np.int64)
        when = np.searchsorted(begins, rows.start[rows.calls.row[outside]], side="right") - 1
        of_row[rows.calls.row[outside]] = np.maximum(when, 0)
    of_moment = np.full(len(graph.time), -1, dtype=np.int32)
    of_moment[: len(rows)] = of_moment[len(rows) : 2 * len(rows)] = of_row
    of_moment[graph.nodes.met + graph.meets.leaves] = of_row[rows.calls.row[graph.meets.out]]
    return Piece(steps, graph, low, high, of_row, of_moment, ticks)


def ready(capture: Capture) -> Capture:
    """``capture`` without Python's frames, which are most of the rows and of which no method needs any; and where nobody wrote
    down which rows are a step, with all of a recording as one.
    """
    found = [None if rank.tree is None else _without_frames(rank.tree) for rank in capture.ranks]
    ranks = [
        rank if tree is None else replace(rank, tree=tree.tree) for rank, tree in zip(capture.ranks, found, strict=True)
    ]
    work, met, meetings = capture.work, capture.collectives, capture.meetings
    row, stop, called, kept = work.row.copy(), work.row_stop.copy(), met.row.copy(), meetings.kept.copy()
    for position, tree in enumerate(found):
        if tree is None:
            continue
        own = (work.rank == position) & (work.row >= 0)
        row[own], stop[own] = tree.before[work.row[own]], tree.before[work.row_stop[own]]
        mine = (met.rank == position) & (met.row >= 0)
        called[mine] = tree.place(met.row[mine])
        late = (meetings.late == position) & (meetings.kept >= 0)
        kept[late] = tree.place(meetings.kept[late])
    empty = row >= stop
    row[empty] = stop[empty] = -1
    capture = replace(
        capture,
        ranks=ranks,
        work=replace(work, row=row, row_stop=stop),
        collectives=replace(met, row=called),
        meetings=replace(meetings, kept=kept),
    )
    return capture if (capture.work.row >= 0).any() else _as_one_step(capture)


def _without_frames(tree: Tree) -> CutTree:
    kept = tree.trace.layer != Layer.PYTHON

    def inside(start: Int64, end: Int64) -> Mask:
        return kept

    return cut_tree(tree, 0, inside)


def _as_one_step(capture: Capture) -> Capture:
    """``capture`` with one step: all that its ranks did."""
    traced = [
        (at, rank, rank.tree)
        for at, rank in enumerate(capture.ranks)
        if rank.tree is not None and len(rank.tree) and rank.role != GRAPH_CAPTURE
    ]
    start = np.array([int(tree.trace.start.min()) + rank.shift for _, rank, tree in traced], dtype=np.int64)
    stop = start + np.array([tree.trace.lasted for *_, tree in traced], dtype=np.int64)
    rows = np.array([len(tree) for *_, tree in traced], dtype=np.int32)
    ranks, zero = np.array([at for at, *_ in traced], dtype=np.int32), np.zeros(len(traced), dtype=np.int32)
    work = StepWork(zero, ranks, start, stop, zero, rows)
    met = replace(capture.collectives, step=np.zeros_like(capture.collectives.step))
    bounds = (int(start.min()), int(stop.max())) if traced else (UNKNOWN, UNKNOWN)
    return replace(capture, steps=_one_step(*bounds), work=work, collectives=met)


def _one_step(begin: int, end: int) -> Steps:
    small, many = np.full(1, -1, dtype=np.int32), np.full(1, -1, dtype=np.int64)
    return Steps(
        engine=np.zeros(1, dtype=np.int32),
        number=many,
        scheduled=np.full(1, begin),
        launched=np.full(1, begin),
        finished=np.full(1, end),
        delivered=np.full(1, end),
        context_requests=small,
        context_tokens=small,
        generation_requests=small,
        generation_tokens=small,
        kv_tokens=many,
        kv_usage=np.full(1, np.nan),
        preempted=np.zeros(1, dtype=np.int32),
        mapping=np.zeros(1, dtype=np.uint8),
        confidence=np.ones(1),
        elapsed=np.full(1, UNKNOWN),
    )
