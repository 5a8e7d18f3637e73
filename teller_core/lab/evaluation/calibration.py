"""Whether a method is as right as it says it is sure."""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int64

BINS = 10
PARTS = 15
"""Of as many answers each."""


class Certain(NamedTuple):
    """Answers as sure as one another, together: ``sure`` float64 [groups], the surest first; ``many`` and ``right`` float64 [...,
    groups]: the weight of the answers, and of the right ones.
    """

    sure: Float64
    many: Float64
    right: Float64


class Curve(NamedTuple):
    """By how much is answered, the surest first: ``coverage`` float64 [..., groups], and ``risk``: the share of wrong answers
    there; NaN without answers.
    """

    coverage: Float64
    risk: Float64


def expected_error(given: Certain) -> Float64:
    """float64 [...]: ECE (Naeini, Cooper and Hauskrecht 2015): the mean distance between how sure and how right, over BINS
    equal parts of 0 to 1; NaN without answers.
    """
    part = np.minimum((given.sure * BINS).astype(np.int64), BINS - 1)
    gap = (given.many * given.sure - given.right) @ np.eye(BINS)[part]
    return _over(np.abs(gap).sum(axis=-1), given)


def equal_parts(sure: Float64) -> Int64:
    """int64 an answer, 0 to PARTS - 1: the answers by how sure they are, in parts of as many each."""
    part = np.empty(len(sure), dtype=np.int64)
    part[np.argsort(sure, kind="stable")] = np.arange(len(sure)) * PARTS // max(len(sure), 1)
    return part


def error_of_parts(many: Float64, sure: Float64, right: Float64) -> Float64:
    """float64 [...]: ECE with equal mass (Nguyen and O'Connor 2015): the mean distance between how sure and how right; each
    float64 [..., PARTS]: the answers of a part, how sure they are together, and how many are right. NaN without answers.
    """
    total: Float64 = np.asarray(many.sum(axis=-1), dtype=np.float64)
    gap = np.abs(sure - right).sum(axis=-1)
    return np.divide(gap, total, out=np.full(total.shape, np.nan), where=total > 0)


def brier(given: Certain) -> Float64:
    """float64 [...]: the mean square of how sure minus how right (Brier 1950); NaN without answers."""
    wrong = given.many - given.right
    return _over((given.right * (1 - given.sure) ** 2 + wrong * given.sure**2).sum(axis=-1), given)


def risk_coverage(given: Certain) -> Curve:
    """The surest answers first (El-Yaniv and Wiener 2010): answers as sure as one another come together."""
    covered, wrong = np.cumsum(given.many, axis=-1), np.cumsum(given.many - given.right, axis=-1)
    risk = np.divide(wrong, covered, out=np.zeros(covered.shape), where=covered > 0)
    total = np.broadcast_to(given.many.sum(axis=-1, keepdims=True), covered.shape)
    return Curve(np.divide(covered, total, out=np.full(covered.shape, np.nan), where=total > 0), risk)


def area(curve: Curve) -> Float64:
    """float64 [...]: the mean risk over all coverages, each taken as reached by whole groups of equally sure answers."""
    return np.sum(np.diff(curve.coverage, prepend=0.0, axis=-1) * curve.risk, axis=-1)


def coverage_at(curve: Curve, risk: float) -> Float64:
    """float64 [...]: the largest share that can be answered with at most ``risk`` of it wrong; 0 where no part can."""
    return np.max(np.where(curve.risk <= risk, curve.coverage, 0.0), axis=-1)


def precision_at(curve: Curve, coverage: float) -> Float64:
    """float64 [...]: of the surest answers, at least ``coverage`` of all, the share that is right; NaN without answers."""
    reached = curve.coverage >= coverage - 1e-9
    first = np.argmax(reached, axis=-1)[..., None]
    told = np.take_along_axis(1.0 - curve.risk, first, axis=-1)[..., 0]
    return np.where(reached.any(axis=-1), told, np.nan)


def _over(sums: Float64, given: Certain) -> Float64:
    total: Float64 = np.asarray(given.many.sum(axis=-1), dtype=np.float64)
    return np.divide(sums, total, out=np.full(total.shape, np.nan), where=total > 0)
