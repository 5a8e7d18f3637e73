"""The engines of a capture made ready for questions about their schedules, and what may be claimed of them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Int64
from teller_core.judge.reschedule import arrivals, batches
from teller_core.judge.reschedule.check import Check, check, ordered
from teller_core.judge.reschedule.costs import features, learn, took
from teller_core.judge.reschedule.handover import handed_over
from teller_core.judge.reschedule.limits import limits
from teller_core.judge.reschedule.savings import Sooner, rescheduled, same_schedule
from teller_core.judge.reschedule.simulate import Setting

SAME_SCHEDULE = "same_schedule: every step would have computed for the same requests, only sooner"
RESCHEDULED = (
    "rescheduled: the engine would have batched anew by the rules and limits that its batches show; requests would have come "
    "when they came, with the same answers; what else held steps up would have done so at the same times"
)
FRONT = "frontend"
"""The role of a process that receives requests and hands them to others."""
FEW_STEPS = "too few steps were recorded to learn what they cost"
NOT_SERVED = "no step is known to have served it"
Which = Literal["end", "first_token"]


@dataclass(frozen=True)
class Plan:
    """What is known of each engine by its number: its ``settings``, or ``why`` there are none; ``checks`` of the settings, and
    ``engine`` int64 of each request, -1 for none.
    """

    settings: Mapping[int, Setting]
    checks: Mapping[int, Check]
    why: Mapping[int, str]
    engine: Int64


class Saving(NamedTuple):
    """int ns that a request's end, or its first token, would have come sooner: between ``low`` and ``high``; and what that
    takes for granted.
    """

    low: int
    high: int
    assumes: str


class Savings(NamedTuple):
    """The two savings of a request, each None with the reason in ``why_not_same`` or ``why_not_new``."""

    same_schedule: Saving | None
    rescheduled: Saving | None
    why_not_same: str
    why_not_new: str


def plan(capture: Capture) -> Plan:
    """The engines of ``capture`` with their checks."""
    settings: dict[int, Setting] = {}
    checks: dict[int, Check] = {}
    why: dict[int, str] = {}
    engine = np.full(len(capture.requests.number), -1, dtype=np.int64)
    served = capture.participation
    engine[served.request] = capture.steps.engine[served.step]
    for number in np.unique(engine[engine >= 0]).tolist():
        made = setting(capture, number)
        if isinstance(made, str):
            why[number] = made
            continue
        settings[number], checks[number] = made
        why[number] = checks[number].why
    return Plan(settings, checks, why, engine)


def setting(capture: Capture, engine: int) -> tuple[Setting, Check] | str:
    """What a simulation of one engine is given and whether that reproduces it, or why there can be none."""
    if reason := batches.unfit(capture, engine):
        return reason
    ran = batches.batches(capture, engine)
    if reason := arrivals.unfit(capture, ran):
        return reason
    came = arrivals.arrivals(capture, ran)
    costs = learn(features(ran), took(ran))
    if costs is None:
        return FEW_STEPS
    rules = ordered(ran, came, limits(capture, ran, came))
    made = Setting(ran, handed_over(ran, came, rules), rules, costs, _receives(capture))
    return made, check(made, came)


def _receives(capture: Capture) -> bool:
    """Whether the processes that compute also receive: they are known, and none of them is a front end."""
    seen = capture.samples.role, capture.pauses.role
    roles = {role for roles in seen for role in roles if role}
    return bool(roles) and FRONT not in roles


def savings(made: Plan, request: int, least: Int64, most: Int64, which: Which = "end") -> Savings:
    """How much sooner the request at position ``request`` would have ended, or had its first token, had each step of the
    capture ended between ``least`` and ``most`` (int64 ns a step of the capture) sooner after the one before it.
    """
    engine = int(made.engine[request])
    if engine not in made.settings:
        reason = made.why.get(engine, NOT_SERVED)
        return Savings(None, None, reason, reason)
    here = made.settings[engine]
    bounds = [least[here.ran.step], most[here.ran.step]]
    same = _between([same_schedule(here, request, saved) for saved in bounds], which, SAME_SCHEDULE)
    lacking = "" if same else "which step gave its first token is not known"
    if reason := made.why[engine]:
        return Savings(same, None, lacking, reason)
    ends = [
        (here.came.late, bounds[0]),
        (here.came.time, bounds[0]),
        (here.came.time, bounds[1]),
        (here.came.early, bounds[1]),
    ]
    new = [rescheduled(replace(here, came=here.came._replace(time=time)), request, saved) for time, saved in ends]
    saving = _between([one for one in new if one is not None], which, RESCHEDULED)
    return Savings(same, saving, lacking, "" if saving else "the simulation does not come to its end")


def _between(found: list[Sooner], which: Which, assumes: str) -> Saving | None:
    values = [one.end if which == "end" else one.first_token for one in found]
    known = [value for value in values if value is not None]
    return Saving(min(known), max(known), assumes) if known and len(known) == len(values) else None
