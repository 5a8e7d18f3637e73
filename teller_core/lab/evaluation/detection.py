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
LEVELS = 256
"""Of recall, and of false alarms, that :func:`thinned` tells apart."""


class Detected(NamedTuple):
    """float64 [...]: of what was flagged, and of what should have been; NaN where nothing was, or nothing should have been. F1 is
    0 where abnormal steps are there and none is hit.
    """

    precision: Float64
    recall: Float64
    f1: Float64


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


def ranked(label: Mask, score: Float64) -> Ranked:
    """Sorted once, for figures at many weights. A NaN score, of a method that cannot tell, comes last."""
    told = np.where(np.isnan(score), -np.inf, score)
    order = np.argsort(-told, kind="stable")
    sorted_score = told[order]
    ends = np.append(sorted_score[1:] != sorted_score[:-1], True) if len(order) else np.empty(0, np.bool_)
    return Ranked(order, label[order], np.flatnonzero(ends))


def thinned(given: Ranked) -> Int64:
    """int64 a step: its score in about ``2 * LEVELS`` values, which keep the order. What lies side by side in it becomes one, but
    for the first false alarms, on which figures at low priors hang.
    """
    hit = np.cumsum(given.label)[given.last]
    false = given.last + 1 - hit
    level = np.column_stack(
        [LEVELS * hit / max(int(hit[-1:].sum()), 1), LEVELS * np.log1p(false) / np.log1p(max(int(false[-1:].sum()), 1))]
    ).astype(np.int64)
    ends = np.cumsum(np.append(True, (np.diff(level, axis=0) != 0).any(axis=1))[: len(level)])
    found = np.empty(len(given.order), dtype=np.int64)
    found[given.order] = -np.repeat(ends, np.diff(given.last, prepend=-1))
    return found


def average_precision(given: Ranked, weight: Float64) -> float:
    """The area under precision and recall as a sum of steps, without interpolation (Davis and Goadrich 2006 say why); NaN without
    abnormal steps.
    """
    hit, flagged = _cumulated(given, weight)
    if not len(hit) or not hit[-1] > 0:
        return float("nan")
    precision = np.divide(hit, flagged, out=np.zeros(len(hit)), where=flagged > 0)
    return float(np.sum(np.diff(hit, prepend=0.0) * precision) / hit[-1])


class Curve(NamedTuple):
    """At each threshold, the highest first: float64 [..., thresholds], shares of the abnormal steps (``recall``) and of the
    healthy ones (``alarm``) that are flagged. Priors change neither. NaN without steps of both kinds.
    """

    recall: Float64
    alarm: Float64


def curve(given: Ranked, weight: Float64) -> Curve:
    """The curve of a score."""
    hit, flagged = _cumulated(given, weight)
    return _shares(hit, flagged - hit)


def curve_of_sums(hit: Float64, false: Float64) -> Curve:
    """The curve of abnormal steps and healthy ones (float64 [..., scores]) by score, the highest first."""
    return _shares(np.cumsum(hit, axis=-1), np.cumsum(false, axis=-1))


def curve_of_flags(label: Mask, flag: Mask, weight: Float64) -> Curve:
    """The one threshold of flags."""
    kinds = (label & flag, label & ~flag, ~label & flag, ~label & ~flag)
    return curve_of_four(np.array([weight[kind].sum() for kind in kinds], dtype=np.float64))


def curve_of_four(sums: Float64) -> Curve:
    """The one threshold of flags from float64 [..., 4]: abnormal steps that are flagged and that are not, then healthy ones."""
    both = curve_of_sums(sums[..., :2], sums[..., 2:])
    return Curve(both.recall[..., :1], both.alarm[..., :1])


def detected_at(given: Curve, prior: float) -> Detected:
    """Of the one threshold of ``given``, at a prior."""
    recall = given.recall[..., 0]
    hit, false = prior * recall, (1 - prior) * given.alarm[..., 0]
    precision = np.divide(hit, hit + false, out=np.full(recall.shape, np.nan), where=hit + false > 0)
    return Detected(precision, recall, 2 * hit / (hit + false + prior))


def area_at(given: Curve, prior: float) -> Float64:
    """float64 [...]: :func:`average_precision` at a prior."""
    hit, false = prior * given.recall, (1 - prior) * given.alarm
    precision = np.divide(hit, hit + false, out=np.zeros(hit.shape), where=hit + false > 0)
    return np.sum(np.diff(given.recall, prepend=0.0, axis=-1) * precision, axis=-1)


def recall_within(given: Curve, rate: float) -> Float64:
    """float64 [...]: the largest recall of a threshold that flags at most ``rate`` of the healthy steps."""
    within = np.where(given.alarm <= rate * (1 + 1e-12), given.recall, 0.0)
    return np.where(np.isnan(given.recall[..., -1]), np.nan, np.max(within, axis=-1))


def _shares(hit: Float64, false: Float64) -> Curve:
    """Of cumulated sums."""
    if not hit.shape[-1]:
        nothing = np.full((*hit.shape[:-1], 1), np.nan)
        return Curve(nothing, nothing)
    both = (hit[..., -1:] > 0) & (false[..., -1:] > 0)
    found = [
        np.divide(each, each[..., -1:], out=np.full(each.shape, np.nan), where=np.broadcast_to(both, each.shape))
        for each in (hit, false)
    ]
    return Curve(*found)


def _cumulated(given: Ranked, weight: Float64) -> tuple[Float64, Float64]:
    """At each run of equal scores: the weight of abnormal steps, and of all, that score as much or more."""
    mine = weight[given.order]
    return np.cumsum(np.where(given.label, mine, 0.0))[given.last], np.cumsum(mine)[given.last]
