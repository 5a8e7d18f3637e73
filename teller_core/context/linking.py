"""From the rows of some ranks to one set of rows that depend on one another: within each rank, and where ranks meet."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from teller_core.context.dependencies import dependencies
from teller_core.data.capture import GRAPH_CAPTURE, Capture, Pauses, Rank, names_of, processes
from teller_core.data.graph import Graph, Kind, edges, joined, with_edges
from teller_core.data.linked import Calls, Linked, Met, StepSpans, Stops
from teller_core.data.replays import captured_rows
from teller_core.data.table import Int32, Int64, Mask, UInt8, take
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree

STOPS = ("gc", "stop_signal", "profiler_stop")
"""Pauses in which no thread of the process runs the program. A thread that woke late says nothing about the others."""
Rows = Callable[[int, int, int], Tree | None]
"""The rows of a rank from one to another, None where it has none."""
_NONE = np.empty(0, dtype=np.int64)


def linked(
    parts: Sequence[StepSpans], met: Met | None = None, pauses: Pauses | None = None, ranks: Sequence[Rank] = ()
) -> Linked:
    """The rows of ``parts`` with their dependencies, on the capture's clock. ``met``: the collectives in which they took
    part; ``pauses`` of ``ranks``, as in Capture: those that overlap the rows of their rank are kept. Linear in the rows but
    for sorting.
    """
    first = np.cumsum([0, *(len(part.tree) for part in parts)])
    lanes = np.cumsum([0, *(len(part.tree.trace.lanes) for part in parts)])
    calls, outside = _calls(parts, met, first)
    columns = [_columns(part, int(at), int(lane)) for part, at, lane in zip(parts, first[:-1], lanes[:-1], strict=True)]
    columns.append(outside._replace(lane=outside.lane + np.int32(lanes[-1])))
    graph = joined([dependencies(part.tree) for part in parts])
    of_lane = [np.repeat(np.arange(len(parts)), np.diff(lanes)), np.arange(len(parts))]
    whole = Linked(
        parts=parts,
        **{name: np.concatenate([getattr(one, name) for one in columns]) for name in _Columns._fields},
        lane_part=np.concatenate(of_lane).astype(np.int32),
        graph=Graph(int(first[-1]) + len(outside.start), graph.before, graph.after, graph.kind),
        calls=calls,
        stops=_stops(parts, pauses, ranks),
    )
    return _handed_over(whole)


def step_linked(capture: Capture, step: int, rows: Rows | None = None) -> Linked | None:
    """The rows of a step on all its ranks, linked (see :func:`clear`); None where no profile has any.

    ``rows``: the part of a rank's tree from one row to another, where the capture itself has no trees with it.
    """
    work, part = capture.work, rows or partial(_part, capture)
    parts: list[StepSpans] = []
    low, high = np.searchsorted(work.step, [step, step + 1]).tolist()
    for k in range(low, high):
        rank, begin, end = int(work.rank[k]), int(work.row[k]), int(work.row_stop[k])
        tree = part(rank, begin, end) if begin >= 0 else None
        if tree is not None:
            parts.append(StepSpans(rank, begin, tree, capture.ranks[rank].shift))
    met = Met(take(capture.collectives, capture.collectives.step == step), capture.meetings)
    return linked(clear(parts, capture.ranks), met, capture.pauses, capture.ranks) if parts else None


def _part(capture: Capture, rank: int, low: int, high: int) -> Tree | None:
    tree = capture.ranks[rank].tree
    return None if tree is None else tree.part(low, high)


def capture_linked(capture: Capture) -> Linked | None:
    """All that profiles recorded of a capture, linked; None where there is none."""
    traced = [(at, rank) for at, rank in enumerate(capture.ranks) if rank.role != GRAPH_CAPTURE]
    parts = [StepSpans(at, 0, rank.tree, rank.shift) for at, rank in traced if rank.tree is not None and len(rank.tree)]
    met = Met(capture.collectives, capture.meetings)
    return linked(clear(parts, capture.ranks), met, capture.pauses, capture.ranks) if parts else None


def clear(parts: Sequence[StepSpans], ranks: Sequence[Rank]) -> list[StepSpans]:
    """``parts`` without those of a process that another one of it overlaps in time and has more rows: two recorders saw one
    thread, and each call would be there twice, once as the time of a scope.
    """
    kept: list[tuple[int, int, int, StepSpans]] = []
    of = processes(ranks)
    for part in sorted(parts, key=lambda part: -len(part.tree)):
        trace = part.tree.trace
        if not len(trace):
            continue
        process = int(of[part.rank])
        low = int(trace.start.min())
        high = low + trace.lasted
        if not any(other == process and low < end and begin < high for other, begin, end, _ in kept):
            kept.append((process, low, high, part))
    return sorted((part for *_, part in kept), key=lambda part: (part.rank, part.first))


class _Columns(NamedTuple):
    """Columns of :class:`Linked`, of some rows."""

    start: Int64
    end: Int64
    parent: Int32
    stop: Int32
    lane: Int32
    layer: UInt8
    host: Mask
    work: Mask


def _columns(part: StepSpans, first: int, lanes: int) -> _Columns:
    tree, trace = part.tree, part.tree.trace
    start, device = trace.start + np.int64(part.shift), trace.on_device
    return _Columns(
        start,
        start + trace.dur,
        np.where(tree.parent < 0, np.int32(-1), tree.parent + np.int32(first)).astype(np.int32),
        (tree.stop + np.int32(first)).astype(np.int32),
        (trace.lane + np.int32(lanes)).astype(np.int32),
        trace.layer,
        ~device & ~captured_rows(tree),
        device & ((trace.layer == Layer.KERNEL) | (trace.layer == Layer.COMMUNICATION)),
    )


def _calls(parts: Sequence[StepSpans], met: Met | None, first: Int64) -> tuple[Calls, _Columns]:
    """The meetings of ``parts``, and the calls in no part's rows as rows of their own. Ranks that met alone met nobody."""
    row, sequence, ranks, outside = [_NONE], [_NONE], [_NONE], [(_NONE, _NONE, _NONE)]
    rows = int(first[-1])
    for at, part in enumerate(parts if met is not None else ()):
        assert met is not None  # the loop is over nothing otherwise: for the type checker
        own = np.flatnonzero(met.collectives.rank == part.rank)
        here = met.collectives.row[own].astype(np.int64) - part.first
        inside = (here >= 0) & (here < len(part.tree))
        begin, dur = met.collectives.start[own[~inside]], met.collectives.dur[own[~inside]]
        row += [here[inside] + int(first[at]), np.arange(rows, rows + len(begin))]
        rows += len(begin)
        sequence += [met.collectives.sequence[own[inside]], met.collectives.sequence[own[~inside]]]
        ranks.append(np.full(len(own), part.rank))
        outside.append((begin, begin + dur, np.full(len(begin), at)))
    calls = _meetings(np.concatenate(row), np.concatenate(sequence), np.concatenate(ranks), met)
    start, end, of = (np.concatenate([one[k] for one in outside]) for k in range(3))
    alone = np.arange(len(start), dtype=np.int32) + np.int32(first[-1])
    true = np.ones(len(start), dtype=np.bool_)
    layer = np.full(len(start), Layer.COMMUNICATION, dtype=np.uint8)
    columns = _Columns(
        start, end, np.full_like(alone, -1), alone + np.int32(1), of.astype(np.int32), layer, true, ~true
    )
    return calls, columns


def _meetings(row: Int64, sequence: Int64, rank: Int64, met: Met | None) -> Calls:
    """Calls of meetings that the capture knows, each of a ``rank``. One that is in a meeting twice tells nothing: then not all
    who must are here.
    """
    known = np.zeros(len(row), dtype=np.bool_)
    if met is not None:
        known = (sequence >= met.first) & (sequence < met.first + len(met.meetings.came))
    row, sequence, rank = row[known], sequence[known], rank[known]
    at, meeting, here = np.unique(sequence, return_inverse=True, return_counts=True)
    if met is None or not len(at):
        few, none = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.bool_)
        return Calls(few, few, none, [], none, few)
    where = at - met.first
    came, size = met.meetings.came[where], met.meetings.size[where]
    return Calls(
        row=row.astype(np.int32),
        meeting=meeting.reshape(-1).astype(np.int32),
        root=rank == met.meetings.root[sequence - met.first],
        kind=[met.meetings.kind[k] for k in where.tolist()],
        whole=(here > 1) & (here == came) & (came == size),
        at=at.astype(np.int32),
    )


def _stops(parts: Sequence[StepSpans], pauses: Pauses | None, ranks: Sequence[Rank]) -> Stops:
    found: list[tuple[int, int, int, int]] = []
    kinds = [] if pauses is None else [k for k, kind in enumerate(pauses.kind) if kind in STOPS]
    names = names_of(ranks) if kinds else []
    for at, part in enumerate(parts):
        if pauses is None or not kinds or not len(part.tree) or part.rank >= len(ranks):
            continue
        own = np.array([k for k in kinds if pauses.process[k] in names[part.rank]], dtype=np.int64)
        low = int(part.tree.trace.start.min()) + part.shift
        start = pauses.start[own] + part.shift
        end = start + pauses.dur[own]
        near = (end > low) & (start < low + part.tree.trace.lasted)
        found += [
            (k, at, a, b) for k, a, b in zip(own[near].tolist(), start[near].tolist(), end[near].tolist(), strict=True)
        ]
    table = np.array(found, dtype=np.int64).reshape(-1, 4).T
    return Stops(table[0].astype(np.int32), table[1].astype(np.int32), table[2], table[3])


def _handed_over(whole: Linked) -> Linked:
    """``whole`` with edges from the host's call that handed a collective over to a thread of its own to what that thread did.

    Where there are as many of those as of these, which is which is a matter of order; else the last call before it is meant.
    """
    called = np.zeros(len(whole), dtype=np.bool_)
    called[whole.calls.row] = True
    part = whole.lane_part[whole.lane]
    talks = np.flatnonzero(whole.host & (whole.layer == Layer.COMMUNICATION) & ~called)
    reach = np.append(0, np.maximum.accumulate(whole.stop[talks])[:-1]) if len(talks) else talks
    talks = talks[reach <= talks]  # what lies in another one is part of it
    before, after = [_NONE], [_NONE]
    for at in range(len(whole.parts)):
        own = np.flatnonzero(called & whole.host & (part == at))
        own = own[np.argsort(whole.start[own], kind="stable")]
        mine = talks[part[talks] == at]
        mine = mine[np.argsort(whole.start[mine], kind="stable")]
        if not len(mine) or not len(own):
            continue
        place = np.searchsorted(whole.start[mine], whole.start[own], side="right") - 1
        if len(mine) == len(own):
            place = np.where(whole.start[mine] <= whole.start[own], np.arange(len(own)), -1)
        once = np.append(True, place[1:] != place[:-1]) & (place >= 0)
        before.append(mine[place[once]])
        after.append(own[once])
    more = edges(len(whole), [(Kind.LAUNCH, np.concatenate(before), np.concatenate(after))])
    return replace(whole, graph=with_edges(whole.graph, more))
