"""How much what a model says is to count beside what rules claim: fitted on lives that training did not see."""

from collections.abc import Sequence
from dataclasses import fields

import numpy as np

from teller_core.data.pooling import (
    FIRST,
    NONE,
    UNTOLD,
    Asked,
    Fusion,
    Likely,
    Weights,
    chosen,
    evident,
    firsts,
    pooled,
    possible,
    shares,
    terms,
)
from teller_core.data.said import TIERS
from teller_core.data.table import Float64, Int64, Mask
from teller_core.model.calibrating import Calibration, threshold
from teller_core.model.inputs import Inputs
from teller_core.model.measured import Scores
from teller_core.model.scores import calibration_error

ENOUGH = 60
"""Struck requests of a tier, of those it was fitted on, from which on it has weights of its own."""
PRIOR = 1.0
"""Requests' worth of doubt that a weight is another than it is to begin with."""
ROUNDS = 60


def by_tier(scores: Scores, inputs: Inputs, calibration: Calibration, known: Mask) -> tuple[Fusion, ...]:
    """As :func:`fused`, for each tier: what rules say is worth the more the more was recorded. All tiers together tell of one in
    which too few were struck.
    """
    every = fused(scores, inputs, calibration, known)
    found: list[Fusion] = []
    for tier in range(len(TIERS)):
        mine = inputs.tier == tier
        enough = int((mine & (inputs.wanted.cause >= FIRST) & inputs.requests).sum()) >= ENOUGH
        found.append(fused(scores, inputs, calibration, known, mine) if enough else every)
    return tuple(found)


def fused(scores: Scores, inputs: Inputs, calibration: Calibration, known: Mask, mine: Mask | None = None) -> Fusion:
    """What makes the true causes of the requests in ``inputs``, of those that are ``mine``, likeliest, by both opinions together.
    ``known`` bool [classes]: what the model has learned; what it has not is known to rules alone.
    """
    asked, truth = asked_of(scores, inputs, calibration, known, mine)
    if not len(truth):
        return Fusion()
    weights = fitted(asked, truth)
    likely, may = pooled(asked, weights), evident(asked.clues)
    best, sure = firsts(likely, may)
    named = sure > likely[:, NONE]  # the others are not named, however low the threshold
    return Fusion(weights, threshold(sure[named], best[named] == truth[named]))


def asked_of(
    scores: Scores, inputs: Inputs, calibration: Calibration, known: Mask, mine: Mask | None = None
) -> tuple[Asked, Int64]:
    """The requests of ``inputs``, of those that are ``mine``, whose truth is known, and that as int64 classes, of causes that the
    model never saw as well.
    """
    wanted = inputs.wanted
    judged = (wanted.cause >= 0) & inputs.requests
    rows = np.flatnonzero(judged if mine is None else judged & mine)
    truth = np.where(wanted.barred >= FIRST, wanted.barred, wanted.cause)[rows].astype(np.int64)
    likely = calibration.causes(scores.cause[rows])
    return Asked(
        inputs.clues[rows], likely, calibration.abnormal(scores.abnormal[rows], inputs.head[rows]), known
    ), truth


def fitted(asked: Asked, truth: Int64) -> Weights:
    """The weights that make ``truth`` (int64 classes) likeliest, by Newton's method: there is one best answer. Where a cause is
    not possible the truth is that it cannot be told.
    """
    given, there = terms(asked), possible(asked)
    rows = np.arange(len(truth))
    truth = np.where(there[rows, truth], truth, UNTOLD)
    right = given[rows, truth].sum(axis=0)
    prior = Weights().vector

    def surprise(at: Float64) -> float:
        likely = shares(given @ at, there)[rows, truth]
        return float(-np.log(np.maximum(likely, 1e-300)).sum() + 0.5 * PRIOR * np.sum((at - prior) ** 2))

    found: Float64 = prior
    for _ in range(ROUNDS):
        likely = shares(given @ found, there)
        held = likely[:, :, None] * given
        mean: Likely = held.sum(axis=1)
        slope: Float64 = mean.sum(axis=0) - right + PRIOR * (found - prior)
        flat = given.reshape(-1, len(prior))
        bend: Likely = held.reshape(-1, len(prior)).T @ flat - mean.T @ mean
        step = np.linalg.solve(bend + PRIOR * np.eye(len(prior)), slope).astype(np.float64)
        while surprise(found - step) > surprise(found) and np.abs(step).max() > 1e-9:
            step = step / 2.0
        found = found - step
        if np.abs(step).max() < 1e-9:
            break
    return Weights(**{field.name: float(value) for field, value in zip(fields(Weights), found, strict=True)})


def fused_by_tier(
    scores: Scores, inputs: Inputs, calibration: Calibration, known: Mask, fusion: Sequence[Fusion]
) -> dict[str, float]:
    """The figures of a model card, by tier and name, of what numbers, rules and the model say together."""
    found: dict[str, float] = {}
    for tier, one in enumerate(fusion):
        asked = asked_of(scores, inputs, calibration, known, inputs.tier == tier)
        found |= {f"T{tier}, {name}": value for name, value in fused_scores(*asked, one).items()}
    return found


def fused_scores(asked: Asked, truth: Int64, fusion: Fusion) -> dict[str, float]:
    """The figures of a model card, by name, of what numbers, rules and the model say together."""
    struck, calm = truth >= FIRST, truth == NONE
    if not struck.any():
        return {}
    likely = pooled(asked, fusion.weights)
    said = chosen(likely, evident(asked.clues), fusion.threshold)
    named = said >= FIRST
    best = np.argsort(-likely[:, FIRST:], axis=1)[:, :3] + FIRST
    return {
        "fused, a struck request: top-1": float((best[struck, 0] == truth[struck]).mean()),
        "fused, a struck request: top-3": float((best[struck] == truth[struck, None]).any(axis=1).mean()),
        "fused, a struck request: named": float(named[struck].mean()),
        "fused, a struck request: right where named": _mean((said == truth)[struck & named]),
        "fused, healthy requests: given a cause": _mean(named[calm]),
        "fused, the verdict: calibration error": calibration_error(sure_of(likely, said), said == truth),
    }


def sure_of(likely: Likely, said: Int64) -> Float64:
    """float64 [n]: how likely what was said is."""
    return likely[np.arange(len(said)), said]


def _mean(right: Mask) -> float:
    return float(right.mean()) if len(right) else float("nan")
