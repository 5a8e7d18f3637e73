"""From scores to how sure: fitted on lives that training did not see."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float64, Mask
from teller_core.model.classes import FIRST, NONE
from teller_core.model.inputs import HEADS

ENOUGH = 60
"""Sheets of a head, and at least a twelfth of them of either kind, that have a scaling of their own."""
ABNORMAL = 0.5
"""A sheet that is at least so likely abnormal is called so."""
PRECISE = 0.95
"""Of named causes that should be right."""
UNSURE = 0.10
"""Of struck requests that may stay without a cause where PRECISE cannot be reached."""
Logits = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """``slope``, ``shift``: of the abnormal score, by head (Platt 1999); ``temperature``: of the causes (Guo and others 2017);
    ``threshold``: a cause that is less sure than this is not named.
    """

    slope: tuple[float, ...] = (1.0,) * HEADS
    shift: tuple[float, ...] = (0.0,) * HEADS
    temperature: float = 1.0
    threshold: float = 0.5

    def abnormal(self, score: Float64, head: npt.NDArray[np.int32]) -> Float64:
        """float64: how likely each sheet is abnormal."""
        return sigmoid(np.array(self.slope)[head] * score + np.array(self.shift)[head])

    def causes(self, score: Logits) -> Logits:
        """float64 [n, classes], rows sum to 1."""
        return softmax(score / self.temperature)

    def named(self, likely: Logits) -> Mask:
        """bool: what :meth:`causes` gave of a sheet names a cause: it is sure enough, and likelier than that nothing is wrong."""
        sure = likely[:, FIRST:].max(axis=1)
        return (sure >= self.threshold) & (sure > likely[:, NONE])


def sigmoid(value: Float64) -> Float64:
    """float64, between 0 and 1, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * value))


def softmax(value: Logits) -> Logits:
    """float64, of each row."""
    raised = np.exp(value - value.max(axis=1, keepdims=True))
    return raised / raised.sum(axis=1, keepdims=True)


def scaled(score: Float64, right: Mask) -> tuple[float, float]:
    """The slope and the shift that make ``score`` most likely, by Newton's method, with the targets and the slight prior that
    Platt gives, so that neither runs away where all is told apart.
    """
    yes, no = int(right.sum()), int((~right).sum())
    target = np.where(right, (yes + 1.0) / (yes + 2.0), 1.0 / (no + 2.0))
    given = np.stack([score, np.ones_like(score)], axis=1)
    prior, ridge = np.array([1.0, 0.0]), np.array([1e-2, 1e-3])

    def surprise(at: Float64) -> float:
        line = given @ at
        return float(np.sum(np.logaddexp(0.0, line) - target * line) + 0.5 * np.sum(ridge * (at - prior) ** 2))

    found = np.zeros(2)
    for _ in range(50):
        likely = sigmoid(given @ found)
        slope = given.T @ (likely - target) + ridge * (found - prior)
        bend = (given * (likely * (1.0 - likely))[:, None]).T @ given + np.diag(ridge)
        step = np.linalg.solve(bend, slope)
        while surprise(found - step) > surprise(found) and np.abs(step).max() > 1e-9:
            step = step / 2.0
        found = found - step
        if np.abs(step).max() < 1e-9:
            break
    return max(float(found[0]), 1e-3), float(found[1])


def heads_scaled(
    score: Float64, right: Mask, head: npt.NDArray[np.int32]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Slopes and shifts by head: of all sheets together for a head that has too few."""
    every = scaled(score, right) if 0 < right.sum() < len(right) else (1.0, 0.0)
    found = [every] * HEADS
    for at in range(HEADS):
        own = head == at
        least = min(int(right[own].sum()), int((~right[own]).sum()))
        if own.sum() >= ENOUGH and 12 * least >= own.sum():
            found[at] = scaled(score[own], right[own])
    return tuple(each[0] for each in found), tuple(each[1] for each in found)


def tempered(score: Logits, wanted: npt.NDArray[np.int64]) -> float:
    """The temperature that makes the wanted classes most likely: golden section over its logarithm, 1/8 to 8."""
    if not len(wanted):
        return 1.0

    def surprise(power: float) -> float:
        rows = score / np.exp(power)
        peak = rows.max(axis=1)
        whole = peak + np.log(np.exp(rows - peak[:, None]).sum(axis=1))
        return float((whole - rows[np.arange(len(wanted)), wanted]).mean())

    ratio = (5.0**0.5 - 1.0) / 2.0
    low, high = -np.log(8.0), np.log(8.0)
    for _ in range(60):
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        low, high = (low, right) if surprise(left) <= surprise(right) else (left, high)
    return float(np.exp((low + high) / 2.0))


def threshold(sure: Float64, right: Mask) -> float:
    """Of causes named so surely and right or not: the least confidence from which on PRECISE of them are right; where there is
    none, that which UNSURE of them do not reach.
    """
    if not len(sure):
        return 0.5
    order = np.argsort(-sure, kind="stable")
    level, good = sure[order], np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    last = np.append(level[1:] != level[:-1], True)
    enough = np.flatnonzero(last & (good >= PRECISE))
    if len(enough) and (enough[-1] + 1) >= (1.0 - UNSURE) * len(order):
        return float(level[enough[-1]])
    return float(np.quantile(sure, UNSURE))
