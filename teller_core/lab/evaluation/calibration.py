"""Whether a method is as right as it says it is sure."""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Mask

BINS = 10


class Curve(NamedTuple):
    """By how much is answered: ``coverage`` float64, ascending, and ``risk`` float64: the share of wrong answers there."""

    coverage: Float64
    risk: Float64


def expected_error(sure: Float64, right: Mask, weight: Float64, bins: int = BINS) -> float:
    """ECE (Naeini, Cooper and Hauskrecht 2015): the mean distance between how sure and how right, over ``bins`` equal parts of
    0 to 1; NaN without answers.
    """
    total = float(weight.sum())
    if not total > 0:
        return float("nan")
    part = np.minimum((sure * bins).astype(np.int64), bins - 1)
    gap = np.bincount(part, weights=weight * (sure - right), minlength=bins)
    return float(np.abs(gap).sum() / total)


def brier(sure: Float64, right: Mask, weight: Float64) -> float:
    """The mean square of how sure minus how right (Brier 1950); NaN without answers."""
    total = float(weight.sum())
    return float((weight * (sure - right) ** 2).sum() / total) if total > 0 else float("nan")


def risk_coverage(sure: Float64, right: Mask, weight: Float64) -> Curve:
    """The surest answers first (El-Yaniv and Wiener 2010): answers as sure as one another come together."""
    order = np.argsort(-sure, kind="stable")
    sorted_sure, mine = sure[order], weight[order]
    last = np.flatnonzero(np.append(sorted_sure[1:] != sorted_sure[:-1], True)) if len(order) else order
    covered, wrong = np.cumsum(mine)[last], np.cumsum(mine * ~right[order])[last]
    known = covered > 0
    total = float(mine.sum())
    return Curve(covered[known] / max(total, 1e-300), wrong[known] / covered[known])


def area(curve: Curve) -> float:
    """The mean risk over all coverages, each taken as reached by whole groups of equally sure answers; NaN without answers."""
    return float(np.sum(np.diff(curve.coverage, prepend=0.0) * curve.risk)) if len(curve.risk) else float("nan")


def coverage_at(curve: Curve, risk: float) -> float:
    """The largest share that can be answered with at most ``risk`` of it wrong; 0 where no part can, NaN without answers."""
    if not len(curve.risk):
        return float("nan")
    return float(np.max(curve.coverage[curve.risk <= risk], initial=0.0))
