"""The loops of :mod:`nest`, compiled. They work on positions: places of the rows in ``order``, host lanes first.

Every array is made by the caller. ``spare`` arrays have no content before or after.
"""
# ruff: noqa: PLR0917 - numba takes arguments by position.

from typing import Any

import numpy as np

from teller_core.data import trace, tree
from teller_core.data.compiled import compiled, forget_stale, inlined
from teller_core.data.table import Int32, Int64, UInt8
from teller_core.data.trace import NO_LINK, Layer
from teller_core.data.tree import ROOT

_ENGINE, _RUNTIME, _KERNEL, _COMMUNICATION = (
    int(layer) for layer in (Layer.ENGINE, Layer.RUNTIME, Layer.KERNEL, Layer.COMMUNICATION)
)
_MIX, _SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)


@inlined
def _precedes(start: Int64, dur: Int64, one: int, other: int) -> bool:
    return start[one] < start[other] or (start[one] == start[other] and dur[one] > dur[other])


@compiled
def _run_end(rows: Int32, at: int, high: int, start: Int64, dur: Int64) -> int:
    at += 1
    while at < high and not _precedes(start, dur, rows[at], rows[at - 1]):
        at += 1
    return at


@compiled
def sort_by_start(rows: Int32, spare: Int32, low: int, high: int, start: Int64, dur: Int64) -> None:
    """Sort ``rows[low:high]`` by start, the longer first, stably: a merge sort of the runs that are sorted already.

    Profilers write a few sorted runs a lane, so this takes a few passes over the rows.
    """
    while low < high and _run_end(rows, low, high, start, dur) < high:
        at = low
        while at < high:
            middle = _run_end(rows, at, high, start, dur)
            stop = _run_end(rows, middle, high, start, dur) if middle < high else high
            left, right = at, middle
            for put in range(at, stop):
                if right < stop and (left == middle or _precedes(start, dur, rows[right], rows[left])):
                    spare[put] = rows[right]
                    right += 1
                else:
                    spare[put] = rows[left]
                    left += 1
            at = stop
        for at in range(low, high):
            rows[at] = spare[at]


@compiled
def sort_rows(lane: Int32, start: Int64, dur: Int64, order: Int32, spare: Int32, ends: Int64) -> None:
    """Put all rows into ``order``, by lane and then as :func:`sort_by_start`; lane k fills ``order[ends[k]:ends[k + 1]]``.

    ``ends`` holds zeros, one more than there are lanes.
    """
    for row in range(len(lane)):
        ends[lane[row] + 1] += 1
    for k in range(1, len(ends)):
        ends[k] += ends[k - 1]
    for row in range(len(lane)):
        order[ends[lane[row]]] = row
        ends[lane[row]] += 1
    for k in range(len(ends) - 1, 0, -1):
        ends[k] = ends[k - 1]
    ends[0] = 0
    for k in range(len(ends) - 1):
        sort_by_start(order, spare, ends[k], ends[k + 1], start, dur)


@inlined
def _push(heap: Int64, size: int, value: int) -> int:
    at = size
    while at > 0 and heap[(at - 1) // 2] > value:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = value
    return size + 1


@inlined
def _pop(heap: Int64, size: int) -> int:
    size -= 1
    value, at = heap[size], 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[at] = heap[child]
        at = child
    heap[at] = value
    return size


@compiled
def hang(
    start: Int64,
    dur: Int64,
    order: Int32,
    ends: Int64,
    over: Int32,
    after: Int32,
    stack: Int32,
    until: Int64,
    heap: Int64,
) -> int:
    """Parent position (``over``, ROOT for none) and position behind the subtree (``after``) of each position; crossings.

    The stack holds the ranges that may still get children, ends falling upwards. One that ends before the next range
    does is no longer innermost for anything that follows, so it goes for good and each range is pushed and popped once.
    Ranges that went while they were open have their ends in ``heap``: a range that ends after one of them crosses it.
    """
    crossings = 0
    for lane in range(len(ends) - 1):
        depth, crossed = 0, 0
        for position in range(ends[lane], ends[lane + 1]):
            row = order[position]
            begin, end = start[row], start[row] + dur[row]
            while crossed and heap[0] <= begin:
                crossed = _pop(heap, crossed)
            crosses = crossed > 0 and heap[0] < end
            while depth and until[depth - 1] < end:
                depth -= 1
                after[stack[depth]] = position
                if until[depth] > begin:
                    crossed = _push(heap, crossed, until[depth])
                    crosses = True
            over[position] = stack[depth - 1] if depth else ROOT
            stack[depth], until[depth] = position, end
            depth += 1
            crossings += crosses
        for k in range(depth):
            after[stack[k]] = ends[lane + 1]
    return crossings


@inlined
def _slot(keys: Int64, calls: Int32, link: Any) -> np.int64:
    """Slot of ``link`` among ``keys``, or the free one where it belongs. There is always a free one."""
    mask = len(keys) - 1
    at = np.int64((np.uint64(link) * _MIX) >> _SHIFT) & mask
    while calls[at] >= 0 and keys[at] != link:
        at = (at + 1) & mask
    return at


@compiled
def index_calls(link: Int64, layer: UInt8, start: Int64, order: Int32, hosts: int, keys: Int64, calls: Int32) -> None:
    """Put the position of the call of each correlation id into a hash table, the innermost (the latest) of several.

    ``calls`` holds ROOT throughout; both arrays have a power of two of slots, at least twice as many as there are calls.
    """
    for position in range(hosts):
        row = order[position]
        if layer[row] == _RUNTIME and link[row] != NO_LINK:
            slot = _slot(keys, calls, link[row])
            if calls[slot] < 0 or start[row] >= start[order[calls[slot]]]:
                keys[slot], calls[slot] = link[row], position


@compiled
def part_launched(
    link: Int64, layer: UInt8, order: Int32, hosts: int, keys: Int64, calls: Int32, launched: Int32
) -> tuple[int, int]:
    """Move device rows with a call from the end of ``order`` to ``launched``; the rest close up behind the host rows.

    Returns (how many went, how many of the rest are device work). Annotations on a device have no launch.
    """
    gone, work, put = 0, 0, hosts
    for position in range(hosts, len(order)):
        row = order[position]
        kind = layer[row]
        if kind != _ENGINE and link[row] != NO_LINK and calls[_slot(keys, calls, link[row])] >= 0:
            launched[gone] = row
            gone += 1
        else:
            order[put] = row
            put += 1
            work += kind in (_KERNEL, _COMMUNICATION)
    return gone, work


@compiled
def _by_key(
    key: Int32, count: Int64, rows: Int32, other: Int32, rows_out: Int32, key_out: Int32, other_out: Int32
) -> None:
    """Sort by ``key``, stably, counting in ``count``: zeros, two more than the largest key."""
    for k in range(len(key)):
        count[key[k] + 1] += 1
    for k in range(1, len(count)):
        count[k] += count[k - 1]
    for k in range(len(key)):
        put = count[key[k]]
        rows_out[put], key_out[put], other_out[put] = rows[k], key[k], other[k]
        count[key[k]] += 1
    count[:] = 0


@compiled
def attach(
    link: Int64, start: Int64, order: Int32, hosts: int, after: Int32, keys: Int64, calls: Int32, count: Int64,
    launched: Int32, room: Int32,
) -> None:  # fmt: skip
    """Where the launched rows go: ``room[0]``, ``[1]`` and ``[2]`` get the rows, the position each goes before and its call.

    ``launched`` is sorted by start. They come out in the order in which they are put in: by position, and at one position
    those of the deeper call first, for its subtree ends there. ``room`` is int32 (6, rows); ``count`` zeros (hosts + 2,).
    """
    backwards, unused = room[0], room[1]
    for k in range(len(launched)):
        backwards[k] = hosts - calls[_slot(keys, calls, link[launched[k]])]
    _by_key(backwards, count, launched, unused, room[3], room[4], room[5])
    last, child = -1, 0
    for k in range(len(launched)):
        call = hosts - room[4][k]
        if call != last:
            last, child = call, call + 1
        while child < after[call] and start[order[child]] <= start[room[3][k]]:
            child = after[child]
        room[4][k], room[5][k] = child, call
    _by_key(room[4], count, room[3], room[5], room[0], room[1], room[2])


@compiled
def place(
    order: Int32, hosts: int, over: Int32, inserted: Int32, moved: Int32, row: Int32, parent: Int32, stop: Int32
) -> None:
    """Final ``row``, ``parent`` and ``stop`` from host rows, ``inserted`` (as ``room`` of :func:`attach`) and the rest.

    ``moved`` (hosts,) gets the new position of each host position.
    """
    put, k, count = 0, 0, inserted.shape[1]
    for position in range(hosts + 1):
        while k < count and inserted[1, k] == position:
            row[put], parent[put] = inserted[0, k], moved[inserted[2, k]]
            put += 1
            k += 1
        if position < hosts:
            row[put] = order[position]
            parent[put] = moved[over[position]] if over[position] >= 0 else ROOT
            moved[position] = put
            put += 1
    for position in range(hosts, hosts + len(row) - put):
        row[put], parent[put] = order[position], ROOT
        put += 1
    stop[:] = 1
    for at in range(len(row) - 1, -1, -1):
        if parent[at] >= 0:
            stop[parent[at]] += stop[at]
        stop[at] += at


forget_stale(place, trace.__file__, tree.__file__, __file__)
