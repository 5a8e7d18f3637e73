"""What a finding says of the end of its cause, had the engine then batched anew."""

from typing import NamedTuple

import numpy as np

from teller_core.data.report import Metric
from teller_core.data.table import Int32, Int64
from teller_core.judge.evidence import ms
from teller_core.judge.prepare import Case
from teller_core.judge.reschedule.plan import Which, plan, savings

WHICH: dict[str, Which] = {"e2e": "end", "slo": "end", "ttft": "first_token"}
MOST = 100
"""Savings that are simulated for the answers of a capture: some seconds."""
LEFT = "simulations left"
TOO_MANY = "too many causes were found to simulate each: ask `what-if`"
OTHER_METRIC = "a simulation tells of the end and of the first token"
NO_STEPS = "it is not known what its steps would save"


class Anew(NamedTuple):
    """ms that a request would have been done sooner, with bounds; None where nothing is claimed, and ``assumes`` says why."""

    middle: float | None
    low: float | None
    high: float | None
    assumes: str


def simulations_left(case: Case) -> bool:
    """Whether another saving may be simulated for the answers of the capture."""
    return int(case.measured.get(LEFT, MOST)) > 0


def anew(case: Case, request: int, metric: Metric, *, step: Int32, low: Int64, middle: Int64, high: Int64) -> Anew:
    """What the request at position ``request`` gains where each ``step`` ends ``middle`` ns sooner, or between ``low`` and
    ``high``.
    """
    if not len(step):
        return Anew(None, None, None, NO_STEPS)
    if metric not in WHICH:
        return Anew(None, None, None, OTHER_METRIC)
    if not simulations_left(case):
        return Anew(None, None, None, TOO_MANY)
    case.measured[LEFT] = int(case.measured.get(LEFT, MOST)) - 1
    made = case.once("schedule", lambda case: plan(case.capture))
    least, usual, most = (np.zeros(len(case.begin), dtype=np.int64) for _ in range(3))
    least[step], usual[step], most[step] = low, middle, high
    found = savings(made, request, least, most, WHICH[metric])
    inside = savings(made, request, usual, usual, WHICH[metric]).rescheduled
    if found.rescheduled is None or inside is None:
        return Anew(None, None, None, found.why_not_new)
    bounds = found.rescheduled
    every = (bounds.low, inside.low, inside.high, bounds.high)
    return Anew(ms((inside.low + inside.high) // 2), ms(min(every)), ms(max(every)), bounds.assumes)
