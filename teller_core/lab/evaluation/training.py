"""The training side as rows of numbers, each step once: episodes of one block share their healthy windows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.judge.step_numbers import NAMES
from teller_core.lab.evaluation.episode import Episode

MOST_ROWS = 3_000
"""Healthy steps that a model is made of, and requests that a map to causes is: drawn by chance, as many for every method."""
FURTHEST = 8.0
"""Scaled values are cut here: one step of a minute must not decide for all."""


@dataclass(frozen=True)
class Scale:
    """``middle`` and ``width`` float64 a column: the median and the distance of the quartiles (1 where that is 0)."""

    middle: Float64
    width: Float64

    def __call__(self, value: Float64) -> Float64:
        """float64, no NaN: scaled, cut at FURTHEST; what is not known lies in the middle."""
        return np.clip(np.nan_to_num((value - self.middle) / self.width), -FURTHEST, FURTHEST)


def scale_of(value: Float64) -> Scale:
    """Learn it from the rows of ``value``. A column of which nothing is known stays as it is."""
    known = ~np.isnan(value).all(axis=0)
    low, middle, high = (np.zeros(value.shape[1]) for _ in range(3))
    if known.any():
        low[known], middle[known], high[known] = np.nanpercentile(value[:, known], (25, 50, 75), axis=0)
    width = high - low
    return Scale(middle, np.where(width > 1e-9, width, 1.0))


def fresh(episodes: Sequence[Episode]) -> list[Mask]:
    """bool a step of each episode: it is the first of these episodes that shows the step."""
    return _first([episode.life for episode in episodes], [episode.seen.case.begin for episode in episodes])


def fresh_requests(episodes: Sequence[Episode]) -> list[Mask]:
    """bool a request of each episode: it is the first of these episodes that shows the request."""
    return _first([episode.life for episode in episodes], [episode.seen.case.starts for episode in episodes])


def _first(lives: Sequence[str], begins: Sequence[Int64]) -> list[Mask]:
    seen: dict[str, Int64] = {}
    masks: list[Mask] = []
    for life, begin in zip(lives, begins, strict=True):
        before = seen.get(life, np.empty(0, dtype=np.int64))
        masks.append((begin == UNKNOWN) | ~np.isin(begin, before))
        seen[life] = np.concatenate([before, begin])
    return masks


def healthy_steps(episodes: Sequence[Episode], columns: Sequence[int], seed: int) -> Float64:
    """float64 [steps, columns]: the features of healthy steps whose time is known, at most MOST_ROWS."""
    rows = [
        episode.seen.steps.value[mine & (episode.labels.step == 0) & (episode.seen.steps.took != UNKNOWN)]
        for episode, mine in zip(episodes, fresh(episodes), strict=True)
    ]
    value = np.concatenate([np.empty((0, len(NAMES))), *rows])
    return some(value[:, list(columns)], MOST_ROWS, seed)


def some(value: Float64, most: int, seed: int) -> Float64:
    """At most so many of the rows, drawn by chance."""
    if len(value) <= most:
        return value
    return value[np.sort(np.random.default_rng(seed).choice(len(value), most, replace=False))]
