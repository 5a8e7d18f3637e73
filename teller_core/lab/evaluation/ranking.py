"""How high the right name stands in a ranked list: AC@k, Avg@5, MRR, and macro F1 of the first names."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int32, Int64, Mask
from teller_core.lab.evaluation.causes import mean_share

NONE = "(none)"
"""What stands for the first name of an empty list."""


def place(named: Sequence[str | int], right: Sequence[str | int]) -> int:
    """From 1: where the first of ``right`` stands in ``named``; 0 where none does."""
    wanted = set(right)
    return next((at for at, name in enumerate(named, 1) if name in wanted), 0)


def hits(places: Int32, k: int) -> Mask:
    """bool a list: a right name is among its first ``k``. Their share is AC@k."""
    return (places > 0) & (places <= k)


def reciprocals(places: Int32) -> Float64:
    """float64 a list: one over the place, 0 for a list without a right name. Their mean is MRR."""
    return np.where(places > 0, 1.0 / np.maximum(places, 1), 0.0)


def first_names(named: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> tuple[list[str], list[str]]:
    """(true, said) a list: the first right name, and the same where any right one was said first, else what was said."""
    true = [wanted[0] for wanted in right]
    said = [
        wanted[0] if names and names[0] in wanted else names[0] if names else NONE
        for names, wanted in zip(named, right, strict=True)
    ]
    return true, said


class Numbered(NamedTuple):
    """Names as numbers: ``true`` and ``said`` int64, from 0 to ``names`` - 1; -1 for what is true nowhere."""

    true: Int64
    said: Int64
    names: int


def numbered(true: Sequence[str], said: Sequence[str]) -> Numbered:
    """Names that are true somewhere, in order, as numbers."""
    number = {name: at for at, name in enumerate(sorted(set(true)))}
    return Numbered(
        np.array([number[name] for name in true], dtype=np.int64),
        np.array([number.get(name, -1) for name in said], dtype=np.int64),
        len(number),
    )


def macro_f1_of(sums: Float64) -> Float64:
    """float64 [...]: the plain mean of F1 over every true name, those never said included, NaN without any. ``sums``: float64
    [..., 3 * names]: how often each name is true, is said, and is both.
    """
    if not sums.shape[-1]:
        return np.full(sums.shape[:-1], np.nan)
    true, said, hit = np.split(sums, 3, axis=-1)
    return mean_share(2 * hit, true + said, true > 0)
