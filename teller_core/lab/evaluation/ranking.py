"""How high the right name stands in a ranked list: AC@k, Avg@5, MRR, and macro F1 of the first names."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.table import Float64, Int32, Mask

NONE = "(none)"
"""What stands for the first name of an empty list."""


def place(named: Sequence[str | int], right: Sequence[str | int]) -> int:
    """From 1: where the first of ``right`` stands in ``named``; 0 where none does."""
    wanted = set(right)
    return next((at for at, name in enumerate(named, 1) if name in wanted), 0)


def accuracy_at(places: Int32, weight: Float64, k: int) -> float:
    """AC@k: the share of lists whose first ``k`` names hold a right one; NaN without lists."""
    return _mean((places > 0) & (places <= k), weight)


def average_at(places: Int32, weight: Float64, k: int) -> float:
    """Avg@k: the mean of AC@1 to AC@k."""
    return float(np.mean([accuracy_at(places, weight, each) for each in range(1, k + 1)]))


def reciprocal(places: Int32, weight: Float64) -> float:
    """MRR: the mean of one over the place, 0 for a list without a right name."""
    return _mean(np.where(places > 0, 1.0 / np.maximum(places, 1), 0.0), weight)


def first_names(named: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """(true, said) a list: the first right name, and the same where any right one was said first, else what was said."""
    true = [wanted[0] for wanted in right]
    said = [
        wanted[0] if names and names[0] in wanted else names[0] if names else NONE
        for names, wanted in zip(named, right, strict=True)
    ]
    return true, said


def macro_f1(true: Sequence[str], said: Sequence[str], weight: Float64) -> float:
    """The plain mean of F1 over every true name, those never said included; NaN without any."""
    names = sorted(set(true))
    if not names:
        return float("nan")
    is_true, is_said = np.array(true, dtype=object), np.array(said, dtype=object)
    scores: list[float] = []
    for name in names:
        wanted, called = float(weight[is_true == name].sum()), float(weight[is_said == name].sum())
        hit = float(weight[(is_true == name) & (is_said == name)].sum())
        if wanted > 0:
            scores.append(2 * hit / (wanted + called))
    return float(np.mean(scores)) if scores else float("nan")


def _mean(value: Float64 | Mask, weight: Float64) -> float:
    total = float(weight.sum())
    return float((value * weight).sum() / total) if total > 0 else float("nan")
