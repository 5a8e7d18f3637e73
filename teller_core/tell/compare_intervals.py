"""Ratios of two sets of measured values, each with the interval that holds it with 95 % confidence.

``sure`` needs an interval without 1 and enough values on both sides.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from teller_core.data.report import Difference
from teller_core.data.table import Float64

ENOUGH = 8
"""Values on each side for a sure difference: of fewer, a median says little about the next."""
TAIL_ENOUGH = 30
"""And for a sure difference of 90th percentiles: three values beyond each."""
SURE_SPREADS = 1.96
CHANCE = 0.05
TIE = 1e-7
"""Logarithms of two ways that are closer than this are of one number, rounded."""
Bools = npt.NDArray[np.bool_]


def difference(
    what: str,
    layer: str,
    sides: tuple[float | None, float | None],
    *,
    unit: str,
    ratio: float | None,
    bounds: tuple[float | None, float | None] = (None, None),
    enough: bool = True,
) -> Difference:
    """The difference of the ``sides``, before and after, as it is shown. Sure where ``enough`` was measured and the ``bounds`` of
    the ratio, as shown, leave 1 out.
    """
    before, after = (None if side is None else rounded(side) for side in sides)
    low, high = (None if bound is None else round(float(bound), 3) for bound in bounds)
    return Difference(
        what=what,
        layer=layer,
        before=before,
        after=after,
        unit=unit,
        ratio=None if ratio is None else round(float(ratio), 3),
        low=low,
        high=high,
        sure=enough and low is not None and high is not None and not low <= 1 <= high,
    )


def medians(what: str, layer: str, a: Float64, b: Float64, *, unit: str, q: float = 0.5) -> Iterator[Difference]:
    """The difference of two medians (or other quantiles) with its interval; nothing where one side is empty."""
    if not len(a) or not len(b):
        return
    before, after = float(np.quantile(a, q)), float(np.quantile(b, q))
    low, high = _bounds(a, b, q)
    enough = min(len(a), len(b)) >= (ENOUGH if q == 0.5 else TAIL_ENOUGH)
    ratio = after / before if before > 0 else None
    yield difference(what, layer, (before, after), unit=unit, ratio=ratio, bounds=(low, high), enough=enough)


def shares(what: str, layer: str, a: Bools, b: Bools) -> Iterator[Difference]:
    """The difference of two shares, in percent; nothing where one side is empty or neither has any. Sure by Fisher's exact
    test (two-sided, 5 %), which needs no large counts.
    """
    hits = int(a.sum()), int(b.sum())
    if not len(a) or not len(b) or not any(hits):
        return
    before, after = 100 * hits[0] / len(a), 100 * hits[1] / len(b)
    yield Difference(
        what=what,
        layer=layer,
        before=rounded(before),
        after=rounded(after),
        unit="% of them",
        ratio=round(after / before, 3) if before > 0 else None,
        low=None,
        high=None,
        sure=min(len(a), len(b)) >= ENOUGH and exact(hits[0], len(a), hits[1], len(b)) < CHANCE,
    )


def exact(a: int, of_a: int, b: int, of_b: int) -> float:
    """Fisher's exact test: how likely chance alone parts ``a + b`` hits as unevenly over ``of_a`` and ``of_b`` cases.

    In logarithms, each way from the one before it: the ways of ten thousand hits are numbers of as many digits.
    """
    hits, least = a + b, max(0, a + b - of_b)
    k = np.arange(least, min(hits, of_a), dtype=np.float64)
    steps = np.log((of_a - k) * (hits - k)) - np.log((k + 1) * (of_b - hits + k + 1))
    ways = np.concatenate([np.zeros(1), np.cumsum(steps)])
    weight = np.exp(ways - ways.max())
    return float(weight[ways <= ways[a - least] + TIE].sum() / weight.sum())


def matched(
    what: str, pairs: Sequence[tuple[Float64, Float64]], *, layer: str = "engine", unit: str = "ms"
) -> Difference:
    """The ratio over sets of like work: the mean of the sets' log ratios of medians, weighted by their smaller count."""
    weight = np.array([min(len(a), len(b)) for a, b in pairs], dtype=np.float64)
    share = weight / weight.sum()
    logs = np.array([_log_ratio(a, b, 0.5) for a, b in pairs])
    middle, below, above = float(share @ logs[:, 0]), *(float(np.hypot.reduce(share * logs[:, i])) for i in (1, 2))
    low, high = np.exp(middle - below), np.exp(middle + above)
    before, after = (float(np.average([np.median(p[i]) for p in pairs], weights=weight)) for i in (0, 1))
    enough = bool(weight.sum() >= ENOUGH)
    ratio = float(np.exp(middle))
    return difference(what, layer, (before, after), unit=unit, ratio=ratio, bounds=(low, high), enough=enough)


def _bounds(a: Float64, b: Float64, q: float) -> tuple[float | None, float | None]:
    """95 % bounds of the ratio of two quantiles; None where zeros leave no ratio."""
    if min(float(a.min()), float(b.min())) <= 0:
        return None, None
    middle, below, above = _log_ratio(a, b, q)
    return float(np.exp(middle - below)), float(np.exp(middle + above))


def _log_ratio(a: Float64, b: Float64, q: float) -> tuple[float, float, float]:
    """Log of quantile(b) / quantile(a), and how far its 95 % interval reaches below and above: the order statistics of each
    side, joined as Zou and Donner (2008) join intervals that are not symmetric.
    """
    (x, x_low, x_high), (y, y_low, y_high) = order_interval(np.log(a), q), order_interval(np.log(b), q)
    return y - x, float(np.hypot(y - y_low, x_high - x)), float(np.hypot(y_high - y, x - x_low))


def order_interval(value: Float64, q: float) -> tuple[float, float, float]:
    """The q-quantile and the order statistics that hold it with 95 % (the least and the largest of few values)."""
    ranked, n = np.sort(value), len(value)
    reach = SURE_SPREADS * np.sqrt(n * q * (1 - q))
    low, high = max(int(np.floor(n * q - reach)), 0), min(int(np.ceil(n * q + reach)), n - 1)
    return float(np.quantile(ranked, q)), float(ranked[low]), float(ranked[high])


def means(what: str, layer: str, a: Float64, b: Float64, *, unit: str) -> Iterator[Difference]:
    """The difference of two means of many even parts; nothing where a side is empty or nothing but zeros on both."""
    if not len(a) or not len(b) or not (a.any() or b.any()):
        return
    before, after = float(a.mean()), float(b.mean())
    low = high = None
    if before > 0 and after > 0:
        error = float(np.hypot(_error(a) / before, _error(b) / after))
        low, high = (after / before * float(np.exp(way * SURE_SPREADS * error)) for way in (-1, 1))
    ratio, enough = after / before if before > 0 else None, min(len(a), len(b)) >= ENOUGH
    yield difference(what, layer, (before, after), unit=unit, ratio=ratio, bounds=(low, high), enough=enough)


def _error(value: Float64) -> float:
    """The standard error of the mean."""
    return float(value.std(ddof=1) / np.sqrt(len(value))) if len(value) > 1 else float("inf")


def rounded(value: float) -> float:
    """``value`` to a millionth."""
    return round(value, 6)
