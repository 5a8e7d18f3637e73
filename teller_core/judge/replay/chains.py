"""What each thread did, moment by moment: the begins and ends of its calls in order, and whose time passed between them."""

from typing import NamedTuple

import numpy as np

from teller_core.data.linked import Linked
from teller_core.data.table import Int32, Int64, Mask

NOBODY = -1
MOSTLY = 0.5
"""A thread stood still for a pause of its process where it recorded nothing for this share of it."""


class Nodes(NamedTuple):
    """How moments are numbered: row ``r`` begins at moment ``r`` and ends at ``rows + r``; exchange ``x`` (see Meets) is over at
    ``2 rows + x``; what is behind those are begins and ends of pauses on threads.

    Owners of time: rows, then pauses (``Stops``), then meetings, then lanes: silence between the calls of a thread.
    """

    rows: int
    stops: int
    meetings: int
    exchanges: int

    @property
    def met(self) -> int:
        """The first moment of an exchange."""
        return 2 * self.rows

    @property
    def pieces(self) -> int:
        """The first moment of a pause."""
        return 2 * self.rows + self.exchanges

    @property
    def stop_owner(self) -> int:
        """The first owner that is a pause."""
        return self.rows

    @property
    def meeting_owner(self) -> int:
        """The first owner that is a meeting."""
        return self.rows + self.stops

    @property
    def lane_owner(self) -> int:
        """The first owner that is a lane."""
        return self.rows + self.stops + self.meetings


class Chains(NamedTuple):
    """The moments of threads, one behind the other. ``order`` int32: moments by lane and time; ``lane`` int32, ``before``
    int32 (the moment before it on its lane, NOBODY for its first one), ``owner`` int32 (whose time passed since) and ``time``
    int64 ns an entry of ``order``; ``pieces``: how many pieces of pauses were put between.
    """

    order: Int32
    lane: Int32
    before: Int32
    owner: Int32
    time: Int64
    pieces: int


def chains(linked: Linked, nodes: Nodes) -> Chains:
    """The moments of all threads, the pauses of their processes among them."""
    order, lane = _in_order(linked, nodes.rows)
    time = (
        np.where(order < nodes.rows, linked.start[order % nodes.rows], linked.end[order % nodes.rows])
        if len(order)
        else (np.empty(0, dtype=np.int64))
    )
    back = np.flatnonzero((np.diff(time) < 0) & (lane[1:] == lane[:-1]))
    if len(back):  # calls that cross one another
        sort = np.lexsort((np.arange(len(order)), time, lane))
        order, lane, time = order[sort], lane[sort], time[sort]
    owner = _owners(linked, nodes, order, lane)
    return _linked_up(_with_stops(linked, nodes, Chains(order, lane, order, owner, time, 0)))


def _linked_up(chained: Chains) -> Chains:
    """``chained`` with the moment before each."""
    lane, order = chained.lane, chained.order
    first = np.append(True, lane[1:] != lane[:-1])[: len(lane)]
    before = np.where(first, NOBODY, np.append(np.int32(NOBODY), order[:-1])[: len(order)])
    return chained._replace(before=before.astype(np.int32))


def _in_order(linked: Linked, rows: int) -> tuple[Int32, Int32]:
    """The begins and ends of host rows by lane, as they nest, and the lane of each.

    The calls of a lane are in pre-order, and so a call begins behind what began before it and ended before it: twice its place
    less its depth.
    """
    host = np.flatnonzero(linked.host)
    host = host[np.argsort(linked.lane[host], kind="stable")]
    lane = linked.lane[host].astype(np.int64)
    place = np.arange(len(host))
    key = lane * (rows + 1) + host
    size = np.searchsorted(key, lane * (rows + 1) + linked.stop[host]) - place
    change = np.zeros(len(host) + 1, dtype=np.int64)
    change[:-1] = 1
    np.subtract.at(change, place + size, 1)
    depth = np.cumsum(change)[:-1] - 1
    begin = 2 * place - depth
    order = np.empty(2 * len(host), dtype=np.int32)
    lanes = np.empty(2 * len(host), dtype=np.int32)
    order[begin], lanes[begin] = host, lane
    end = begin + 2 * size - 1
    order[end], lanes[end] = host + rows, lane
    return order, lanes


def _owners(linked: Linked, nodes: Nodes, order: Int32, lane: Int32) -> Int32:
    """Whose time passed before each moment: of the call that was open last, else of the lane's silence."""
    above = linked.parent
    same = (above >= 0) & (linked.lane[np.maximum(above, 0)] == linked.lane)
    over = np.where(same, above, nodes.lane_owner + linked.lane)
    last = np.append(np.int32(0), order[:-1])[: len(order)]
    begun = last < nodes.rows
    return np.where(begun, last, over[np.where(begun, 0, last - nodes.rows)]).astype(np.int32) if len(over) else last


def _with_stops(linked: Linked, nodes: Nodes, chained: Chains) -> Chains:
    """``chained`` with the begins and ends of pauses: on each thread that recorded nothing for most of one."""
    lane = chained.lane
    stopped = np.isin(linked.lane_part[lane], linked.stops.part) & ~_talking(linked)[lane]
    busiest = _busiest(linked)
    pieces = [_pieces(linked, nodes, chained, one, bool(busiest[one])) for one in np.unique(lane[stopped]).tolist()]
    table = np.array([piece for found in pieces for piece in found], dtype=np.int64).reshape(-1, 5).T
    if not table.shape[1]:
        return chained
    at = np.repeat(table[0], 2)
    fresh = np.arange(len(at), dtype=np.int32) + np.int32(nodes.pieces)
    owner = np.stack([chained.owner[table[0]], nodes.stop_owner + table[1]], axis=1).reshape(-1)
    return Chains(
        order=np.insert(chained.order, at, fresh),
        lane=np.insert(lane, at, np.repeat(table[2], 2)),
        before=chained.before,
        owner=np.insert(chained.owner, at, owner),
        time=np.insert(chained.time, at, table[3:].T.reshape(-1)),
        pieces=table.shape[1],
    )


def _pieces(linked: Linked, nodes: Nodes, chained: Chains, lane: int, busiest: bool) -> list[tuple[int, ...]]:
    """(entry of the chains that it comes before, pause, lane, begin, end) of each pause that stopped the thread ``lane``."""
    low, high = np.searchsorted(chained.lane, [lane, lane + 1]).tolist()
    stops = np.flatnonzero(linked.stops.part == linked.lane_part[lane])
    stops = stops[np.argsort(linked.stops.start[stops], kind="stable")]
    start, end = linked.stops.start[stops], linked.stops.end[stops]
    place = np.searchsorted(chained.time[low:high], (start + end) // 2, side="right") + low
    found: list[tuple[int, ...]] = []
    until = np.iinfo(np.int64).min
    for stop, begin, over, where in zip(stops.tolist(), start.tolist(), end.tolist(), place.tolist(), strict=True):
        if not low < where < high or (chained.owner[where] >= nodes.rows and not busiest):
            continue
        since, still = max(begin, int(chained.time[where - 1]), until), min(over, int(chained.time[where]))
        if still - since > MOSTLY * (over - begin):
            found.append((where, stop, lane, since, still))
            until = still
    return found


def _talking(linked: Linked) -> Mask:
    """bool a lane: a thread that does nothing but communicate does so without the interpreter."""
    out = np.zeros(len(linked.lane_part), dtype=np.bool_)
    row = linked.calls.row
    out[linked.lane[row[linked.host[row]]]] = True
    return out


def _busiest(linked: Linked) -> Mask:
    """bool a lane: the thread of its rank that made most calls. Of the others nobody knows whether they were at work in
    silence.
    """
    out = np.zeros(len(linked.lane_part), dtype=np.bool_)
    calls = np.bincount(linked.lane[linked.host], minlength=len(out))
    for part in range(len(linked.parts)):
        mine = np.flatnonzero(linked.lane_part == part)
        out[mine[np.argmax(calls[mine])]] = True
    return out
