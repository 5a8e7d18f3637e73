"""What moments depend on besides the one before them on their thread: launches, streams, waits, and meetings of ranks."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.graph import Kind
from teller_core.data.linked import Linked
from teller_core.data.table import Int32, Int64, Mask
from teller_core.judge.intervals import overlaps, union
from teller_core.judge.replay.chains import Nodes

SYNCHRONOUS = frozenset({"barrier", "all_to_all", "reduce_scatter", "all_reduce", "all_gather"})
"""Kinds of meetings that end on no rank before they began on all."""
FANS, GATHERS = frozenset({"broadcast", "scatter", "send_recv"}), frozenset({"reduce", "gather"})
"""Kinds in which all wait for the root and it for nobody; and in which it waits for all and they for nobody."""
OVERLAPPED = 0.1
"""A collective that shares its device with other work for more of its time is slowed by it by nobody knows how much."""
RANK_MISSING = "a rank of a collective is not here"
SHARED = "a collective shares its device with other work"
COPIED = "a collective is a copy"
NO_ROOT = "nobody says who is the root of a collective"
NOT_FREE = "who needs nobody in a collective may have waited in it"
UNFELT = 20_000
"""ns: what a call that needs nobody may have waited without being taken for one that did."""
_NONE = np.empty(0, dtype=np.int64)


class Arcs(NamedTuple):
    """One row an arc: moment ``after`` comes no sooner than moment ``before`` and ``lag`` int64 ns."""

    before: Int64
    after: Int64
    lag: Int64


class Meets(NamedTuple):
    """An entry a meeting: ``known`` bool, replay knows how its ranks depended on one another; ``transfer`` int64 ns, what each
    took after those it needed had come, at least.

    A known meeting is one exchange between those who need one another, or, where all get from one, an exchange of each with that
    one. An entry an exchange: ``of`` int64, its meeting; ``time`` int64 ns: all had come, the transfer was done. An entry a pair:
    call ``into`` had to begin before exchange ``enters``; call ``out`` could not end before exchange ``leaves``; all int64.
    """

    known: Mask
    transfer: Int64
    of: Int64
    time: Int64
    into: Int64
    enters: Int64
    out: Int64
    leaves: Int64


def arcs_of(linked: Linked, nodes: Nodes, meets: Meets) -> list[Arcs]:
    """All arcs but those of the threads themselves, and but those that are only guessed at."""
    return [*_device(linked, nodes), *_waits(linked, nodes), *_meetings(linked, nodes, meets)]


def _device(linked: Linked, nodes: Nodes) -> list[Arcs]:
    """Work ends after it began, begins after its launch and the least latency of its stream, and after the work before it."""
    graph, start, end = linked.graph, linked.start, linked.end
    work = np.flatnonzero(linked.work)
    launch = graph.of(Kind.LAUNCH)
    call, done = graph.before[launch].astype(np.int64), graph.after[launch].astype(np.int64)
    latency = start[done] - start[call]
    least = np.full(len(linked.lane_part), np.iinfo(np.int64).max)
    np.minimum.at(least, linked.lane[done], latency)
    stream = graph.of(Kind.STREAM)
    early, late = graph.before[stream].astype(np.int64), graph.after[stream].astype(np.int64)
    overlap = np.minimum(start[late] - end[early], 0)
    over = overlap < 0
    held = graph.of(Kind.HOLD)
    source, target = graph.before[held].astype(np.int64), graph.after[held].astype(np.int64)
    return [
        Arcs(work, work + nodes.rows, np.zeros(len(work), dtype=np.int64)),
        Arcs(call, done, least[linked.lane[done]] if len(done) else _NONE),
        Arcs(early + nodes.rows, late, overlap),
        Arcs(early[over], late[over], np.zeros(int(over.sum()), dtype=np.int64)),
        Arcs(source + nodes.rows, target, np.minimum(start[target] - end[source], 0)),
    ]


def _waits(linked: Linked, nodes: Nodes) -> list[Arcs]:
    wait = linked.graph.of(Kind.WAIT)
    done, call = linked.graph.before[wait].astype(np.int64), linked.graph.after[wait].astype(np.int64)
    lag = np.minimum(linked.end[call] - linked.end[done], 0)
    return [Arcs(done + nodes.rows, call + nodes.rows, lag)]


def meets_of(linked: Linked, names: Sequence[str], cut: Counter[str]) -> Meets:
    """The meetings of the calls, whose ``names`` are of their rows. What replay cannot know of is counted in ``cut``, by why."""
    calls, count = linked.calls, len(linked.calls.kind)
    row, meeting = calls.row.astype(np.int64), calls.meeting
    rooted = np.zeros(count, dtype=np.bool_)
    rooted[meeting[calls.root]] = True
    together, fans, gathers = (
        np.array([word in of for word in calls.kind], bool) for of in (SYNCHRONOUS, FANS, GATHERS)
    )
    fans, gathers = fans & rooted, gathers & rooted
    overlapped, copied, waited = (np.zeros(count, dtype=np.bool_) for _ in range(3))
    overlapped[meeting[_overlapped(linked, row)]] = True
    copied[meeting[np.array([name.startswith("Memcpy") for name in names], dtype=np.bool_)]] = True
    frees = (fans[meeting] & calls.root) | (gathers[meeting] & ~calls.root)
    waited[meeting[frees & _may_have_waited(linked, row, meeting)]] = True
    known = np.ones(count, dtype=np.bool_)
    for name, why in (
        (RANK_MISSING, ~calls.whole),
        (SHARED, overlapped),
        (COPIED, copied),
        (NO_ROOT, ~(together | fans | gathers)),
        (NOT_FREE, waited),
    ):
        cut[name] += int((known & why).sum())
        known = known & ~why
    return _exchanges(linked, known, fans, gathers)


def _exchanges(linked: Linked, known: Mask, fans: Mask, gathers: Mask) -> Meets:
    """Meets of the ``known`` meetings; bool a meeting: ``fans`` have one who gives, ``gathers`` one who gets."""
    row, meeting, root = linked.calls.row.astype(np.int64), linked.calls.meeting.astype(np.int64), linked.calls.root
    alone = np.flatnonzero(known & ~fans)
    place = np.full(len(known), -1, dtype=np.int64)
    place[alone] = np.arange(len(alone))
    shared = np.flatnonzero(place[meeting] >= 0)
    gets = shared[~gathers[meeting[shared]] | root[shared]]
    source = np.full(len(known), -1, dtype=np.int64)
    source[meeting[root]] = np.flatnonzero(root)
    fan = np.flatnonzero((known & fans)[meeting] & ~root)
    own = len(alone) + np.arange(len(fan))
    into = np.concatenate([shared, source[meeting[fan]], fan])
    enters = np.concatenate([place[meeting[shared]], own, own])
    out, leaves = np.append(gets, fan), np.append(place[meeting[gets]], own)
    of = np.append(alone, meeting[fan])
    came, took = np.full(len(of), np.iinfo(np.int64).min), np.full(len(known), np.iinfo(np.int64).max)
    np.maximum.at(came, enters, linked.start[row[into]])
    np.minimum.at(took, of[leaves], linked.end[row[out]] - came[leaves])
    transfer = np.where(known, np.maximum(took, 0), 0)
    return Meets(known, transfer, of, came + transfer[of], into, enters, out, leaves)


def _meetings(linked: Linked, nodes: Nodes, meets: Meets) -> list[Arcs]:
    """From the begin of each call that others needed to the exchange, and from there to the end of each that needed others."""
    row = linked.calls.row.astype(np.int64)
    into, out = row[meets.into], row[meets.out]
    return [
        Arcs(into, nodes.met + meets.enters, np.zeros(len(into), dtype=np.int64)),
        Arcs(nodes.met + meets.leaves, out + nodes.rows, np.minimum(linked.end[out] - meets.time[meets.leaves], 0)),
    ]


def _may_have_waited(linked: Linked, row: Int64, meeting: Int32) -> Mask:
    """bool a call: another one of its meeting began while it was there, a felt share of its time after it. What it did until
    then may have been a wait, as where a device hands over no more than the others take.
    """
    start, end, count = linked.start[row], linked.end[row], len(row)
    begins = np.append(np.zeros(count, dtype=np.bool_), np.ones(count, dtype=np.bool_))  # at one time, ends come first
    order = np.lexsort((begins, np.append(end, start), np.append(meeting, meeting)))
    place = np.empty(2 * count, dtype=np.int64)
    place[order] = np.maximum.accumulate(np.where(begins[order], np.arange(2 * count), 0))
    latest = np.minimum(np.append(end, start)[order[place[:count]]], end)
    return latest - start > np.maximum(OVERLAPPED * (end - start), UNFELT)


def _overlapped(linked: Linked, row: Int64) -> Mask:
    """bool a call: its device did other work for a felt share of its time."""
    out = np.zeros(len(row), dtype=np.bool_)
    calls = np.zeros(len(linked), dtype=np.bool_)
    calls[row] = True
    part = linked.lane_part[linked.lane]
    for at in np.unique(part[row[linked.work[row]]]).tolist():
        own = np.flatnonzero(linked.work[row] & (part[row] == at))
        busy = np.flatnonzero(linked.work & ~calls & (part == at))
        low, high = linked.start[row[own]], linked.end[row[own]]
        shared = overlaps(union(linked.start[busy], linked.end[busy]), low, high)
        out[own] = shared > OVERLAPPED * np.maximum(high - low, 1)
    return out
