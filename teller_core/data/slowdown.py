"""Whether an engine's steps stayed slower after a window of a profiler than they were before it."""

from collections.abc import Sequence
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int64

COMPARED = 50
"""Steps that are looked at on each side of a window."""
LEAST, LEAST_ALIKE = 20, 5
"""Steps on each side that must have counterparts of their own size, and those of one size, before anything is said."""
SLOWER = 0.05
SURE = 2.0
"""Standard errors by which the slowdown must exceed SLOWER."""
OF_MEDIAN = 1.2533
"""The standard error of a median, in those of a mean, of values that are normally distributed."""
OF_DEVIATION = 1.4826
"""The standard deviation, in median absolute deviations, of such values."""


class Slowed(NamedTuple):
    """A window (Unix ns) after which steps took ``share`` longer than before it, ``spread`` being its standard error."""

    start: int
    stop: int
    share: float
    spread: float
    steps: int
    """Compared on the side that has fewer."""


def slowed(starts: Int64, tokens: Int64, windows: Sequence[tuple[int, int]]) -> list[Slowed]:
    """The windows after which steps of one process stayed slower, by their starts (int64 Unix ns, ascending).

    A step takes until the next one starts. Only steps of equal ``tokens`` are compared, by their medians, so that a change of
    load is no slowdown. Windows with fewer than LEAST steps between them are one. Slower is what exceeds SLOWER by SURE standard
    errors of the difference: steps that vary by themselves must differ by more.
    """
    took = np.diff(starts)
    found: list[Slowed] = []
    joined = _joined(windows, starts)
    for k, (start, stop) in enumerate(joined):
        since = joined[k - 1][1] if k else int(np.iinfo(np.int64).min)
        until = joined[k + 1][0] if k + 1 < len(joined) else int(np.iinfo(np.int64).max)
        before = np.flatnonzero((starts[:-1] >= since) & (starts[1:] <= start))[-COMPARED:]
        after = np.flatnonzero((starts[:-1] >= stop) & (starts[1:] <= until))[:COMPARED]
        told = _compared(took, tokens, before, after)
        if told is not None and told[0] - SURE * told[1] > np.log1p(SLOWER):
            found.append(Slowed(start, stop, float(np.expm1(told[0])), told[1], told[2]))
    return found


def _joined(windows: Sequence[tuple[int, int]], starts: Int64) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, stop in sorted(windows):
        between = np.searchsorted(starts, (joined[-1][1], start)) if joined else np.array([0, LEAST])
        if int(between[1] - between[0]) < LEAST:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _compared(took: Int64, tokens: Int64, before: Int64, after: Int64) -> tuple[float, float, int] | None:
    """The logarithm of how much longer steps took, its standard error, and how many were compared; None for too few."""
    ratios: list[tuple[float, float, int]] = []
    for size in np.intersect1d(tokens[before], tokens[after]).tolist():
        sides = [took[side][tokens[side] == size].astype(np.float64) for side in (before, after)]
        count = min(map(len, sides))
        middles = [float(np.median(side)) for side in sides]
        if count >= LEAST_ALIKE and min(middles) > 0:
            errors = [_error(side, middle) for side, middle in zip(sides, middles, strict=True)]
            ratios.append((float(np.log(middles[1] / middles[0])), hypot(*errors), count))
    total = sum(count for _, _, count in ratios)
    if total < LEAST:
        return None
    mean = sum(ratio * count for ratio, _, count in ratios) / total
    error = sqrt(sum((spread * count) ** 2 for _, spread, count in ratios)) / total
    return mean, error, total


def _error(values: Float64, middle: float) -> float:
    """The standard error of a median, as a share of it."""
    deviation = float(np.median(np.abs(values - middle)))
    return OF_MEDIAN * OF_DEVIATION * deviation / middle / sqrt(len(values))
