"""How good a model is on sheets whose truth is known: the few figures that choose among weights and stand on the model card."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Float64, Int64, Mask

EQUAL_MASS = 15
"""Bins of the calibration error, each of as many sheets."""


def average_precision(score: Float64, right: Mask) -> float:
    """The area below precision over recall; NaN without both kinds. Equal scores come together."""
    if not 0 < right.sum() < len(right):
        return float("nan")
    order = np.argsort(-score, kind="stable")
    hit = np.cumsum(right[order])
    last = np.append(np.diff(score[order]) != 0, True)
    hit, many = hit[last], np.flatnonzero(last) + 1
    return float(np.sum(np.diff(hit, prepend=0) * hit / many) / right.sum())


def f1(said: Mask, right: Mask) -> float:
    """The harmonic mean of precision and recall; NaN where there is nothing to find and nothing was said."""
    both = float((said & right).sum())
    whole = float(said.sum() + right.sum())
    return 2.0 * both / whole if whole else float("nan")


def macro_f1(said: Int64, right: Int64) -> float:
    """The mean F1 over the classes that are right somewhere."""
    return (
        float(np.mean([f1(said == each, right == each) for each in np.unique(right)])) if len(right) else float("nan")
    )


def calibration_error(sure: Float64, right: Mask) -> float:
    """The mean distance between how sure and how right, over EQUAL_MASS groups of like sureness; NaN without sheets."""
    if not len(sure):
        return float("nan")
    order = np.argsort(sure, kind="stable")
    parts: Sequence[Int64] = np.array_split(order, min(EQUAL_MASS, len(order)))
    gaps = [len(part) * abs(float(sure[part].mean() - right[part].mean())) for part in parts]
    return sum(gaps) / len(sure)


def first_right(score: Float64, target: npt.NDArray[np.int8], owner: Int64, count: int) -> float:
    """The share of sheets with a right item whose highest item is right; NaN without any."""
    told = np.unique(owner[target == 1])
    if not len(told):
        return float("nan")
    order = np.lexsort((-score, owner))
    first = order[np.searchsorted(owner[order], np.arange(count))[told]]
    return float((target[first] == 1).mean())
