"""A Gaussian copula: each feature by its rank among healthy steps, their dependence by a correlation of normal scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from teller_core.data.table import Float64
from teller_core.lab.evaluation.density import columns_of
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.training import Scale, healthy_steps, scale_of

LARGEST = 6.0
"""Normal scores beyond the healthy extreme grow on as the scaled value does, up to here."""
GRID: Sequence[Options] = tuple({"all": every, "shrink": by} for every in (0, 1) for by in (0.01, 0.1, 0.3))
"""Times alone or all features, and how far the correlations are pulled to 0."""


@dataclass(frozen=True)
class Copula:
    """``known``: the sorted healthy values of each column, scaled; ``score``: the normal scores of their ranks; ``inverse``:
    float64, of the correlation.
    """

    columns: Sequence[int]
    scale: Scale
    known: Sequence[Float64]
    score: Sequence[Float64]
    inverse: Float64


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Copula:
    """Ranks, their normal scores (Liu, Lafferty and Wasserman 2009), and a correlation shrunk to the unit matrix."""
    columns = columns_of(options)
    raw = healthy_steps(episodes, columns, seed)
    scale = scale_of(raw)
    value = scale(raw)
    known = [np.sort(column) for column in value.T]
    normal = _normal_scores(len(value))
    scores = [normal] * len(columns)
    turned = _turned(value, known, scores)
    moment = turned.T @ turned / max(len(turned), 1)
    width = np.sqrt(np.maximum(np.diag(moment), 1e-6))
    correlation = moment / np.outer(width, width)
    shrunk = (1 - options["shrink"]) * correlation + options["shrink"] * np.eye(len(columns))
    np.fill_diagonal(shrunk, 1.0)
    return Copula(columns, scale, known, scores, np.linalg.inv(shrunk).astype(np.float64))


def score(model: Copula, seen: Seen) -> Float64:
    """float64 a step: its squared distance under the copula; NaN where nothing of it is known."""
    value = seen.steps.value[:, list(model.columns)]
    turned = _turned(model.scale(value), model.known, model.score)
    distance = np.einsum("ij,jk,ik->i", turned, model.inverse, turned)
    return np.where(np.isnan(value).all(axis=1), np.nan, distance)


def _normal_scores(count: int) -> Float64:
    normal = NormalDist()
    return np.array([normal.inv_cdf((at + 0.5) / count) for at in range(count)], dtype=np.float64)


def _turned(value: Float64, known: Sequence[Float64], scores: Sequence[Float64]) -> Float64:
    """float64, the shape of ``value``: the normal score of each value's place among the known ones of its column."""
    out = np.zeros(value.shape)
    for at, (column, normal) in enumerate(zip(known, scores, strict=True)):
        if len(column):
            middle = (
                np.searchsorted(column, value[:, at], "left") + np.searchsorted(column, value[:, at], "right")
            ) / 2
            inside = np.interp(middle - 0.5, np.arange(len(column)), normal)
            beyond = np.maximum(value[:, at] - column[-1], 0) - np.maximum(column[0] - value[:, at], 0)
            out[:, at] = np.clip(inside + beyond, -LARGEST, LARGEST)
    return out


METHOD = method_of(Scorer("copula", "Gaussian copula, learned from healthy steps", learn, score, GRID))
