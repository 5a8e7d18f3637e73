"""The clocks of the ranks put on one, with a bound of the error that holds for every pair.

A synchronous collective ends on no rank before it has begun on each. So if x is what must be added to a rank's clock, then
x[a] - x[b] <= end[b] - start[a] for every two ranks that met: a system of difference constraints, whose tightest consequences are
shortest paths (Floyd 1962, Warshall 1962; taking one process after the other tells who contradicts the others). Two processes
of one machine read one clock. Clocks of two machines run apart: their bounds are widened so that they hold for the whole window
of the meetings. The bounds say nothing of times far outside it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Rank
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.collective_calls import Key
from teller_core.rebuild.contradictions import without_contradicted
from teller_core.rebuild.engines import Place
from teller_core.rebuild.together import Together

UNBOUNDED = 1 << 61
"""Further apart than a clock of 1970 and one of the last boot; three of them still fit into int64."""
DRIFT_PPM = 20
"""Parts per million by which clocks of two machines are taken to run apart, at most, in the recorded window: oscillators of
servers differ by some tens before anything disciplines them, and disciplined ones by less than one."""
MICROSECOND = 1000
BLOCK = 1 << 20
"""Numbers of an intermediate array."""


class Clocks(NamedTuple):
    """``of`` int64: the process of each rank. ``upper`` int64 (processes, processes): ``upper[a, b]`` ns bounds what must be
    added to the clock of ``b`` beyond what is added to that of ``a``, UNBOUNDED where nothing does. ``left_out``: meetings that
    the others contradict: by their times nobody waited and nobody was late."""

    of: Int64
    upper: Int64
    left_out: frozenset[Key] = frozenset()

    def bound(self, a: int, b: int) -> int:
        """ns: the most by which the shift of rank ``b`` may exceed that of rank ``a``."""
        return int(self.upper[self.of[a], self.of[b]])


def bound_clocks(
    ranks: Sequence[Rank], places: Sequence[Place], apart: Int64, met: Sequence[Together], problems: Counter[str]
) -> tuple[list[Rank], Clocks]:
    """Ranks with the shift to the clock of the first process and a bound of its error, as far as anything tells; and the bounds.

    ``apart`` int64 (ranks, ranks): how much the clocks of two may differ, UNKNOWN for unbounded. Where what is bound to a clock
    allows that it needs no shift, it gets none. Problems: ``collectives_contradict_others`` (see :mod:`contradictions`),
    ``clocks_contradict_collectives``.
    """
    order = sorted(dict.fromkeys(places), key=lambda where: _is_local(ranks[places.index(where)]))
    of = np.array([order.index(where) for where in places], dtype=np.int64)
    if not order:
        return list(ranks), Clocks(of, np.zeros((0, 0), dtype=np.int64))
    first = np.array([places.index(where) for where in order], dtype=np.int64)
    same = apart[np.ix_(first, first)]
    drift = _window(met, of) * DRIFT_PPM // 10**6
    grain = _grains(met, of, len(order))
    direct, left_out = _constraints(met, of, same, grain, drift), frozenset[Key]()
    if (direct + direct.T < 0).any():
        met, left_out = without_contradicted(met, of, same=same, grain=grain, drift=drift, direct=direct)
        problems["collectives_contradict_others"] += len(left_out)
        direct = _constraints(met, of, same, grain, drift)
    upper, wrong = _closed(direct)
    problems["clocks_contradict_collectives"] += len(wrong)
    shift = _shifts(upper)
    told: list[Rank] = []
    for rank, p in zip(ranks, of.tolist(), strict=True):
        error = max(int(upper[0, p]) - int(shift[p]), int(shift[p]) + int(upper[p, 0]))
        bounded = p not in wrong and max(int(upper[0, p]), int(upper[p, 0])) < UNBOUNDED
        told.append(replace(rank, shift=int(shift[p]) if bounded else 0, clock_error=error if bounded else UNKNOWN))
    return told, Clocks(of, np.minimum(upper + grain[None, :], UNBOUNDED), left_out)


def _is_local(rank: Rank) -> bool:
    """Whether the zero of its clock is unknown. Logs and requests know of no such clock: it is put on another one if it can."""
    return rank.tree is not None and rank.tree.trace.origin.clock != "unix"


def _constraints(met: Sequence[Together], of: Int64, same: Int64, grain: Int64, drift: int) -> Int64:
    """int64 (processes, processes): the bounds that the meetings, and sharing a machine, give directly."""
    upper = np.full(same.shape, UNBOUNDED, dtype=np.int64)
    for group in met:
        p = of[list(group.rank)]
        for block in _blocks(np.flatnonzero(group.synchronous), len(p)):
            start, end = group.start[block], group.start[block] + group.dur[block]
            between = (end[:, :, None] - start[:, None, :]).min(axis=0) + 2 * grain[p][:, None]
            np.minimum.at(upper, tuple(np.ix_(p, p)), between)
    upper = np.where((same == UNKNOWN) & (upper < UNBOUNDED), upper + drift, upper)
    upper = np.where(same == UNKNOWN, upper, np.minimum(upper, same))
    np.fill_diagonal(upper, 0)
    return upper


def _window(met: Sequence[Together], of: Int64) -> int:
    """ns from the first to the last meeting. Clocks may be hours apart: a meeting of both lays one on the other first."""
    onto = _onto(met, of)
    times = defaultdict[int, list[int]](list)
    for group in met:
        for k, p in enumerate(of[list(group.rank)].tolist()):
            root, shift = onto[p]
            times[root] += [int(group.start[:, k].min()) + shift, int(group.start[:, k].max()) + shift]
    return max((max(own) - min(own) for own in times.values()), default=0)


def _onto(met: Sequence[Together], of: Int64) -> dict[int, tuple[int, int]]:
    """Of each process: one that it met, itself or through others, and what lays its clock on that one's, roughly."""
    onto: dict[int, tuple[int, int]] = {}
    left = [(group, of[list(group.rank)].tolist()) for group in met]
    while left:
        at = next((at for at, (_, own) in enumerate(left) if any(p in onto for p in own)), 0)
        group, own = left.pop(at)
        first = next((k for k, p in enumerate(own) if p in onto), 0)
        root, shift = onto.setdefault(own[first], (own[first], 0))
        for k, p in enumerate(own):
            onto.setdefault(p, (root, int(group.start[0, first] - group.start[0, k]) + shift))
    return onto


def _grains(met: Sequence[Together], of: Int64, processes: int) -> Int64:
    """int64 ns a process: what its times leave out. Profilers before 2024 wrote whole microseconds, cut off."""
    seen, fine = np.zeros((2, processes), dtype=np.bool_)
    for group in met:
        p = of[list(group.rank)]
        seen[p] = True
        fine[p] |= ((group.start % MICROSECOND != 0) | (group.dur % MICROSECOND != 0)).any(axis=0)
    return np.where(seen & ~fine, MICROSECOND, 0).astype(np.int64)


def _blocks(
    rows: "np.ndarray[tuple[int], np.dtype[np.intp]]", width: int
) -> Iterator["np.ndarray[tuple[int], np.dtype[np.intp]]"]:
    size = max(BLOCK // (width * width), 1)
    return (rows[low : low + size] for low in range(0, len(rows), size))


def _closed(direct: Int64) -> tuple[Int64, set[int]]:
    """The tightest bounds between all processes, and those whose meetings contradict the processes before them."""
    n = len(direct)
    upper = np.full((n, n), UNBOUNDED, dtype=np.int64)
    np.fill_diagonal(upper, 0)
    wrong: set[int] = set()
    for p in range(n):
        known = [q for q in range(p) if q not in wrong]
        if not known:
            continue
        inner = upper[np.ix_(known, known)]
        to = np.minimum((inner + direct[known, p][None, :]).min(axis=1), UNBOUNDED)
        back = np.minimum((direct[p, known][:, None] + inner).min(axis=0), UNBOUNDED)
        if int((to + back).min()) < 0:
            wrong.add(p)
            continue
        upper[known, p], upper[p, known] = to, back
        upper[np.ix_(known, known)] = np.minimum(inner, to[:, None] + back[None, :])
    return upper, wrong


def _shifts(upper: Int64) -> Int64:
    """int64 a process: shifts that meet all bounds together, each 0 where that is possible, else in the middle of its bounds."""
    left = upper.copy()
    shift = np.zeros(len(upper), dtype=np.int64)
    for p in range(1, len(upper)):
        low, high = -int(left[p, 0]), int(left[0, p])
        if low <= -UNBOUNDED or high >= UNBOUNDED:
            continue
        shift[p] = x = 0 if low <= 0 <= high else (low + high) // 2
        left[0, p], left[p, 0] = x, -x
        for a, b, weight in ((0, p, x), (p, 0, -x)):
            through = left[:, a][:, None] + weight + left[b, :][None, :]
            left = np.minimum(left, np.minimum(through, UNBOUNDED))
    return shift
