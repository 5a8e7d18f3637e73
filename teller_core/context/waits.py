"""What waits in a trace waited for: the work of a device that ended while a call of the host waited, or before a stream went on.

The names are those of CUDA's runtime and driver, of HIP and of MUSA. A row of a lane of synchronizations ("Stream Sync", as
CUPTI records it) below a call tells the stream; its arguments, where PyTorch wrote them, tell the event that was waited for.
"""

import json
import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from teller_core.data.graph import Edges, Kind
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import NO_LINK, Layer
from teller_core.data.tree import ROOT, Tree

WHOLE = re.compile(r"(?:cuda|cu|hip|mu(?:sa)?)(?:Device|Ctx|Context|Thread|Stream)Synchronize")
"""Calls that return when a stream, or all of them, have done what they were given."""
EVENT = re.compile(r"(?:cuda|cu|hip|mu(?:sa)?)Event(?:Synchronize|Query)")
"""Calls that say that the work before a mark is done: they are followed only where the mark is known."""
HOLDS = re.compile(r"(?:cuda|cu|hip|mu(?:sa)?)StreamWaitEvent")
"""Calls that let a stream wait for a mark in another one."""
COPIES = re.compile(r"(?:cuda|cu|hip|mu(?:sa)?)Memcpy")
"""Calls that copy: of pageable memory they return when the copy is done, whatever they are called."""
SYNCS = " syncs"
"""What the name of a stream's lane of synchronizations ends with."""
CLOCKS = 5_000
"""ns: a call may seem to return this long before what it waited for was done: two clocks, some of whole microseconds. In real
traces of six devices it returned 2 to 13 us behind it."""
ANY = -1
_NEVER = np.iinfo(np.int64).min


class Work:
    """The work of the device streams of a tree: its ``rows`` int32, by stream and start, and the ``lane`` int32 of each; of the
    rows ``launched`` int32, in any order, the call, ``caller`` int32. Work of stream ``k`` is ``rows[low[k]:high[k]]``.
    """

    def __init__(self, tree: Tree, rows: Int32, launched: Int32, caller: Int32) -> None:
        self.tree, self.launched, self.caller = tree, launched, caller
        trace = tree.trace
        by_start = np.argsort(trace.start[rows], kind="stable")
        self.rows = rows[by_start][np.argsort(trace.lane[rows][by_start], kind="stable")]
        self.lane = trace.lane[self.rows]
        self.low = np.flatnonzero(np.append(True, self.lane[1:] != self.lane[:-1])) if len(rows) else np.empty(0, int)
        self.high = np.append(self.low[1:], len(rows))

    def in_order(self) -> tuple[Int32, Int32]:
        """Each work and the next of its stream."""
        near = np.flatnonzero(self.lane[1:] == self.lane[:-1])
        return self.rows[near], self.rows[near + 1]

    @cached_property
    def given(self) -> Int64:
        """int64 ns a work: when it was given to its stream, before everything where that is not in these rows."""
        at = np.full(len(self.tree), _NEVER, dtype=np.int64)
        at[self.launched] = self.tree.trace.start[self.caller]
        return at[self.rows]

    @cached_property
    def until(self) -> Int64:
        """int64 ns a work: when it and all before it on its stream were done."""
        return self._so_far(self.tree.trace.start[self.rows] + self.tree.trace.dur[self.rows])

    @cached_property
    def since(self) -> Int64:
        """int64 ns a work: when it and all before it on its stream had been given."""
        return self._so_far(self.given)

    def _so_far(self, value: Int64) -> Int64:
        out = value.copy()
        for low, high in zip(self.low.tolist(), self.high.tolist(), strict=True):
            np.maximum.accumulate(out[low:high], out=out[low:high])
        return out

    def _bounds(self, lane: int) -> tuple[int, int]:
        """Where the work of stream ``lane`` begins and ends among ``rows``; it may have none."""
        at = np.flatnonzero(self.lane[self.low] == lane)
        return (int(self.low[at[0]]), int(self.high[at[0]])) if len(at) else (0, 0)

    def last(self, lane: int, before: Int64, done: Int64) -> Int64:
        """int64 a question: the place among ``rows`` of the last work of stream ``lane`` that was given ``before`` a time and
        done at another, -1 for none.
        """
        low, high = self._bounds(lane)
        given = np.searchsorted(self.since[low:high], before, side="left")
        ended = np.searchsorted(self.until[low:high], done, side="right")
        place = np.minimum(given, ended) - 1
        return np.where(place >= 0, place + low, -1).astype(np.int64)

    def streams(self) -> list[int]:
        """The lanes that have work."""
        return self.lane[self.low].tolist()

    def first_given(self, lane: int, after: int) -> int:
        """The row of the first work of stream ``lane`` that was given to it after a time, -1 for none."""
        low, high = self._bounds(lane)
        place = low + int(np.searchsorted(self.since[low:high], after, side="right"))
        return int(self.rows[place]) if place < high else -1


class _Mark(NamedTuple):
    """What is known of a wait: the stream that waits (ANY for a host's), the stream of what it waits for (ANY), and when the
    mark that it waits for was put there (None: the wait is for all that was given before it)."""

    waiting: int
    stream: int
    put: int | None


def waits(tree: Tree, work: Work) -> Iterator[Edges]:
    """The edges WAIT and HOLD of a tree."""
    if not len(work.rows):
        return
    trace = tree.trace
    yield (Kind.WAIT, *_copies(tree, work))
    whole, event, holds = (_calls(tree, pattern) for pattern in (WHOLE, EVENT, HOLDS))
    marks = _marks(tree)
    stream = np.array([marks[row].stream if row in marks else ANY for row in whole.tolist()], dtype=np.int64)
    yield (Kind.WAIT, *_waited(tree, work, whole, stream))
    found: list[tuple[int, int]] = []
    held: list[tuple[int, int]] = []
    for row in [*event.tolist(), *holds.tolist()]:
        mark = marks.get(row)
        if mark is None or mark.put is None:
            continue
        end = int(trace.start[row] + trace.dur[row]) + CLOCKS
        host = mark.waiting == ANY
        done = end if host else np.iinfo(np.int64).max
        place = int(work.last(mark.stream, np.array([mark.put]), np.array([done]))[0])
        if place < 0:
            continue
        after = row if host else work.first_given(mark.waiting, int(trace.start[row]))
        if after >= 0:
            (found if host else held).append((int(work.rows[place]), after))
    for kind, pairs in ((Kind.WAIT, found), (Kind.HOLD, held)):
        table = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2)
        yield (kind, table[:, 0], table[:, 1])


def _calls(tree: Tree, pattern: re.Pattern[str]) -> Int64:
    """The host's rows of calls that ``pattern`` names."""
    trace = tree.trace
    named = np.array([pattern.match(name) is not None for name in trace.names], dtype=np.bool_)
    if not named.any():
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(named[trace.name] & (trace.layer == Layer.RUNTIME) & ~trace.on_device)


def _copies(tree: Tree, work: Work) -> tuple[Int32, Int32]:
    """Copies that were done when the call which asked for them returned."""
    trace = tree.trace
    named = np.array([COPIES.match(name) is not None for name in trace.names], dtype=np.bool_)
    call, row = work.caller, work.launched
    back = named[trace.name[call]] & (trace.start[row] + trace.dur[row] <= trace.start[call] + trace.dur[call])
    return row[back], call[back]


def _waited(tree: Tree, work: Work, calls: Int64, stream: Int64) -> tuple[Int64, Int64]:
    """For each of ``calls``, the work given before it that was done last before it returned, on its stream or on any (ANY)."""
    trace = tree.trace
    start, end = trace.start[calls], trace.start[calls] + trace.dur[calls]
    best, ended = np.full(len(calls), -1, dtype=np.int64), np.full(len(calls), _NEVER)
    for lane in work.streams():
        asked = np.flatnonzero((stream == ANY) | (stream == lane))
        place = work.last(lane, start[asked], end[asked] + CLOCKS)
        done = np.where(place >= 0, work.until[place], _NEVER)
        later = done > ended[asked]
        best[asked[later]], ended[asked[later]] = place[later], done[later]
    known = best >= 0
    return work.rows[best[known]].astype(np.int64), calls[known]


def _marks(tree: Tree) -> dict[int, _Mark]:
    """What the records of synchronizations say of the calls above them, by call."""
    trace = tree.trace
    lanes = {(lane.process, lane.thread): at for at, lane in enumerate(trace.lanes) if lane.device}
    syncs = np.array([lane.device and lane.thread.endswith(SYNCS) for lane in trace.lanes], dtype=np.bool_)
    marks: dict[int, _Mark] = {}
    if not syncs.any():
        return marks
    rows = np.flatnonzero(syncs[trace.lane] & (tree.parent != ROOT))
    args = len(trace.arg) == len(trace) and len(trace.link) == len(trace)
    put = _put(tree) if args else {}
    for row in rows.tolist():
        lane, name = trace.lanes[int(trace.lane[row])], trace.names[int(trace.name[row])]
        own = lanes.get((lane.process, lane.thread.removesuffix(SYNCS)), ANY)
        said = _said(trace.args[int(trace.arg[row])]) if args and trace.arg[row] >= 0 else {}
        other = lanes.get((lane.process, str(said.get("wait_on_stream"))), ANY)
        when = put.get(said.get("wait_on_cuda_event_record_corr_id", NO_LINK))
        if name.startswith("Stream Sync"):
            marks[int(tree.parent[row])] = _Mark(ANY, own, None)
        elif other != ANY and when is not None:
            marks[int(tree.parent[row])] = _Mark(own if name.startswith("Stream Wait") else ANY, other, when)
    return marks


def _put(tree: Tree) -> dict[int, int]:
    """When each mark was put into its stream, by correlation id."""
    trace = tree.trace
    rows = _calls(tree, re.compile(r"\w*EventRecord"))
    return dict(zip(trace.link[rows].tolist(), trace.start[rows].tolist(), strict=True))


def _said(text: str) -> dict[str, int]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    found = cast("dict[str, object]", read if isinstance(read, dict) else {})
    return {key: value for key, value in found.items() if isinstance(value, int) and not isinstance(value, bool)}
