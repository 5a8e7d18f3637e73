"""The loops of replay, compiled: moments in an order in which nothing comes before what it depends on, their times, and the
way back from a wait to what was late.
"""

from typing import NamedTuple

from teller_core.data.compiled import compiled, inlined
from teller_core.data.table import Int32, Int64, UInt8

NEVER = -(2**63)
LATENCY, BEFORE = -1, -2
"""Whose time it is where no owner has it: between two moments, and before all that was recorded."""


class Held(NamedTuple):
    """What holds moments up: ``before`` int32 a moment, the one before it on its thread; and its arcs, ``first[m]`` to
    ``first[m + 1]``: the moment it comes from (``source`` int32), ``lag`` int64 ns, and ``used`` uint8: 0 where it is left
    out.
    """

    before: Int32
    first: Int64
    source: Int32
    lag: Int64
    used: UInt8


@compiled
def sort_arcs(after: Int32, first: Int64, place: Int64, order: Int64) -> None:
    """``order``: the arcs by ``after``; ``first`` (zeros, one more than moments): where each moment's begin. ``place``: as
    long.
    """
    for k in range(len(after)):
        first[after[k] + 1] += 1
    for m in range(len(first) - 1):
        first[m + 1] += first[m]
        place[m] = first[m]
    for k in range(len(after)):
        m = after[k]
        order[place[m]] = k
        place[m] += 1


@compiled
def topological(before: Int32, arcs: tuple[Int32, Int32], room: tuple[Int32, Int32, Int32, Int32], order: Int32) -> int:
    """``order``: the moments, each behind all it depends on; how many are in it: fewer than all where some depend on themselves.

    ``arcs``: the moment each comes from, and the one it leads to. ``room``: the next of a moment on its chain (all -1), how many
    it still waits for (zeros), its first arc out (all -1), and an entry an arc: the next arc out of the same moment.
    """
    source, target = arcs
    follows, left, out, more = room
    for m in range(len(before)):
        if before[m] >= 0:
            follows[before[m]] = m
            left[m] += 1
    for k in range(len(source)):
        left[target[k]] += 1
        more[k] = out[source[k]]
        out[source[k]] = k
    done = 0
    for m in range(len(before)):
        done = _ready(m, done, left, order)
    at = 0
    while at < done:
        m = int(order[at])
        at += 1
        n = int(follows[m])
        if n >= 0:
            left[n] -= 1
            done = _ready(n, done, left, order)
        k = int(out[m])
        while k >= 0:
            n = int(target[k])
            left[n] -= 1
            done = _ready(n, done, left, order)
            k = int(more[k])
    return done


@inlined
def _ready(moment: int, done: int, left: Int32, order: Int32) -> int:
    if left[moment] != 0:
        return done
    order[done] = moment
    return done + 1


@inlined
def _latest(held: Held, moment: int, time: Int64) -> int:
    """When the last of what ``moment`` depends on lets it go on, NEVER where it depends on nothing."""
    latest = NEVER
    if held.before[moment] >= 0:
        latest = int(time[held.before[moment]])
    for k in range(held.first[moment], held.first[moment + 1]):
        if held.used[k] != 0 and time[held.source[k]] + held.lag[k] > latest:
            latest = int(time[held.source[k]] + held.lag[k])
    return latest


@inlined
def _from(held: Held, moment: int, time: Int64, latest: int) -> int:
    """The arc by which something else than its own thread lets ``moment`` go on at ``latest``, -1 where there is none."""
    if held.before[moment] >= 0 and time[held.before[moment]] == latest:
        return -1
    for k in range(held.first[moment], held.first[moment + 1]):
        if held.used[k] != 0 and time[held.source[k]] + held.lag[k] == latest:
            return k
    return -1


@compiled
def forward(held: Held, order: Int32, own: Int64, time: Int64) -> None:
    """``time`` int64 ns of each moment: ``own`` ns after the last of what it depends on."""
    for i in range(len(order)):
        latest = _latest(held, int(order[i]), time)
        time[order[i]] = own[order[i]] if latest == NEVER else latest + own[order[i]]


@compiled
def remainders(held: Held, time: Int64, own: Int64) -> None:
    """``own`` int64 ns of each moment at recorded times: what nothing it depends on explains."""
    for m in range(len(time)):
        latest = _latest(held, m, time)
        own[m] = time[m] if latest == NEVER else time[m] - latest


@compiled
def backward(held: Held, times: tuple[Int64, Int32], moment: int, bounds: tuple[int, int], charged: Int64) -> int:
    """Whose time it was inside ``bounds``, ns, walking back from ``moment`` along what held each moment up. ``times``: the
    time of each moment, and its owner. ``charged`` [n, 2]: owner (or LATENCY, BEFORE) and ns, the latest first. How many
    entries it needs: where that is more than there are, only these are filled.
    """
    time, owner = times
    low, upper = bounds
    count, m = 0, moment
    while upper > low:
        latest = _latest(held, m, time)
        if latest == NEVER:
            return _charge(charged, count, BEFORE, upper - low)
        since = max(min(latest, upper), low)
        count = _charge(charged, count, int(owner[m]), upper - since)
        upper = since
        k = _from(held, m, time, latest)
        m = int(held.before[m]) if k < 0 else int(held.source[k])
        if time[m] < upper:  # the lag of the arc
            since = max(int(time[m]), low)
            count = _charge(charged, count, LATENCY, upper - since)
            upper = since
    return count


@inlined
def _charge(charged: Int64, count: int, owner: int, ns: int) -> int:
    if ns <= 0:
        return count
    if 0 < count <= len(charged) and charged[count - 1, 0] == owner:
        charged[count - 1, 1] += ns
        return count
    if count < len(charged):
        charged[count, 0] = owner
        charged[count, 1] = ns
    return count + 1
