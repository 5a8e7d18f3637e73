"""Time as a sum of costs, learned so that a minority of slow values does not become the norm."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float64
from teller_core.judge.robust import NORMAL_MAD

RIDGE = 1e-9
"""Of the mean square of the features: what keeps columns that tell nothing apart from ruining the others."""
MIN_PEERS = 8
"""Fewer values than this give no expectation: a robust spread of seven is wrong by more than a third, and one odd value
among them may as well be the norm."""
LEAST_SPREAD = 0.05
"""No service repeats itself more closely than 5 %; a narrower band would call scheduling noise surprising."""
ROUNDS = 30
LOW = 0.35
"""The quantile that the first half of the rounds aims at: where three values in ten are slow it is the others' median."""
BISQUARE = 4.685
"""The usual constant of robust regression: 95 % of the efficiency of least squares on normal errors."""


@dataclass(frozen=True)
class Fit:
    """``cost`` float64: ns for each unit of each feature, none negative. ``spread``: robust standard deviation of log time
    about the prediction; ``inverse``: the covariance of the costs in units of the spread; ``peers``: values it rests on.
    """

    cost: Float64
    spread: float
    inverse: Float64
    peers: int

    def predict(self, features: Float64) -> Float64:
        """float64 ns for every row of ``features``."""
        return features @ self.cost

    def width(self, features: Float64) -> Float64:
        """float64 for every row: the spread of log time, wider where its work is unlike what was learned from."""
        relative = features / np.maximum(self.predict(features), 1.0)[:, None]
        return self.spread * np.sqrt(1.0 + np.einsum("ij,jk,ik->i", relative, self.inverse, relative))


def fit(features: Float64, took: Float64) -> Fit | None:
    """Costs that predict ``took`` (ns, positive) from ``features`` (one row a value, not negative), robust in log time: a low
    quantile (Koenker and Bassett 1978, by reweighting) finds the bulk, Tukey's bisquare leaves out what is not of it. None
    for fewer than MIN_PEERS values.
    """
    if len(took) < MIN_PEERS:
        return None
    scale = np.maximum(np.max(features, axis=0), 1e-12)
    x = features / scale
    cost = np.zeros(x.shape[1])
    cost[0] = usual = float(np.median(took))
    normal = np.eye(x.shape[1])
    spread = 1.0
    for turn in range(ROUNDS):
        expected = np.maximum(x @ cost, 1e-3 * usual)
        residual = np.log(took / expected)
        spread = max(float(np.median(np.abs(residual))) * NORMAL_MAD, LEAST_SPREAD)
        away = np.abs(residual) / spread
        if turn < ROUNDS // 2:
            weight = np.where(residual > 0, LOW, 1 - LOW) / np.maximum(np.abs(residual), LEAST_SPREAD / 5)
        else:
            weight = np.maximum(1 - (away / BISQUARE) ** 2, 0) ** 2
        relative = x / expected[:, None]
        normal = relative.T @ (relative * weight[:, None])
        # Far below the predictions of the bulk a ridge of fixed size would be lost in rounding, and equal columns be singular.
        normal += RIDGE * np.eye(len(cost)) * max(float(np.trace(normal)) / len(cost), usual**-2)
        cost = _not_negative(normal, relative.T @ (weight * (1.0 + np.clip(residual, -1.0, 1.0))))
    inverse = np.linalg.inv(normal)
    return Fit(cost / scale, spread, inverse / np.outer(scale, scale), len(took))


def surprise(took: Float64, expected: Float64, width: Float64 | float) -> Float64:
    """float64: how many spreads log ``took`` lies above log ``expected``; NaN where either is NaN."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.log(took / expected) / width


def _not_negative(normal: Float64, target: Float64) -> npt.NDArray[np.float64]:
    """The least-squares solution with no negative entry: drop the most negative one until none is left."""
    active = np.ones(len(target), dtype=np.bool_)
    solution = np.zeros(len(target))
    while active.any():
        solution[:] = 0.0
        solution[active] = np.linalg.solve(normal[np.ix_(active, active)], target[active])
        if not np.any(solution < 0):
            break
        active[int(np.argmin(solution))] = False
    return np.maximum(solution, 0.0)
