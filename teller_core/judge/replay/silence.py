"""What a thread did while it recorded nothing, and a stream while it stood still: work, a wait for what is known, or unknown.

A call of the runtime that lasts, a silence between calls, and a stream that stands still though it was given work may be
waits that nobody recorded. Where what they may have waited for ended just before, and nothing that was given was left, they
are one. Else they are unknown: replay keeps them as they are, or lets them end with what ended in them last.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from teller_core.data.graph import Kind
from teller_core.data.linked import Linked
from teller_core.data.table import Int64, Mask, UInt8
from teller_core.data.trace import Layer
from teller_core.judge.replay.arcs import Arcs
from teller_core.judge.replay.chains import NOBODY, Chains, Nodes

SHORT = 100_000
"""ns: between two calls a program in Python computes tens of microseconds. What is longer may be a wait."""
SHORT_ON_DEVICE = 20_000
"""ns: a stream that has work begins it within some microseconds."""
AWAKE = 200_000
"""ns: a thread is awake this soon after what it waited for: real ones took 50 to 180 us."""
CLEAR = 5
"""A wait that ended within this part of itself behind something hardly did so by chance."""
SCOPES = (Layer.REQUEST, Layer.ENGINE, Layer.PYTHON, Layer.LOG)
"""Layers of calls that hold calls: their own time is silence too."""


class Silence(IntEnum):
    """What time on a thread was."""

    WORK = 0
    WAIT = 1
    UNKNOWN = 2


class Guesses(NamedTuple):
    """``sure``: arcs of waits that nobody recorded; ``perhaps``: those by which unknown time may shrink. ``what`` uint8 an
    entry of the chains: a :class:`Silence`; ``other`` bool an entry of the chains: time of unknown use with nothing that it
    could have waited for.
    """

    sure: Arcs
    perhaps: Arcs
    what: UInt8
    other: Mask


def guesses(linked: Linked, nodes: Nodes, chained: Chains, left: Int64) -> Guesses:
    """``left`` int64 ns a moment: what no recorded dependency explains of the time before it."""
    handed = _handed(linked, nodes, chained)
    sure, perhaps, what, other = _on_threads(linked, nodes, chained, left, handed[0])
    what[handed[0]] = Silence.WAIT
    target = chained.order[handed[0]].astype(np.int64)
    waited = Arcs(handed[1], target, np.zeros(len(target), dtype=np.int64))
    still, maybe = _on_streams(linked, nodes, left)
    return Guesses(_joined([waited, sure, still]), _joined([perhaps, maybe]), what, other)


def _joined(parts: Sequence[Arcs]) -> Arcs:
    return Arcs(*(np.concatenate([getattr(part, name) for part in parts]) for name in Arcs._fields))


def _on_threads(
    linked: Linked, nodes: Nodes, chained: Chains, left: Int64, handed: Int64
) -> tuple[Arcs, Arcs, UInt8, Mask]:
    what = np.zeros(len(chained.order), dtype=np.uint8)
    passed = np.where(chained.before == NOBODY, 0, np.diff(chained.time, prepend=0))
    rest = np.where(chained.before == NOBODY, 0, left[chained.order])
    what[passed > rest] = Silence.WAIT
    rest[handed] = 0
    owner = chained.owner
    quiet = (owner >= nodes.lane_owner) | ((owner < nodes.rows) & _may_wait(linked)[np.minimum(owner, nodes.rows - 1)])
    unclear = np.flatnonzero(quiet & (rest > SHORT))
    rest, until = rest[unclear], chained.time[unclear]
    done, source, drained = _ended(linked, chained, unclear)
    inside = done > until - rest
    tail = np.where(inside, until - done, 0)
    sure = inside & drained & (tail <= AWAKE) & (tail * CLEAR <= rest)
    what[unclear] = np.where(sure, Silence.WAIT, Silence.UNKNOWN)
    other = np.zeros(len(what), dtype=np.bool_)
    other[unclear[~inside]] = True
    target = chained.order[unclear].astype(np.int64)
    return _arcs(source, target, sure), _arcs(source, target, inside & ~sure), what, other


def _may_wait(linked: Linked) -> Mask:
    """bool a row: its own time may be a wait: a scope, a call of the runtime, or one that hands over to other ranks."""
    kinds = np.array([*SCOPES, Layer.RUNTIME, Layer.COMMUNICATION], dtype=np.uint8)
    return np.isin(linked.layer, kinds)


def _arcs(source: Int64, target: Int64, use: Mask) -> Arcs:
    return Arcs(source[use], target[use], np.zeros(int(use.sum()), dtype=np.int64))


def _handed(linked: Linked, nodes: Nodes, chained: Chains) -> tuple[Int64, Int64]:
    """The entries of the chains that end a wait for a call which the thread had handed over to a thread of its own, and the
    end of that call: it recorded nothing between handing it over and the end of the call.
    """
    launch = np.flatnonzero(linked.graph.of(Kind.LAUNCH))
    launch = launch[linked.host[linked.graph.after[launch]]]
    found: list[tuple[int, int]] = []
    for call, given in zip(linked.graph.before[launch].tolist(), linked.graph.after[launch].tolist(), strict=True):
        low, high = np.searchsorted(chained.lane, [linked.lane[call], linked.lane[call] + 1]).tolist()
        entry = low + int(np.searchsorted(chained.time[low:high], linked.end[given]))
        if low < entry < high:
            begun, owner = int(chained.before[entry]), int(chained.owner[entry])
            if begun == call + nodes.rows or owner == call or (begun >= nodes.pieces and owner >= nodes.lane_owner):
                found.append((entry, given + nodes.rows))
    table = np.array(sorted(found), dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def _ended(linked: Linked, chained: Chains, unclear: Int64) -> tuple[Int64, Int64, Mask]:
    """For each unclear stretch, the last end before its own of what its rank was given to do elsewhere, that moment, and whether
    all that had been given before it was done by then.
    """
    when, source = np.full(len(unclear), np.iinfo(np.int64).min), np.zeros(len(unclear), dtype=np.int64)
    drained = np.zeros(len(unclear), dtype=np.bool_)
    launched, part = _launched(linked), linked.lane_part[linked.lane]
    given_work = linked.work | (linked.host & (launched > np.iinfo(np.int64).min))
    stretch_part = linked.lane_part[chained.lane[unclear]]
    for at in np.unique(stretch_part).tolist():
        mine = np.flatnonzero(stretch_part == at)
        work = np.flatnonzero(given_work & (part == at))
        if not len(work):
            continue
        until, since = chained.time[unclear[mine]], chained.time[unclear[mine] - 1]
        by_end = work[np.argsort(linked.end[work], kind="stable")]
        place = np.searchsorted(linked.end[by_end], until, side="left") - 1
        found = place >= 0
        when[mine[found]] = linked.end[by_end[place[found]]]
        source[mine[found]] = by_end[place[found]] + len(linked)
        by_launch = work[np.argsort(launched[work], kind="stable")]
        all_done = np.maximum.accumulate(linked.end[by_launch])
        given = np.searchsorted(launched[by_launch], since, side="right") - 1
        drained[mine] = (given >= 0) & (all_done[np.maximum(given, 0)] == when[mine])
    return when, source, drained


def _launched(linked: Linked) -> Int64:
    """int64 ns a row: when it was launched, before all times where that is not known."""
    at = np.full(len(linked), np.iinfo(np.int64).min)
    launch = linked.graph.of(Kind.LAUNCH)
    at[linked.graph.after[launch]] = linked.start[linked.graph.before[launch]]
    return at


def _on_streams(linked: Linked, nodes: Nodes, left: Int64) -> tuple[Arcs, Arcs]:
    """Streams that stood still: perhaps for work of another stream of the device that ended meanwhile."""
    begun = np.zeros(len(linked), dtype=np.bool_)
    begun[linked.graph.after[linked.graph.of(Kind.LAUNCH, Kind.STREAM)]] = True
    row = np.flatnonzero(linked.work & begun & (left[: nodes.rows] > SHORT_ON_DEVICE))
    part = linked.lane_part[linked.lane]
    source, tail = np.full(len(row), NOBODY, dtype=np.int64), np.zeros(len(row), dtype=np.int64)
    for at in np.unique(part[row]).tolist():
        mine = np.flatnonzero(part[row] == at)
        work = np.flatnonzero(linked.work & (part == at))
        by_end = work[np.argsort(linked.end[work], kind="stable")]
        place = np.searchsorted(linked.end[by_end], linked.start[row[mine]], side="left") - 1
        last = by_end[np.maximum(place, 0)]
        tail[mine] = linked.start[row[mine]] - linked.end[last]
        inside = (place >= 0) & (tail[mine] < left[row[mine]]) & (linked.lane[last] != linked.lane[row[mine]])
        source[mine[inside]] = last[inside] + nodes.rows
    sure = (source >= 0) & (tail <= SHORT_ON_DEVICE) & (tail * CLEAR <= left[row])
    return (
        _arcs(source, row.astype(np.int64), sure),
        _arcs(source, row.astype(np.int64), (source >= 0) & ~sure),
    )
