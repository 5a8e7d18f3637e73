"""How well steps are told apart: figures of flags and of scores, at any prior, with weights.

A prior is set by weighing: abnormal and healthy steps keep what they are, and only their shares change. Every figure takes one
weight a step, so that a bootstrap can draw lives again by weighing their steps.
"""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int64, Mask

PRIORS = (0.43, 0.10, 0.05, 0.01, 0.001)
"""That of the paper's test sets, and what a service meets in practice."""
RATES = (0.001, 0.01)
"""False-positive rates at which recall is asked for."""


class Detected(NamedTuple):
    """Of what was flagged, and of what should have been: NaN where nothing was, or nothing should have been."""

    precision: float
    recall: float
    f1: float


class Ranked(NamedTuple):
    """Steps by score, the most suspicious first. ``order`` int64: positions; ``label`` bool in that order; ``last`` int64: where
    each run of equal scores ends.
    """

    order: Int64
    label: Mask
    last: Int64


def at_prior(label: Mask, weight: Float64, prior: float | None) -> Float64:
    """``weight`` scaled so that abnormal steps have the share ``prior`` of it all; unchanged for None.

    All NaN where one of the two kinds is missing.
    """
    if prior is None:
        return weight
    abnormal, healthy = float(weight[label].sum()), float(weight[~label].sum())
    if not (abnormal > 0 and healthy > 0):
        return np.full(len(weight), np.nan)
    return weight * np.where(label, prior / abnormal, (1 - prior) / healthy)


def detected(label: Mask, flag: Mask, weight: Float64) -> Detected:
    """Precision, recall and F1 of flags. F1 is 0 where abnormal steps are there and none is hit."""
    hit = float(weight[label & flag].sum())
    flagged, abnormal = float(weight[flag].sum()), float(weight[label].sum())
    precision = hit / flagged if flagged > 0 else float("nan")
    recall = hit / abnormal if abnormal > 0 else float("nan")
    f1 = 2 * hit / (flagged + abnormal) if abnormal > 0 else float("nan")
    return Detected(precision, recall, f1)


def ranked(label: Mask, score: Float64) -> Ranked:
    """Sorted once, for figures at many weights. A NaN score, of a method that cannot tell, comes last."""
    told = np.where(np.isnan(score), -np.inf, score)
    order = np.argsort(-told, kind="stable")
    sorted_score = told[order]
    ends = np.append(sorted_score[1:] != sorted_score[:-1], True) if len(order) else np.empty(0, np.bool_)
    return Ranked(order, label[order], np.flatnonzero(ends))


def average_precision(given: Ranked, weight: Float64) -> float:
    """The area under precision and recall as a sum of steps, without interpolation (Davis and Goadrich 2006 say why); NaN without
    abnormal steps.
    """
    hit, flagged = _cumulated(given, weight)
    if not len(hit) or not hit[-1] > 0:
        return float("nan")
    precision = np.divide(hit, flagged, out=np.zeros(len(hit)), where=flagged > 0)
    return float(np.sum(np.diff(hit, prepend=0.0) * precision) / hit[-1])


def recall_at(given: Ranked, weight: Float64, rate: float) -> float:
    """The largest recall of a threshold that flags at most ``rate`` of the healthy steps; NaN without steps of both kinds."""
    hit, flagged = _cumulated(given, weight)
    if not len(hit):
        return float("nan")
    alarm = flagged - hit
    if not (hit[-1] > 0 and alarm[-1] > 0):
        return float("nan")
    allowed = alarm <= rate * alarm[-1] * (1 + 1e-12)  # sums of weights are true to the last bits only
    return float(np.max(hit[allowed], initial=0.0) / hit[-1])


def _cumulated(given: Ranked, weight: Float64) -> tuple[Float64, Float64]:
    """At each run of equal scores: the weight of abnormal steps, and of all, that score as much or more."""
    mine = weight[given.order]
    return np.cumsum(np.where(given.label, mine, 0.0))[given.last], np.cumsum(mine)[given.last]
