"""A part of a capture: what lies wholly inside some intervals of time, and nothing that tells of the rest."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Balance, Capture, Collectives, Meetings, Rank, Samples
from teller_core.data.steps import Lines, Participation, Requests, Steps, StepWork, TokenTimes, Transfers
from teller_core.data.table import UNKNOWN, Int32, Int64, Mask, take
from teller_core.data.trace import Layer, kernel_totals
from teller_core.lab.benchmark.cut_trees import CutTree, cut_tree

COUNTED_NS = 200_000_000
"""A counter that is not read has not changed: what it grew by, it grew by in the last two of the sampler's turns."""

Interval = tuple[int, int]


class Inside:
    """Whether something lies inside one of ``intervals``: ns, both ends belong to it. Those that overlap are one."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        whole: list[Interval] = []
        for low, high in sorted(intervals):
            if whole and low <= whole[-1][1]:
                whole[-1] = whole[-1][0], max(high, whole[-1][1])
            else:
                whole.append((low, high))
        self.intervals = whole
        self._low = np.array([low for low, _ in whole], dtype=np.int64)
        self._high = np.array([high for _, high in whole], dtype=np.int64)

    def __call__(self, start: Int64, stop: Int64) -> Mask:
        """bool: from ``start`` to ``stop`` it lies in one interval. False where a time is UNKNOWN."""
        known = (start != UNKNOWN) & (stop != UNKNOWN)
        return known & (start >= self.low(start)) & (stop <= self.high(start)) & (start <= stop)

    def low(self, time: Int64) -> Int64:
        """int64 ns: the beginning of the last interval that begins by ``time``; the largest number where none does."""
        return self._of(self._low, time, np.iinfo(np.int64).max)

    def high(self, time: Int64) -> Int64:
        """int64 ns: the end of that interval; the smallest number where there is none."""
        return self._of(self._high, time, UNKNOWN)

    def _of(self, column: Int64, time: Int64, other: int) -> Int64:
        place = np.searchsorted(self._low, time, side="right") - 1
        return np.where(place >= 0, column[place], other) if len(column) else np.full(len(time), other, dtype=np.int64)


class _Places(NamedTuple):
    """Where rows of the whole lie in the part; -1 for those that do not."""

    steps: Int32
    requests: Int32
    trees: Sequence[CutTree | None]


def cut(capture: Capture, intervals: Sequence[Interval]) -> Capture:
    """The part of ``capture``, with its trees, that lies wholly inside ``intervals`` (Unix ns), each row in one of them.

    Requests lie from the first to the last of their times, steps too, those without any at their line's; lines at theirs, and
    what the service said when it started stays. Times and ids are unchanged, positions and request numbers count anew. What is
    told of the capture as a whole alone (``metrics``, ``balance``) is left out.
    """
    inside = Inside(intervals)
    steps = inside(*_span_or_line(capture))
    requests = inside(capture.requests.begin(), capture.requests.end())
    trees = [None if rank.tree is None else cut_tree(rank.tree, rank.shift, inside) for rank in capture.ranks]
    places = _Places(_places(steps), _places(requests), trees)
    collectives, meetings = _collectives(capture, inside, places)
    work = _work(capture.work, places)
    absences, disagreements, buckets = capture.absences, capture.disagreements, capture.buckets
    readings = capture.readings
    return replace(
        capture,
        id=sha256(f"{capture.id} {inside.intervals}".encode()).hexdigest()[: len(capture.id)],
        ranks=[_rank(rank, tree) for rank, tree in zip(capture.ranks, trees, strict=True)],
        steps=take(capture.steps, steps),
        work=work,
        requests=_requests(capture.requests, requests),
        participation=_participation(capture.participation, places),
        tokens=_tokens(capture.tokens, requests),
        lines=_lines(capture, inside, places),
        pauses=take(capture.pauses, inside(capture.pauses.start, capture.pauses.start + capture.pauses.dur)),
        samples=_samples(capture.samples, inside),
        collectives=collectives,
        meetings=meetings,
        absences=take(absences, inside(absences.since, absences.since)),
        disagreements=take(disagreements, inside(disagreements.time, disagreements.time)),
        transfers=_transfers(capture.transfers, places),
        readings=take(readings, inside(readings.start, readings.stop)),
        buckets=take(buckets, inside(buckets.start, buckets.stop)),
        metrics={},
        balance=Balance(),
        tier=3 if capture.tier == 4 and not _profiled(work, trees) else capture.tier,
    )


def without_spans(capture: Capture, gone: Mapping[int, Mask]) -> Capture:
    """``capture`` without the spans that are ``gone``: bool a row of the tree of the rank at each position. What hung below one
    hangs below the next one above it.
    """
    trees: list[CutTree | None] = []
    for at, rank in enumerate(capture.ranks):
        kept = ~gone[at] if rank.tree is not None and at in gone else None
        trees.append(None if rank.tree is None else cut_tree(rank.tree, rank.shift, partial(_these, kept)))
    steps, requests = len(capture.steps.engine), len(capture.requests.number)
    places = _Places(np.arange(steps, dtype=np.int32), np.arange(requests, dtype=np.int32), trees)
    rows, meetings = capture.collectives, capture.meetings
    return replace(
        capture,
        ranks=[_rank(rank, tree) for rank, tree in zip(capture.ranks, trees, strict=True)],
        work=_work(capture.work, places),
        collectives=replace(rows, row=_rows(rows.row, rows.rank, trees)),
        meetings=replace(meetings, kept=_rows(meetings.kept, meetings.late, trees)),
    )


def _these(kept: Mask | None, start: Int64, stop: Int64) -> Mask:
    """``kept``, whenever they were; all for None."""
    return np.ones(len(start), dtype=np.bool_) if kept is None else kept


def _profiled(work: StepWork, trees: Sequence[CutTree | None]) -> bool:
    """Whether a step has operators or kernels: ranges alone are no profile."""
    deep = [
        found is not None and bool(np.isin(found.tree.trace.layer, (Layer.OPERATOR, Layer.KERNEL)).any())
        for found in trees
    ]
    return bool(np.array(deep or [False])[work.rank[work.row >= 0]].any())


def span_of_steps(steps: Steps) -> tuple[Int64, Int64]:
    """From the first to the last of each step's known times, UNKNOWN where none is."""
    times = np.stack([steps.scheduled, steps.launched, steps.finished, steps.delivered])
    first = np.where(times == UNKNOWN, np.iinfo(np.int64).max, times).min(axis=0)
    return np.where((times == UNKNOWN).all(axis=0), UNKNOWN, first), times.max(axis=0)


def _span_or_line(capture: Capture) -> tuple[Int64, Int64]:
    """:func:`span_of_steps`; of a step without a time, twice that of the first line that tells of it."""
    first, last = span_of_steps(capture.steps)
    told = np.full(len(first), UNKNOWN, dtype=np.int64)
    telling = np.flatnonzero((capture.lines.step >= 0) & (capture.lines.step < len(first)))[::-1]
    told[capture.lines.step[telling]] = capture.lines.time[telling]
    return np.where(last == UNKNOWN, told, first), np.where(last == UNKNOWN, told, last)


def _places(kept: Mask) -> Int32:
    return np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)


def _at(places: Int32, position: Int32) -> Int32:
    """Where each ``position`` is now, -1 where it is not, or was -1."""
    if not len(places):
        return np.full(len(position), -1, dtype=np.int32)
    return np.where(position >= 0, places[position], np.int32(-1)).astype(np.int32)


def _rank(rank: Rank, found: CutTree | None) -> Rank:
    if found is None:
        return rank
    kernels, time = kernel_totals(found.tree.trace)
    return replace(rank, tree=found.tree, kernels=kernels, kernel_time=time)


def _requests(requests: Requests, kept: Mask) -> Requests:
    part = take(requests, kept)
    return replace(part, number=np.arange(1, len(part.number) + 1, dtype=np.int32))


def _participation(rows: Participation, places: _Places) -> Participation:
    step, request = _at(places.steps, rows.step), _at(places.requests, rows.request)
    return take(replace(rows, step=step, request=request), (step >= 0) & (request >= 0))


def _transfers(rows: Transfers, places: _Places) -> Transfers:
    request = _at(places.requests, rows.request)
    return take(replace(rows, request=request), request >= 0)


def _tokens(tokens: TokenTimes, kept: Mask) -> TokenTimes:
    count = np.diff(tokens.offset)
    offset = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count[kept], dtype=np.int64)])
    return TokenTimes(offset, tokens.time[np.repeat(kept, count)])


def _lines(capture: Capture, inside: Inside, places: _Places) -> Lines:
    lines = capture.lines
    step, request = _at(places.steps, lines.step), _at(places.requests, lines.request)
    kept = inside(lines.time, lines.time) | _of_start(lines, capture.requests)
    return take(replace(lines, step=step, request=request), kept)


def _of_start(lines: Lines, requests: Requests) -> Mask:
    """bool: what the service said of itself before it served anybody, which holds of all its life."""
    begin = requests.begin()
    first = begin[begin != UNKNOWN].min(initial=np.iinfo(np.int64).max)
    if first == np.iinfo(np.int64).max:
        return np.zeros(len(lines.time), dtype=np.bool_)
    known = np.array([bool(rule) for rule in lines.rule], dtype=np.bool_)
    alone = (lines.step < 0) & (lines.request < 0)
    return known & alone & (lines.time != UNKNOWN) & (lines.time + lines.after.clip(0) < first)


def _samples(samples: Samples, inside: Inside) -> Samples:
    """What grew inside. An interval that began before is cut where it surely grew after that."""
    low = inside.low(samples.stop)
    late = inside(samples.stop, samples.stop)
    late[late] = (samples.stop - low)[late] >= COUNTED_NS  # elsewhere there may be no beginning to subtract
    kept = inside(samples.start, samples.stop) | late
    return take(replace(samples, start=np.where(late, np.maximum(samples.start, low), samples.start)), kept)


def _work(work: StepWork, places: _Places) -> StepWork:
    step = _at(places.steps, work.step)
    row, stop = work.row.copy(), work.row_stop.copy()
    for position, found in enumerate(places.trees):
        own = (work.rank == position) & (work.row >= 0)
        row[own], stop[own] = (-1, -1) if found is None else (found.before[work.row[own]], found.before[stop[own]])
    empty = row >= stop
    row[empty] = stop[empty] = -1
    return take(replace(work, step=step, row=row, row_stop=stop), step >= 0)


def _collectives(capture: Capture, inside: Inside, places: _Places) -> tuple[Collectives, Meetings]:
    """The collectives, and the meetings of those. A ``sequence`` behind all meetings is a number of its call's own."""
    rows, meetings = capture.collectives, capture.meetings
    kept = inside(rows.start, rows.start + rows.dur)
    count = len(meetings.came)
    of_meeting = rows.sequence < count
    met = np.zeros(count, dtype=np.bool_)
    met[rows.sequence[kept & of_meeting]] = True
    sequence = rows.sequence - count + int(met.sum())
    sequence[of_meeting] = _places(met)[rows.sequence[of_meeting]]
    moved = replace(
        rows, sequence=sequence, step=_at(places.steps, rows.step), row=_rows(rows.row, rows.rank, places.trees)
    )
    chosen = take(replace(meetings, kept=_rows(meetings.kept, meetings.late, places.trees)), met)
    return take(moved, kept), chosen


def _rows(row: Int32, rank: Int32, trees: Sequence[CutTree | None]) -> Int32:
    """Where each ``row`` of the tree of its ``rank`` is now."""
    found = np.full(len(row), -1, dtype=np.int32)
    for position, tree in enumerate(trees):
        own = (rank == position) & (row >= 0)
        if tree is not None:
            found[own] = tree.place(row[own])
    return found
