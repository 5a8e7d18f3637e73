"""The slow beside the fast: what the slowest requests have that the others have not."""

import numpy as np

from teller_core.data.steps import Requests
from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.tell.layout import many

FEWEST = 8
"""Below this many requests a quarter holds one or two, and any difference is an anecdote."""
CLEAR = 0.6
"""Cliff's delta from which two groups hardly overlap ("large" from 0.47, Romano et al. 2006; stricter, as several are tried)."""


def what_differs(requests: Requests, value: Int64) -> str:
    """One sentence on what tells the slowest quarter from the rest, or why that cannot be said.

    ``value`` int64 ns a request, UNKNOWN where it was not measured. The names and numbers are the requests' own.
    """
    known = np.flatnonzero(value != UNKNOWN)
    if not len(known):
        return "Nothing recorded how long any of them took, so they stand in the order in which they came."
    if len(known) < FEWEST:
        return (
            f"Only {many(len(known), 'request')} measured: too few to tell the slow from the fast (at least {FEWEST})."
        )
    order = known[np.argsort(value[known], kind="stable")]
    cut = len(order) - len(order) // 4
    fast, slow = order[:cut], order[cut:]
    told = [
        (abs(delta), f"{name} (median {_number(of_slow, unit)} against {_number(of_fast, unit)})")
        for name, unit, column in _features(requests)
        if (found := _cliffs_delta(column[slow], column[fast])) is not None
        for delta, of_slow, of_fast in [found]
        if abs(delta) >= CLEAR
    ]
    if not told:
        return "The slowest quarter does not differ clearly from the rest in tokens, queueing or preemptions."
    told.sort(reverse=True)
    return "The slowest quarter differs from the rest in " + ", ".join(text for _, text in told[:3]) + "."


def _features(requests: Requests) -> list[tuple[str, str, Float64]]:
    """Name, unit and column (float64, NaN for unknown) of what a request can differ in."""
    waited = requests.queue()
    return [
        ("prompt tokens", "", _count(requests.prompt_tokens)),
        ("output tokens", "", _count(requests.output_tokens)),
        ("cached tokens", "", _count(requests.cached_tokens)),
        ("preemptions", "", _count(requests.preemptions)),
        ("queue time", "ms", np.where(waited != UNKNOWN, waited / 1e6, np.nan)),
        ("longest token gap", "ms", np.where(requests.itl_max != UNKNOWN, requests.itl_max / 1e6, np.nan)),
    ]


def _count(column: "np.ndarray[tuple[int], np.dtype[np.int32]]") -> Float64:
    return np.where(column >= 0, column, np.nan).astype(np.float64)


def _cliffs_delta(slow: Float64, fast: Float64) -> tuple[float, float, float] | None:
    """Cliff's delta of two samples and their medians; None where either has fewer than two known values."""
    slow, fast = slow[~np.isnan(slow)], np.sort(fast[~np.isnan(fast)])
    if len(slow) < 2 or len(fast) < 2:
        return None
    above = np.searchsorted(fast, slow, side="left").sum()
    below = (len(fast) - np.searchsorted(fast, slow, side="right")).sum()
    return float(above - below) / (len(slow) * len(fast)), float(np.median(slow)), float(np.median(fast))


def _number(value: float, unit: str) -> str:
    return f"{value:.4g}{' ' + unit if unit else ''}"
