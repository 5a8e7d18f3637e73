"""How far two groups differ in one respect, and whether chance explains it.

Cliff's delta (Cliff 1993): the chance that one of the first group has more than one of the second, less the chance that it has
less. Of what is or is not so it is the difference of the shares. Its interval is that of Feng and Cliff (2004), which is not
symmetric and stays within -1 to 1.
"""

from math import erfc, sqrt
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64

SIGMAS = 1.959964
"""Standard deviations to either side that hold 95 %."""


class Difference(NamedTuple):
    """``effect`` between -1 and 1, with its interval of 95 %; ``chance``: how often two groups that do not differ would be told
    apart at least as clearly (two-sided).
    """

    effect: float
    low: float
    high: float
    chance: float


def more_or_less(first: Float64, second: Float64) -> Difference | None:
    """Of numbers; NaN is unknown. None where either group has fewer than two. Its chance is that of the rank-sum test, with a
    correction for ties and for continuity (Mann and Whitney 1947).
    """
    first, second = np.sort(first[~np.isnan(first)]), np.sort(second[~np.isnan(second)])
    m, n = len(first), len(second)
    if min(m, n) < 2:
        return None
    mine = _over(first, second)
    theirs = -_over(second, first)
    effect = float(mine.mean())
    ties = np.unique(np.concatenate([first, second]), return_counts=True)[1].astype(np.float64)
    variance = m * n / 12 * (m + n + 1 - float((ties**3 - ties).sum()) / ((m + n) * (m + n - 1)))
    beyond = max(abs(effect) * m * n / 2 - 0.5, 0.0)
    chance = erfc(beyond / sqrt(2 * variance)) if variance > 0 else 1.0
    squares = [float(((over - effect) ** 2).sum()) for over in (mine, theirs)]
    interval = _interval(effect, (m, squares[0]), (n, squares[1]), _apart(first, second))
    return Difference(effect, *interval, min(chance, 1.0))


def so_or_not(first: int, of_first: int, second: int, of_second: int) -> Difference | None:
    """Of what is so of ``first`` of ``of_first`` and of ``second`` of ``of_second``. None where either group has fewer than two.
    Its chance is that of Fisher's exact test.
    """
    if min(of_first, of_second) < 2:
        return None
    of_mine, of_theirs = first / of_first, second / of_second
    effect = of_mine - of_theirs
    mine = first * (1 - of_theirs - effect) ** 2 + (of_first - first) * (-of_theirs - effect) ** 2
    theirs = second * (of_mine - 1 - effect) ** 2 + (of_second - second) * (of_mine - effect) ** 2
    apart = first * (of_second - second) + (of_first - first) * second
    interval = _interval(effect, (of_first, mine), (of_second, theirs), apart)
    return Difference(effect, *interval, _by_chance(first, of_first, second, of_second))


def _over(of: Float64, others: Float64) -> Float64:
    """Of each value: the share of ``others``, sorted, that it exceeds less the share that exceeds it."""
    below = np.searchsorted(others, of, "left")
    above = len(others) - np.searchsorted(others, of, "right")
    return (below - above) / len(others)


def _apart(first: Float64, second: Float64) -> int:
    """Pairs of one of each, both sorted, that are not equal."""
    equal = np.searchsorted(second, first, "right") - np.searchsorted(second, first, "left")
    return len(first) * len(second) - int(equal.sum())


def _interval(effect: float, mine: tuple[int, float], theirs: tuple[int, float], apart: int) -> tuple[float, float]:
    """The interval of an effect. Of either group: how many, and the sum of the squares by which what each of them exceeds the
    other group by differs from the effect. ``apart``: pairs that are not equal.
    """
    (m, squares), (n, others) = mine, theirs
    if abs(effect) == 1.0:
        inner = (min(m, n) - SIGMAS**2) / (min(m, n) + SIGMAS**2)
        return (inner, 1.0) if effect > 0 else (-1.0, -inner)
    spread = n**2 * squares + m**2 * others
    unbiased = (spread - (apart - m * n * effect**2)) / (m * n * (m - 1) * (n - 1))
    variance = max(unbiased, (1 - effect**2) / (m * n - 1))
    room = SIGMAS * sqrt(variance) * sqrt((1 - effect**2) ** 2 + SIGMAS**2 * variance)
    below = 1 - effect**2 + SIGMAS**2 * variance
    middle = effect - effect**3
    return max((middle - room) / below, -1.0), min((middle + room) / below, 1.0)


def _by_chance(first: int, of_first: int, second: int, of_second: int) -> float:
    """How likely a table is that is no likelier than this one, of all with its margins."""
    so, all_of_them = first + second, of_first + of_second
    least, most = max(0, so - of_second), min(so, of_first)
    steps = np.arange(least, most, dtype=np.float64)
    ratios = np.log((so - steps) * (of_first - steps)) - np.log((steps + 1) * (all_of_them - so - of_first + steps + 1))
    logs = np.concatenate([[0.0], np.cumsum(ratios)])
    likely = np.exp(logs - logs.max())
    return min(float(likely[likely <= likely[first - least] * (1 + 1e-7)].sum() / likely.sum()), 1.0)
