"""Two sequences of one thing, joined by order: what the scheduler decided against what a log counted or a worker ran.

A signature is a row of int64: counts that both sides may know, -1 where one does not, and last a time. Two signatures
agree where no known count differs and the item's time is not before the known one: nothing runs, and no line is written,
before it was decided. Time is never asked whether one thing lies inside another.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Int64

LOOK_AHEAD = 64
"""Steps over which a lost record is searched for."""
AGREE_NEXT = 8
"""How many signatures must agree after a gap before it is believed."""
CLOCK_NS = 1_000_000
"""What two processes of one machine may differ in noting the time."""
MAX_WORK = 50_000_000
"""Comparisons spent on finding where a shorter sequence begins in a longer one."""


class Matched(NamedTuple):
    """``to`` int64: for each item its place in the known sequence, -1 for none, ascending where known."""

    to: Int64
    resynced: int = 0
    """How often records had to be skipped to agree again."""
    ambiguous: bool = False
    """The items fit at several places; one was taken."""


def agree(known: Int64, items: Int64) -> npt.NDArray[np.bool_]:
    """bool, one a row: whether no count known to both differs and the item is not too early. Both (n, k)."""
    same = (known == items) | (known < 0) | (items < 0)
    same[:, -1] |= items[:, -1] >= known[:, -1] - CLOCK_NS
    return same.all(axis=1)


def join(known: Int64, items: Int64, strain: Callable[[int], int] | None = None) -> Matched:
    """Where each of ``items`` (m, k) stands in ``known`` (n, k), both in order.

    First as they are, then as a window of one another where everything agrees, then step by step, skipping what was lost
    on either side. ``strain`` says of an offset how hard it is to believe: the least is taken among those that agree.
    """
    n, m = len(known), len(items)
    if n == 0 or m == 0:
        return Matched(np.full(m, -1, dtype=np.int64))
    if n == m and bool(agree(known, items).all()):
        return Matched(np.arange(m, dtype=np.int64))
    offsets = _fitting_offsets(known, items)
    if len(offsets):
        best = int(offsets[0]) if strain is None else min(offsets.tolist(), key=strain)
        place = np.arange(m, dtype=np.int64) + best
        return Matched(np.where((place >= 0) & (place < n), place, -1), ambiguous=len(offsets) > 1)
    return _step_by_step(known, items)


def _fitting_offsets(known: Int64, items: Int64) -> Int64:
    """Offsets at which the shorter sequence lies wholly inside the longer and agrees everywhere, ascending."""
    n, m = len(known), len(items)
    short, long = (items, known) if m <= n else (known, items)
    spare = len(long) - len(short)
    if spare == 0 or (spare + 1) * len(short) > MAX_WORK:
        return np.empty(0, dtype=np.int64)
    possible = np.arange(spare + 1, dtype=np.int64)
    for row in range(len(short)):
        possible = possible[agree(long[possible + row], np.broadcast_to(short[row], (len(possible), short.shape[1])))]
        if len(possible) == 0:
            break
    return possible if m <= n else -possible[::-1]


def _step_by_step(known: Int64, items: Int64) -> Matched:
    n, m = len(known), len(items)
    to = np.full(m, -1, dtype=np.int64)
    i = j = resynced = 0
    while i < n and j < m:
        run = agree(known[i : i + m - j], items[j : j + n - i])
        same = len(run) if bool(run.all()) else int(np.argmin(run))
        to[j : j + same] = np.arange(i, i + same)
        i, j = i + same, j + same
        if i < n and j < m:
            skipped, extra = _gap(known[i:], items[j:])
            i, j, resynced = i + skipped, j + extra, resynced + 1
    return Matched(to, resynced)


def _gap(known: Int64, items: Int64) -> tuple[int, int]:
    """The least that can be skipped on both sides so that what follows agrees; one on each side where nothing does."""
    for skipped in range(1, LOOK_AHEAD):
        for extra in range(skipped + 1):
            a, b = known[skipped - extra :], items[extra:]
            size = min(len(a), len(b), AGREE_NEXT)
            if size and bool(agree(a[:size], b[:size]).all()):
                return skipped - extra, extra
    return 1, 1
