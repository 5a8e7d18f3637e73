"""Whose time it was: what each span did itself, waited, or stood still; and each wait charged to who was late."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from teller_core.data.table import Int32, Int64, Mask, UInt8
from teller_core.judge.replay.chains import NOBODY
from teller_core.judge.replay.network import Network

LEAST = 1
_ROOM = 1 << 12


class Whose(IntEnum):
    """To what a part of a wait is charged."""

    ROW = 0
    """The own time of a span: ``of`` is its row."""
    STOP = 1
    """A pause of a process: ``of`` is its position in ``Capture.pauses``."""
    TRANSFER = 2
    """The transfer of a collective, or what a rank took in it beyond: ``of`` is the position in ``Capture.meetings``."""
    SILENCE = 3
    """A thread that recorded nothing: ``of`` is its lane."""
    LATENCY = 4
    """From a launch to the begin of its work, and from work to work: ``of`` is -1."""
    BEFORE = 5
    """What lies before all that was recorded of it: ``of`` is -1."""


@dataclass(frozen=True)
class Times:
    """ns an owner of time (see Nodes), int64: ``own`` (it worked itself, or data moved for it), ``wait`` (inside it, for others);
    ``idle`` int64 a row: its stream stood still before it.
    """

    own: Int64
    wait: Int64
    idle: Int64


@dataclass(frozen=True)
class Waits:
    """One row a wait: ``row`` int32, the span that waited, or a lane whose silence it was (as owners are numbered);
    ``start``, ``end`` int64 ns. One row a charge, by wait: ``wait`` int32, ``owner`` int32, ``whose`` uint8 (:class:`Whose`),
    ``of`` int32, ``ns`` int64. The charges of a wait sum to it.
    """

    row: Int32
    start: Int64
    end: Int64
    wait: Int32
    owner: Int32
    whose: UInt8
    of: Int32
    ns: Int64


def times(graph: Network) -> Times:
    """Self time, waiting and idleness of everything, as recorded."""
    nodes, linked = graph.nodes, graph.linked
    wait = np.zeros(graph.owners, dtype=np.int64)
    moment = graph.chained.order[graph.chained.before != NOBODY]
    passed = graph.time[moment] - graph.time[graph.before[moment]]
    np.add.at(wait, graph.owner[moment], passed - graph.kept.own[moment])
    work = np.flatnonzero(linked.work)
    ran = linked.end[work] - linked.start[work]
    wait[work] = ran - graph.kept.own[work + nodes.rows]
    own = graph.kept.owned.copy()
    call, transfer = _transfers(graph)
    owner = graph.owner[call]
    np.add.at(own, owner, transfer)
    np.subtract.at(wait, owner, transfer)
    idle = np.zeros(len(linked), dtype=np.int64)
    order, near = _on_streams(graph)
    idle[order[near + 1]] = np.maximum(linked.start[order[near + 1]] - linked.end[order[near]], 0)
    return Times(own, wait, idle)


def charged(graph: Network, low: int | None = None, high: int | None = None, least: int = LEAST) -> Waits:
    """The waits of ``least`` ns and more that ended in ``[low, high)`` (all of them by default), each charged to whose time
    it was: along what held each moment up, over threads, streams and ranks.

    A wait is what a thread stood in a call or a silence, or a collective in its begin on a device, until something else had
    ended.
    """
    moment, since, until = _waits(graph)
    owner = graph.owner[moment]
    keep = _asked(since, until, (low, high), least)
    moment, since, until = moment[keep], since[keep], until[keep]
    sources = [_cause(graph, m) for m in moment.tolist()]
    return _charges(graph, sources, owner[keep], (since, until))


def idled(graph: Network, least: int = LEAST) -> Waits:
    """As :func:`charged`, for devices: every time of ``least`` ns and more in which a stream stood still before a row of work,
    charged to whose time it was until that began.
    """
    order, near = _on_streams(graph)
    row, since = order[near + 1], graph.linked.end[order[near]]
    until = graph.linked.start[row]
    keep = until - since >= least
    row, since, until = row[keep], since[keep], until[keep]
    sort = np.argsort(until, kind="stable")
    return _charges(graph, row[sort].tolist(), row[sort], (since[sort], until[sort]))


def _asked(since: Int64, until: Int64, ended: tuple[int | None, int | None], least: int) -> Mask:
    """bool: waits of ``least`` ns and more that ended from the first time of ``ended`` on and before the second, None for any."""
    keep, (low, high) = until - since >= least, ended
    if low is not None:
        keep &= until >= low
    if high is not None:
        keep &= until < high
    return keep


def _on_streams(graph: Network) -> tuple[Int64, Int64]:
    """The work of all streams by stream and start, and the positions there of those that have another behind them."""
    linked = graph.linked
    work = np.flatnonzero(linked.work)
    order = work[np.lexsort((linked.start[work], linked.lane[work]))]
    return order, np.flatnonzero(linked.lane[order[1:]] == linked.lane[order[:-1]])


def _charges(graph: Network, sources: Sequence[int], waiting: Int32 | Int64, bounds: tuple[Int64, Int64]) -> Waits:
    """The waits of ``waiting`` (owners) between ``bounds``, each charged along the way back from its source."""
    room = np.empty((_ROOM, 2), dtype=np.int64)
    parts = [np.empty((0, 2), dtype=np.int64)]
    for source, low, high in zip(sources, bounds[0].tolist(), bounds[1].tolist(), strict=True):
        found, room = path(graph, source, low, high, room)
        parts.append(found)
    every = np.concatenate(parts)
    whose, of = _named(graph, every[:, 0])
    return Waits(
        row=waiting.astype(np.int32),
        start=bounds[0],
        end=bounds[1],
        wait=np.repeat(np.arange(len(sources), dtype=np.int32), [len(part) for part in parts[1:]]),
        owner=every[:, 0].astype(np.int32),
        whose=whose,
        of=of,
        ns=every[:, 1],
    )


def critical(graph: Network, low: int, high: int) -> Waits:
    """Whose time ``[low, high)`` was, walking back from what ended last before ``high``: one wait, that of whoever awaits the
    end.
    """
    rows = graph.nodes.rows
    ends = graph.time[rows : 2 * rows]
    timed = np.flatnonzero((graph.linked.host | graph.linked.work) & (ends <= high))
    last = timed[[np.argmax(ends[timed])]] if len(timed) else timed
    return _charges(graph, (last + rows).tolist(), last, (np.full(len(last), low, dtype=np.int64), ends[last]))


def path(graph: Network, moment: int, low: int, high: int, room: Int64) -> tuple[Int64, Int64]:
    """int64 [n, 2]: whose time it was from ``low`` to ``high``, an owner (-1 a latency, -2 before the recording) and its ns,
    walking back from ``moment``; and the room for the next one, which may have grown.
    """
    from teller_core.judge.replay import passes

    held, moments = graph.held(graph.kept.used), (graph.time, graph.owner)
    while (count := passes.backward(held, moments, moment, (low, high), room)) > len(room):
        room = np.empty((2 * count, 2), dtype=np.int64)
    return room[:count].copy(), room


def _waits(graph: Network) -> tuple[Int64, Int64, Int64]:
    """The moments that came later than what was before them on their thread (of work: than its begin) for the sake of something
    else, since when, and until when that kept them.
    """
    own, rows = graph.kept.own, graph.nodes.rows
    thread = graph.chained.order[graph.chained.before != NOBODY].astype(np.int64)
    calls = graph.linked.calls.row[graph.linked.work[graph.linked.calls.row]].astype(np.int64)
    moment = np.concatenate([thread, calls + rows])
    since = np.concatenate([graph.time[graph.before[thread]], graph.time[calls]])
    until = graph.time[moment] - own[moment]
    took = np.zeros(len(own), dtype=np.int64)
    call, transfer = _transfers(graph)
    took[call] = transfer
    until -= took[moment]
    late = until > since
    order = np.argsort(until[late], kind="stable")
    return moment[late][order], since[late][order], until[late][order]


def _transfers(graph: Network) -> tuple[Int64, Int64]:
    """The ends of calls that their meeting kept, and the ns of its transfer in each."""
    calls, meets = graph.linked.calls, graph.meets
    call = calls.row[meets.out].astype(np.int64) + graph.nodes.rows
    over, transfer = meets.time[meets.leaves], meets.transfer[meets.of[meets.leaves]]
    kept = graph.time[call] - graph.kept.own[call]
    held = over + np.minimum(graph.time[call] - over, 0) == kept
    return call[held], np.minimum(transfer[held], kept[held] - graph.time[call[held] - graph.nodes.rows])


def _cause(graph: Network, moment: int) -> int:
    """The moment that kept ``moment``: the last of those it depends on."""
    arcs = np.arange(int(graph.first[moment]), int(graph.first[moment + 1]))
    arcs = arcs[graph.kept.used[arcs] > 0]
    return int(graph.source[arcs[np.argmax(graph.time[graph.source[arcs]] + graph.lag[arcs])]])


def _named(graph: Network, owner: Int64) -> tuple[UInt8, Int32]:
    """What owners are, and which: rows and lanes by number, pauses and meetings by their position in the capture."""
    nodes, linked = graph.nodes, graph.linked
    bounds = np.array([0, nodes.stop_owner, nodes.meeting_owner, nodes.lane_owner])
    kind = np.searchsorted(bounds, owner, side="right") - 1
    whose = np.where(owner == NOBODY, Whose.LATENCY, np.where(owner < NOBODY, Whose.BEFORE, kind)).astype(np.uint8)
    of = np.where(owner < 0, NOBODY, owner - bounds[np.maximum(kind, 0)])
    for what, table in ((Whose.STOP, linked.stops.at), (Whose.TRANSFER, linked.calls.at)):
        mine = whose == what
        of[mine] = table[of[mine]]
    return whose, of.astype(np.int32)
