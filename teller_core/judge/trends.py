"""How durations grow with the work of their step."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teller_core.data.table import Float64, Int32, Mask
from teller_core.judge.classes import Classes, Covariate
from teller_core.judge.robust import Float32, grouped

LEAST_HALF = 4
"""Spans needed on each side of a class's middle to tell a slope from chance."""
STEEPEST = 2.0
"""Attention over a prompt grows with the square of its tokens; nothing grows faster."""
LOOKED_AT = 4096
"""Characters of a name that are looked at: those of kernels reach a few thousand."""
ATTENTION = re.compile(r"attention|attn|sdpa|flash|paged|fmha|\bmha\b", re.IGNORECASE)


@dataclass(frozen=True)
class Trend:
    """One entry a group: ``slope`` of log duration over log tokens (log KV tokens where ``attention``), NaN where it could not
    be learned; ``pivot``: the covariate's middle; ``known``: whether steps know the covariate.
    """

    slope: Float64
    pivot: Float64
    known: Mask
    attention: Mask

    def parts(self, classes: Classes) -> tuple[tuple[Mask, Covariate], tuple[Mask, Covariate]]:
        """The groups of each covariate."""
        return (~self.attention, classes.tokens), (self.attention, classes.kv)


def trends(group: Int32, value: Float32, step: Int32, *, cls: Int32, names: Sequence[str], classes: Classes) -> Trend:
    """Learn every group's slope from the medians of the steps below and above the middle of its class (the resistant line of
    Tukey, Exploratory Data Analysis, 1977, with halves for thirds).

    ``group``, ``value`` (log ns) and ``step`` a row; ``cls`` and ``names`` a group.
    """
    attention = np.array([ATTENTION.search(name, 0, LOOKED_AT) is not None for name in names], dtype=np.bool_)
    slope, pivot = np.full(len(cls), np.nan), np.full(len(cls), np.nan)
    trend = Trend(slope, pivot, np.zeros(len(cls), dtype=np.bool_), attention)
    for mine, covariate in trend.parts(classes):
        pivot[mine] = covariate.pivot[cls[mine]]
        half = np.append(covariate.half, np.int32(-1))[step]
        rows = np.flatnonzero((half >= 0) & mine[group]) if (half >= 0).any() else np.empty(0, np.intp)
        if not len(rows):
            continue
        ranked = grouped(group[rows].astype(np.int64) * 2 + half[rows], value[rows], 2 * len(cls))
        middle, count = ranked.quantile(0.5), ranked.count
        enough = (np.minimum(count[0::2], count[1::2]) >= LEAST_HALF) & mine
        rise = middle[1::2][enough] - middle[0::2][enough]
        slope[enough] = np.clip(rise / covariate.run[cls[enough]], 0.0, STEEPEST)
    return Trend(slope, pivot, ~np.isnan(pivot), attention)


def bend(group: Int32, step: Int32, trend: Trend, classes: Classes) -> tuple[Float32, Float32]:
    """float32 a row: what its step's tokens add to the log duration by the learned slope, and, where none was learned, how
    much a slope of 1 would add (0 elsewhere).
    """
    sure, free = np.zeros(len(group), dtype=np.float32), np.zeros(len(group), dtype=np.float32)
    learned = ~np.isnan(trend.slope)
    for mine, covariate in trend.parts(classes):
        known = covariate.x[~np.isnan(covariate.x)]
        if not mine.any() or not len(known) or float(known.min()) == float(known.max()):
            continue
        away = np.append(covariate.x, np.nan).astype(np.float32)[step] - trend.pivot.astype(np.float32)[group]
        away[np.isnan(away)] = 0
        sure += away * np.where(mine & learned, trend.slope, 0).astype(np.float32)[group]
        free += away * (mine & ~learned).astype(np.float32)[group]
    return sure, free
