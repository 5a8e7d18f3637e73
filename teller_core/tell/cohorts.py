"""The slow beside the fast: what the slowest quarter of the requests has that the others have not."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.difference import Difference, more_or_less, so_or_not
from teller_core.data.report import Contrast
from teller_core.data.table import UNKNOWN, Int64
from teller_core.tell.cohort_features import SHARE, Feature, Known, features
from teller_core.tell.layout import many

FEWEST = 16
"""Requests: of fewer a quarter is three, and even what all of these have and nobody else may be chance."""
CLEAR = 0.6
"""Cliff's delta from which two groups hardly overlap ("large" from 0.47, Romano et al. 2006; stricter, as several are tried)."""
CLEAR_SHARE = 1 / 3
"""Of what is or is not so: a third more of the slow than of the fast. What makes requests slow is seldom one thing alone."""
LEVEL = 0.05
"""A difference is claimed where chance explains one as clear among all that were tried (Bonferroni) in fewer cases."""
MOST = 12
"""Differences that are told, the claimed ones first."""
COLUMNS = ("what", "unit", "slow", "fast", "effect", "low", "high", "of_slow", "of_fast", "claimed", "untrusted_text")


class Told(NamedTuple):
    """The sentence, and the columns behind it; None where there are too few requests."""

    sentence: str
    contrast: Contrast | None


class _Found(NamedTuple):
    feature: Feature
    slow: float
    fast: float
    of_slow: int
    of_fast: int
    differs: Difference


def what_differs(known: Known, value: Int64) -> Told:
    """What tells the slowest quarter from the rest, or why that cannot be said.

    ``value`` int64 ns a request, UNKNOWN where it was not measured. The names and numbers are the requests' own.
    """
    measured = np.flatnonzero(value != UNKNOWN)
    if not len(measured):
        return Told("Nothing recorded how long any of them took, so they stand in the order in which they came.", None)
    if len(measured) < FEWEST:
        few = f"Only {many(len(measured), 'request')} measured: too few to tell the slow from the fast"
        return Told(f"{few} (at least {FEWEST}).", None)
    order = measured[np.argsort(value[measured], kind="stable")]
    cut = len(order) - len(order) // 4
    fast, slow = order[:cut], order[cut:]
    found = [one for each in features(known, _usual_time(known, slow)) if (one := _held(each, slow, fast))]
    rows = sorted(found, key=lambda one: (not _claimed(one, len(found)), -abs(one.differs.effect)))[:MOST]
    claimed = [one for one in rows if _claimed(one, len(found))]
    contrast = Contrast(
        slow=len(slow),
        fast=len(fast),
        tried=len(found),
        columns=list(COLUMNS),
        rows=[_row(one, len(found)) for one in rows],
        note=""
        if known.lines is not None
        else "The log has too many lines to look for those that stand around slow requests.",
    )
    return Told(_sentence(claimed, found), contrast)


def _usual_time(known: Known, slow: Int64) -> int:
    """int ns: how long the slow ones took from end to end, in the median; 0 where nobody knows."""
    begin, end = known.requests.begin()[slow], known.requests.end()[slow]
    took = (end - begin)[(begin != UNKNOWN) & (end != UNKNOWN)]
    return int(np.median(took)) if len(took) else 0


def _held(feature: Feature, slow: Int64, fast: Int64) -> _Found | None:
    """How far the slow and the fast differ in it; None where too few of either are known, and where it is the same for all."""
    mine, others = (side[~np.isnan(side)] for side in (feature.column[slow], feature.column[fast]))
    if feature.unit == SHARE:
        differs = so_or_not(int(mine.sum()), len(mine), int(others.sum()), len(others))
    else:
        differs = more_or_less(mine, others)
    if differs is None or np.ptp(np.concatenate([mine, others])) == 0:
        return None
    middle = np.mean if feature.unit == SHARE else np.median
    return _Found(feature, float(middle(mine)), float(middle(others)), len(mine), len(others), differs)


def _claimed(one: _Found, tried: int) -> bool:
    clear = CLEAR_SHARE if one.feature.unit == SHARE else CLEAR
    return abs(one.differs.effect) >= clear and one.differs.chance * tried < LEVEL


def _row(one: _Found, tried: int) -> list[str | int | float | bool | None]:
    effect = [round(value, 3) for value in one.differs[:3]]
    middles = [_rounded(one.slow), _rounded(one.fast)]
    counts = [one.of_slow, one.of_fast, _claimed(one, tried), one.feature.untrusted_text]
    return [one.feature.what, one.feature.unit, *middles, *effect, *counts]


def _sentence(claimed: Sequence[_Found], found: Sequence[_Found]) -> str:
    named = [_words(one) for one in claimed if one.feature.untrusted_text is None][:3]
    if not named and claimed:
        return "The slowest quarter differs from the rest in lines of the log, which stand beside this."
    if not named:
        kinds = "tokens, batches, phases, causes or log lines" if found else "anything that was recorded of them"
        return f"The slowest quarter does not differ clearly from the rest in {kinds}."
    return f"The slowest quarter differs from the rest in {', '.join(named)}."


def _words(one: _Found) -> str:
    if one.feature.unit == SHARE:
        return f"{one.feature.what} ({100 * one.slow:.0f} % of them against {100 * one.fast:.0f} %)"
    after = " ms" if one.feature.unit == "ms" else ""
    return f"{one.feature.what} (median {one.slow:.4g}{after} against {one.fast:.4g}{after})"


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
