"""Intervals by life: what one start of a server shares is drawn together.

Figures are made of sums over rows, so a draw of lives adds up the sums of each: all draws are one product of matrices.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float64, Int32

DRAWS = 400
LEAST_LIVES = 3
"""Fewer lives than this say nothing about how lives differ."""


class Interval(NamedTuple):
    """A figure and its 95 % interval; NaN where it cannot be said. ``drawn``: its value in each draw of lives; empty without."""

    value: float
    low: float
    high: float
    drawn: Sequence[float] = ()


class Sums(NamedTuple):
    """``of`` float64 [lives, sums]: what figures are made of, by life; ``figures``: float64 [draws, sums] to float64 [draws,
    figures], NaN where one cannot be said.
    """

    of: Float64
    figures: Callable[[Float64], Float64]


def summed(life: Int32, *columns: npt.NDArray[np.generic]) -> Float64:
    """float64 [lives, columns]: the sums of each column, which is of numbers or bool, over the rows of each life."""
    lives, at = np.unique(life, return_inverse=True)
    sums = [np.bincount(at, weights=column, minlength=len(lives)) for column in columns]
    return np.column_stack(sums).astype(np.float64)


def tallied(life: Int32, cell: npt.NDArray[np.integer], cells: int, weight: Float64 | None = None) -> Float64:
    """float64 [lives, cells]: how many rows of each life lie in each of ``cells``, or their ``weight``."""
    lives, at = np.unique(life, return_inverse=True)
    flat = np.bincount(at * cells + cell, weights=weight, minlength=len(lives) * cells)
    return flat.reshape(len(lives), cells).astype(np.float64)


def ratio(life: Int32, above: npt.NDArray[np.generic], below: npt.NDArray[np.generic]) -> Sums:
    """The sum of ``above`` over that of ``below``; NaN where the latter is not above 0."""

    def figure(drawn: Float64) -> Float64:
        return np.divide(drawn[:, :1], drawn[:, 1:], out=np.full((len(drawn), 1), np.nan), where=drawn[:, 1:] > 0)

    return Sums(summed(life, above, below), figure)


def by_life(given: Sums, *, draws: int = DRAWS, seed: int = 0) -> list[Interval]:
    """The figures of ``given`` and their percentile bootstrap over lives (Davison and Hinkley 1997, 3.8).

    Draws in which a figure cannot be said are left out of it; no interval below 3 lives.
    """
    lives = len(given.of)
    value = given.figures(given.of.sum(axis=0, keepdims=True))[0]
    if lives < LEAST_LIVES or np.isnan(value).all():
        return [Interval(each, float("nan"), float("nan")) for each in map(float, value)]
    taken = np.random.default_rng(seed).integers(0, lives, (draws, lives))
    times = np.bincount((taken + lives * np.arange(draws)[:, None]).ravel(), minlength=draws * lives)
    drawn = given.figures(times.reshape(draws, lives).astype(np.float64) @ given.of)
    return [_interval(float(each), drawn[:, column]) for column, each in enumerate(value)]


def _interval(value: float, drawn: Float64) -> Interval:
    known = drawn[~np.isnan(drawn)]
    if np.isnan(value) or not len(known):
        return Interval(value, float("nan"), float("nan"))
    low, high = np.percentile(known, (2.5, 97.5))
    return Interval(value, float(low), float(high), tuple(map(float, drawn)))
