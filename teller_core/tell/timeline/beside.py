"""What a slow request, and its worst step, are set beside: usual ones of like work."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import RequestExpectations, StepExpectations
from teller_core.data.steps import Requests, Steps
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, Mask

USUAL = 1.1
"""A request is usual where it took at most this many times what its work predicts."""
CALM = 1.5
"""A step is usual where it lies within so many standard deviations of what its work predicts."""
USUAL_WORDS, FAST_WORDS = "took what its work predicts", "was among the faster half of them"
UNALIKE = 2.0
"""Nats by which the work of two may differ, all counts together: a factor of seven in one of them."""
ALIKE = 0.1
"""Nats within which several are alike: a tenth."""
LIKED = 0.2
"""And by so many those that are liked come before others."""


class Beside(NamedTuple):
    """A position, None where nothing is like it, and why that one or why none."""

    at: int | None
    why: str


def beside_request(at: int, metric: str, requests: Requests, expected: RequestExpectations) -> Beside:
    """The request that took what its work predicts and whose work is most like that of the one at position ``at``."""
    metric = "e2e" if metric == "slo" else metric
    rows = np.flatnonzero(np.array([one == metric for one in expected.metric], dtype=np.bool_))
    count = len(requests.number)
    value, work = (np.full(count, UNKNOWN, dtype=np.int64) for _ in range(2))
    value[expected.request[rows]], work[expected.request[rows]] = expected.value[rows], expected.by_work[rows]
    timed = (requests.begin() != UNKNOWN) & (requests.end() > requests.begin()) & (requests.failed == 0)
    faster = timed & (value != UNKNOWN) & ((value[at] == UNKNOWN) | (value < value[at]))
    usual = faster & (work > 0) & (value <= USUAL * work)
    known = USUAL_WORDS
    if not usual.any() and faster.any():
        usual, known = faster & (value <= np.median(value[faster])), FAST_WORDS
    apart = _apart(at, (requests.prompt_tokens, requests.output_tokens), usual)
    best = _nearest(apart, value)
    if best is None:
        return Beside(None, "no request of like work was faster")
    return Beside(best, f"request {best + 1}, of like work, which {known}")


def beside_step(
    step: int, steps: Steps, expected: StepExpectations, profiled: Mask | None, liked: Sequence[int] | Int64
) -> Beside:
    """The step that took what its work predicts and whose work is most like that of ``step``. ``profiled`` bool a step: those
    that may be chosen, where that matters; ``liked``: those to choose among equals.
    """
    phases = steps.phases()
    same = np.array([phase == phases[step] for phase in phases], dtype=np.bool_)
    same &= (expected.took != UNKNOWN) & (expected.took < expected.took[step]) & (expected.took > 0)
    if profiled is not None:
        same &= profiled
    calm = same & (np.abs(expected.residual) <= CALM)
    known = USUAL_WORDS
    if not calm.any() and same.any():
        calm, known = same & (expected.took <= np.median(expected.took[same])), FAST_WORDS
    columns = (steps.context_tokens, steps.generation_requests, steps.kv_tokens)
    apart = _apart(step, columns, calm)
    apart[np.asarray(liked, dtype=np.int64)] -= LIKED
    best = _nearest(apart, expected.took)
    if best is None:
        seen = "step with a profile" if profiled is not None else "step"
        return Beside(None, f"no other {seen} and like work took less")
    return Beside(best, f"step {best}, of like work, which {known}")


def _apart(at: int, columns: Sequence[Int32 | Int64], allowed: Mask) -> Float64:
    """float64: how unlike the work of each is, in nats over all counts that both have; infinite for those not ``allowed``."""
    apart = np.zeros(len(allowed), dtype=np.float64)
    for column in columns:
        mine = int(column[at])
        if mine < 0:
            continue
        apart += np.where(column >= 0, np.abs(np.log1p(np.maximum(column, 0)) - np.log1p(mine)), UNALIKE)
    apart[~allowed] = np.inf
    apart[at] = np.inf
    return apart


def _nearest(apart: Float64, value: Int64) -> int | None:
    """The most alike, of several the one that took the median of what they took."""
    if not len(apart) or not float(apart.min()) <= UNALIKE:
        return None
    alike = np.flatnonzero(apart <= apart.min() + ALIKE)
    by_value = alike[np.argsort(value[alike], kind="stable")]
    return int(by_value[len(by_value) // 2])
