"""How slow an engine was around each of its steps: one alone may be slow by chance, and what makes steps slow stays a while."""

import numpy as np

from teller_core.data.table import UNKNOWN, Float64
from teller_core.judge.prepare import Case
from teller_core.judge.robust import weighted

AROUND_NS = 1_000_000_000
"""Before and after a step. Chosen on the training side of the lab's lives: half of it tells less, twice as much no more, and
would smear a trouble that comes and goes over what is well.
"""
SLOW = 1.3
"""Times what the work asks for, from which on the engine was slow: chosen there, too, for the best F1 where 43 % are."""
RUN_NS, IDLE_NS = 2_000_000_000, 300_000_000
"""Before and after a step, inside a run of steps: an engine that had nothing to do for so long begins a new one."""
LITTLE_NS = 250_000_000
"""As much time as expected is put beside what steps took: a few of them tell little."""
CALM_SHARE = 0.4
"""Of the time of steps, those that were slowed least are calm: what is expected was learned from slow ones, too."""
UNUSUAL = 1.17
"""Times what calm steps take, from which on steps are called slow. These five were chosen on the training side, the same way."""


def slowdown(case: Case) -> Float64:
    """float64 a step: the logarithm of what the steps of its engine around it took over what their work asks for; NaN where that
    is not known. Long steps count for more: a stop in one of many is a slow engine.
    """
    return case.once("slowdown", _slowdown)


def _slowdown(case: Case) -> Float64:
    return _measured(case, AROUND_NS)


def unusual(case: Case) -> Float64:
    """float64 a step: the logarithm of what the steps of its run around it took over what as much work takes in calm steps; NaN
    where that is not known. It ranks steps; what they lost to a cause is told from :func:`slowdown`.
    """
    return case.once("unusual", _unusual)


def _unusual(case: Case) -> Float64:
    return _measured(case, RUN_NS, IDLE_NS, LITTLE_NS) - calm(case)


def calm(case: Case) -> float:
    """The logarithm of what calm steps took over what their work asks for, which was learned from slow ones as well; 0 where that
    is not known.
    """
    return case.once("calm steps", _calm)


def _calm(case: Case) -> float:
    level = _measured(case, RUN_NS, IDLE_NS, LITTLE_NS)
    known = ~np.isnan(level)
    # A profile makes all steps that it sees slower: the others tell what is calm, where there are any.
    known = known & ~case.profiled if (known & ~case.profiled).any() else known
    if not known.any():
        return 0.0
    return weighted(level[known], case.expected[known].astype(np.float64), CALM_SHARE)


def _measured(case: Case, around: int, idle: int | None = None, beside: int = 0) -> Float64:
    """float64 a step: the logarithm of what was taken ``around`` ns of it over what was expected, ``beside`` ns added to both;
    not beyond a time in which the engine was ``idle`` for so long.
    """
    took, expected = case.took, case.expected
    known = (took != UNKNOWN) & (expected != UNKNOWN) & (expected > 0)
    out = np.full(len(took), np.nan)
    for engine in case.engines.values():
        step = engine.step[known[engine.step]]
        begin = case.begin[step]
        order = np.argsort(begin, kind="stable")
        step, begin = step[order], begin[order]
        sums = [np.append(0, np.cumsum(column[step])) for column in (took, expected)]
        low, high = np.searchsorted(begin, begin - around, "left"), np.searchsorted(begin, begin + around, "right")
        if idle is not None and len(step):
            run = np.append(0, np.cumsum(np.diff(begin) - took[step][:-1] > idle))
            low, high = np.maximum(low, np.searchsorted(run, run)), np.minimum(high, np.searchsorted(run, run, "right"))
        taken, asked = (column[high] - column[low] + beside for column in sums)
        out[step] = np.log(np.maximum(taken, 1) / np.maximum(asked, 1))
    return out
