"""How slow an engine was around each of its steps: one alone may be slow by chance, and what makes steps slow stays a while."""

import numpy as np

from teller_core.data.table import UNKNOWN, Float64
from teller_core.judge.prepare import Case

AROUND_NS = 1_000_000_000
"""Before and after a step. Chosen on the training side of the lab's lives: half of it tells less, twice as much no more, and
would smear a trouble that comes and goes over what is well.
"""
SLOW = 1.3
"""Times what the work asks for, from which on the engine was slow: chosen there, too, for the best F1 where 43 % are."""


def slowdown(case: Case) -> Float64:
    """float64 a step: the logarithm of what the steps of its engine around it took over what their work asks for; NaN where that
    is not known. Long steps count for more: a stop in one of many is a slow engine.
    """
    return case.once("slowdown", _slowdown)


def _slowdown(case: Case) -> Float64:
    took, expected = case.took, case.expected
    known = (took != UNKNOWN) & (expected != UNKNOWN) & (expected > 0)
    out = np.full(len(took), np.nan)
    for engine in case.engines.values():
        step = engine.step[known[engine.step]]
        begin = case.begin[step]
        order = np.argsort(begin, kind="stable")
        step, begin = step[order], begin[order]
        sums = [np.append(0, np.cumsum(column[step])) for column in (took, expected)]
        low, high = (
            np.searchsorted(begin, begin - AROUND_NS, "left"),
            np.searchsorted(begin, begin + AROUND_NS, "right"),
        )
        taken, asked = (column[high] - column[low] for column in sums)
        out[step] = np.log(np.maximum(taken, 1) / np.maximum(asked, 1))
    return out
