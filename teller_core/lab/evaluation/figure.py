"""One figure: its value with its interval by life and how many windows stand behind it, or why it is not said.

No figure is said that rests on fewer than LEAST_POSITIVES windows with what is to be found.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32
from teller_core.lab.evaluation.bootstrap import Interval, Sums, by_life
from teller_core.lab.evaluation.rows import distinct_windows

LEAST_POSITIVES = 30
LESS = frozenset({"alarms_an_hour", "called_normal", "ece", "step_ece", "brier", "risk_over_coverage", "named_wrongly"})
"""Figures, by the second part of their keys, of which less is better."""
NEITHER = frozenset({"could_not_tell", "named"})
"""Of which neither is. Of all others, more is better."""


class Figure(NamedTuple):
    """``low`` and ``high``: 95 %, NaN without an interval; ``value`` NaN with the reason in ``why``. ``positives``: windows
    (lives, for what is counted in time) behind it. ``better``: 1 where more is better, -1 where less is, 0 for neither.
    ``drawn``: its value in each draw of lives, NaN where it could not be said there; empty without an interval.
    """

    key: str
    value: float
    low: float
    high: float
    positives: int
    better: int
    why: str = ""
    drawn: Sequence[float] = ()


def better_of(key: str) -> int:
    """1 where more of a figure is better, -1 where less is, 0 for neither."""
    name = key.partition(".")[2]
    return -1 if name in LESS else int(name not in NEITHER)


def figure_of(key: str, sums: Sums, window: Int32) -> Figure:
    """The one figure of ``sums``. ``window``: of all that is to be found."""
    windows = distinct_windows(window)
    if windows < LEAST_POSITIVES:
        return unsaid(key, windows)
    return said(key, by_life(sums)[0], windows)


def said(key: str, found: Interval, windows: int) -> Figure:
    """A figure that ``windows`` stand behind."""
    why = "nothing to divide by" if np.isnan(found.value) else ""
    return Figure(key, found.value, found.low, found.high, windows, better_of(key), why, found.drawn)


def unsaid(key: str, windows: int, why: str = "") -> Figure:
    """One that is not said, by default as so few windows stand behind it."""
    return Figure(key, float("nan"), float("nan"), float("nan"), windows, better_of(key), why or f"{windows} windows")
