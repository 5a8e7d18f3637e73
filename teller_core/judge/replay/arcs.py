"""What moments depend on besides the one before them on their thread: launches, streams, waits, and meetings of ranks."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.graph import Kind
from teller_core.data.linked import Linked
from teller_core.data.table import Int64, Mask
from teller_core.judge.intervals import overlaps, union
from teller_core.judge.replay.chains import Nodes

SYNCHRONOUS = frozenset({"barrier", "all_to_all", "reduce_scatter", "all_reduce", "all_gather"})
"""Kinds of meetings that end on no rank before they began on all."""
SEND, RECEIVE = ("send", "isend"), ("recv", "irecv")
OVERLAPPED = 0.1
"""A collective that shares its device with other work for more of its time is slowed by it by nobody knows how much."""
RANK_MISSING = "a rank of a collective is not here"
SHARED = "a collective shares its device with other work"
COPIED = "a collective is a copy"
NO_ROOT = "nobody says who is the root of a collective"
_NONE = np.empty(0, dtype=np.int64)


class Arcs(NamedTuple):
    """One row an arc: moment ``after`` comes no sooner than moment ``before`` and ``lag`` int64 ns."""

    before: Int64
    after: Int64
    lag: Int64


class Meets(NamedTuple):
    """An entry a meeting: ``time`` int64 ns, when it was over for who had come last, the transfer done; ``transfer`` int64 ns;
    ``known`` bool: replay knows how its ranks depended on one another. ``gives`` and ``gets`` bool a call: others of a known
    meeting needed it to begin; it needed others to begin before it could end.
    """

    time: Int64
    transfer: Int64
    known: Mask
    gives: Mask
    gets: Mask


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
    sends = np.array([_is(name, SEND) for name in names], dtype=np.bool_)
    gets = np.array([_is(name, RECEIVE) for name in names], dtype=np.bool_)
    together = np.array([word in SYNCHRONOUS for word in calls.kind], dtype=np.bool_)
    pair = np.array([word == "send_recv" for word in calls.kind], dtype=np.bool_)
    pair[meeting[sends == gets]] = False  # nobody says who of them sends
    overlapped, copied = np.zeros(count, dtype=np.bool_), np.zeros(count, dtype=np.bool_)
    overlapped[meeting[_overlapped(linked, row)]] = True
    copied[meeting[np.array([name.startswith("Memcpy") for name in names], dtype=np.bool_)]] = True
    for name, missed in (
        (RANK_MISSING, ~calls.whole),
        (SHARED, calls.whole & overlapped),
        (COPIED, calls.whole & copied & ~overlapped),
        (NO_ROOT, calls.whole & ~(together | pair) & ~overlapped & ~copied),
    ):
        cut[name] += int(missed.sum())
    known = calls.whole & ~overlapped & ~copied & (together | pair)
    gives, gets = known[meeting] & (together[meeting] | sends), known[meeting] & (together[meeting] | gets)
    came, over = np.full(count, np.iinfo(np.int64).min), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(came, meeting[gives], linked.start[row[gives]])
    np.minimum.at(over, meeting[gets], linked.end[row[gets]])
    came, over = np.where(known, came, 0), np.where(known, over, 0)
    transfer = np.maximum(over - came, 0)
    return Meets(came + transfer, transfer, known, gives, gets)


def _meetings(linked: Linked, nodes: Nodes, meets: Meets) -> list[Arcs]:
    """From the begin of each call that others needed to the meeting, and from there to the end of each that needed others."""
    row, meeting = linked.calls.row.astype(np.int64), linked.calls.meeting.astype(np.int64)
    into, met = row[meets.gives], meeting[meets.gives]
    out, left = row[meets.gets], meeting[meets.gets]
    return [
        Arcs(into, nodes.met + met, np.zeros(len(into), dtype=np.int64)),
        Arcs(nodes.met + left, out + nodes.rows, np.minimum(linked.end[out] - meets.time[left], 0)),
    ]


def _is(name: str, words: tuple[str, ...]) -> bool:
    return name.lower().rpartition(":")[2].split(" ")[0] in words


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
