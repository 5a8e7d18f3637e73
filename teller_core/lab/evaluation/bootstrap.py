"""Intervals by life: what one start of a server shares is drawn together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int32

DRAWS = 400
LEAST_LIVES = 3
"""Fewer lives than this say nothing about how lives differ."""


class Interval(NamedTuple):
    """A figure and its 95 % interval; NaN where it cannot be said."""

    value: float
    low: float
    high: float


def by_life(
    figure: Callable[[Float64], float], life: Int32, count: Float64 | None = None, *, draws: int = DRAWS, seed: int = 0
) -> Interval:
    """``figure`` (of one weight a row) and its interval: :func:`all_by_life` of one figure."""
    return all_by_life(lambda weight: [figure(weight)], life, count, draws=draws, seed=seed)[0]


def all_by_life(
    figures: Callable[[Float64], Sequence[float]],
    life: Int32,
    count: Float64 | None = None,
    *,
    draws: int = DRAWS,
    seed: int = 0,
) -> list[Interval]:
    """``figures`` (of one weight a row) and their percentile bootstrap over lives (Davison and Hinkley 1997, 3.8).

    ``life`` int32 a row; ``count``: for how many each row stands, one by default. Draws in which a figure cannot be said are
    left out of it; no interval below 3 lives.
    """
    whole = np.ones(len(life)) if count is None else count
    value = np.array(figures(whole), dtype=np.float64)
    lives, at = np.unique(life, return_inverse=True)
    if len(lives) < LEAST_LIVES or np.isnan(value).all():
        return [Interval(each, float("nan"), float("nan")) for each in map(float, value)]
    chance = np.random.default_rng(seed)
    drawn = np.full((draws, len(value)), np.nan)
    for turn in range(draws):
        times = np.bincount(chance.integers(0, len(lives), len(lives)), minlength=len(lives)).astype(np.float64)
        drawn[turn] = figures(times[at] * whole)
    return [_interval(float(each), drawn[:, column]) for column, each in enumerate(value)]


def _interval(value: float, drawn: Float64) -> Interval:
    known = drawn[~np.isnan(drawn)]
    if np.isnan(value) or not len(known):
        return Interval(value, float("nan"), float("nan"))
    low, high = np.percentile(known, (2.5, 97.5))
    return Interval(value, float(low), float(high))
