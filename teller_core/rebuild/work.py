"""Where and when each step ran: on each worker, and in which rows of its profile.

A worker runs its steps one after another, so what its main thread does from the start of one execution to the start of the
next belongs to the first (vLLM samples after ``execute_model`` has returned). Both are of one process and one clock: this
is the only place where time decides what belongs to a step. Where a trace carries the numbers of its steps, they decide.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.records import Recording
from teller_core.data.steps import StepWork
from teller_core.data.table import Int64
from teller_core.data.tree import ROOT, Tree
from teller_core.rebuild.annotations import Annotated
from teller_core.rebuild.engines import Place, place
from teller_core.rebuild.line_of_steps import Slot
from teller_core.rebuild.marks import Marked, join_marked, marked
from teller_core.rebuild.ranges import range_max
from teller_core.rebuild.ranks import Ranked


class Piece(NamedTuple):
    """One step on one rank; int64 columns. ``row`` and ``row_stop`` -1 without a profile."""

    step: Int64
    start: Int64
    stop: Int64
    row: Int64
    row_stop: Int64


def step_work(
    recording: Recording,
    slots: Sequence[Slot],
    ranked: Ranked,
    annotations: Sequence[Annotated],
    problems: Counter[str],
) -> StepWork:
    """One row a step and rank that ran it. ``annotations``: one a tree. Problems: those of :mod:`teller_core.rebuild.marks`.

    Of a process with several entries, those whose trace covers the step have the row, the first one where none does.
    ``start`` and ``stop`` are the same for all entries of a process.
    """
    pieces: list[tuple[int, Piece]] = []
    for where in dict.fromkeys(ranked.places):
        own = [i for i, other in enumerate(ranked.places) if other == where]
        ran = _executed(recording, slots, where)
        found: list[tuple[int, Piece]] = []
        for i in own:
            tree, k = ranked.ranks[i].tree, ranked.trees[i]
            if tree is not None and any(k in slot.names for slot in slots):
                found.append((i, _named(slots, k, annotations[k], tree)))
            elif tree is not None and len(ran.step) and (marks := marked(tree, problems)) is not None:
                found.append((i, _launched(recording, slots, where, marks, problems)))
            elif tree is not None and len(ran.step):
                found.append((i, _covered(ran, _limits(recording, where, ran), tree)))
        pieces += _with_executions(ran, found, own[0]) if len(ran.step) else found
    return _table(pieces)


def _with_executions(ran: Piece, found: list[tuple[int, Piece]], first: int) -> list[tuple[int, Piece]]:
    """Let each step end when the last of its work did, in every entry; give the steps that no trace covers to the first."""
    size = int(max([ran.step.max(), *(int(piece.step.max()) for _, piece in found if len(piece.step))])) + 1
    start, stop = np.full(size, np.iinfo(np.int64).max), np.full(size, np.iinfo(np.int64).min)
    for piece in (ran, *(piece for _, piece in found)):
        np.minimum.at(start, piece.step, piece.start)
        np.maximum.at(stop, piece.step, piece.stop)
    found = [(i, piece._replace(start=start[piece.step], stop=stop[piece.step])) for i, piece in found]
    covered = np.concatenate([piece.step for _, piece in found]) if found else np.empty(0, dtype=np.int64)
    bare = ~np.isin(ran.step, covered)
    rest = Piece(*(column[bare] for column in ran))
    return [*found, (first, rest._replace(start=start[rest.step], stop=stop[rest.step]))]


def _executed(recording: Recording, slots: Sequence[Slot], where: Place) -> Piece:
    pairs = [(step, slot.executions[where]) for step, slot in enumerate(slots) if where in slot.executions]
    step = np.array([step for step, _ in pairs], dtype=np.int64)
    start = np.array([recording.executions[i].start for _, i in pairs], dtype=np.int64)
    dur = np.array([recording.executions[i].dur for _, i in pairs], dtype=np.int64)
    none = np.full(len(pairs), -1, dtype=np.int64)
    return Piece(step, start, start + dur, none, none)


def _limits(recording: Recording, where: Place, ran: Piece) -> Int64:
    """int64 ns: when the worker began its next execution, empty ones too; its own end for the last."""
    starts = np.sort(np.array([e.start for e in recording.executions if place(e.process) == where], dtype=np.int64))
    after = np.searchsorted(starts, ran.start, side="right")
    return np.where(after < len(starts), starts[np.minimum(after, len(starts) - 1)], ran.stop)


def _named(slots: Sequence[Slot], which: int, named: Annotated, tree: Tree) -> Piece:
    """Steps by the ranges that name them."""
    pairs = [(step, slot.names[which]) for step, slot in enumerate(slots) if which in slot.names]
    step = np.array([step for step, _ in pairs], dtype=np.int64)
    k = np.array([k for _, k in pairs], dtype=np.int64)
    row = named.row[k]
    row_stop = tree.stop[row].astype(np.int64)
    return Piece(step, named.start[k], range_max(tree.trace.end, row, row_stop), row, row_stop)


def _launched(
    recording: Recording, slots: Sequence[Slot], where: Place, marks: Marked, problems: Counter[str]
) -> Piece:
    """Steps by the numbers that their calls carry. A number that two executions of the process have is none."""
    ran: dict[int, tuple[int, int, int]] = {}
    twice: set[int] = set()
    for step, slot in enumerate(slots):
        one = recording.executions[slot.executions[where]] if where in slot.executions else None
        if one is not None and one.number is not None:
            twice |= {one.number} & ran.keys()
            ran[one.number] = (step, one.start, one.start + one.dur)
    joined = join_marked(marks, {number: told for number, told in ran.items() if number not in twice}, problems)
    return Piece(joined.step, joined.start, joined.stop, marks.row[joined.of], marks.row_stop[joined.of])


def _covered(ran: Piece, limit: Int64, tree: Tree) -> Piece:
    """Steps that the trace covers wholly, by the outermost ranges that its busiest thread began in their time."""
    trace = tree.trace
    begin, end = int(trace.start.min()), int(trace.end.max())
    host = ~np.array([lane.device for lane in trace.lanes], dtype=np.bool_)
    roots = np.flatnonzero(tree.parent == ROOT)
    roots = roots[host[trace.lane[roots]]]
    width = np.bincount(trace.lane[roots], weights=(tree.stop[roots] - roots), minlength=len(trace.lanes))
    roots = roots[trace.lane[roots] == int(np.argmax(width))] if len(roots) else roots
    starts = trace.start[roots]
    low, high = np.searchsorted(starts, ran.start), np.searchsorted(starts, limit)
    inside = (ran.start >= begin) & (ran.stop <= end) & (low < high)
    low, high = low[inside], high[inside]
    row, row_stop = roots[low].astype(np.int64), tree.stop[roots[high - 1]].astype(np.int64) if len(high) else high
    last = range_max(trace.end, row, row_stop)
    return Piece(ran.step[inside], ran.start[inside], np.maximum(ran.stop[inside], last), row, row_stop)


def _table(pieces: Sequence[tuple[int, Piece]]) -> StepWork:
    rank = np.concatenate([np.full(len(piece.step), i) for i, piece in pieces] or [np.empty(0)])
    columns = [np.concatenate(c) for c in zip(*(piece for _, piece in pieces), strict=True)] or [np.empty(0)] * 5
    step, start, stop, row, row_stop = columns
    order = np.lexsort((rank, step))
    return StepWork(
        step[order].astype(np.int32),
        rank[order].astype(np.int32),
        start[order].astype(np.int64),
        stop[order].astype(np.int64),
        row[order].astype(np.int32),
        row_stop[order].astype(np.int32),
    )
