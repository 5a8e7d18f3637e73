"""Whether a simulation reproduces what was recorded: nothing is claimed from one that does not."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int64, Mask
from teller_core.judge.regress import MIN_PEERS
from teller_core.judge.reschedule.arrivals import Arrivals
from teller_core.judge.reschedule.background import background
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.costs import features, learn, took
from teller_core.judge.reschedule.scheduler import Limits, Order, Share, choose
from teller_core.judge.reschedule.simulate import MOST_STEPS, Setting, quiet, run
from teller_core.judge.reschedule.snapshot import shares, snapshot

REPRODUCED = 0.9
"""Of the decisions, of those about prompts, of the batches and of the first tokens: the share that must be reproduced."""
WITHIN = 0.1
"""By which a first-token time may be off, and by which all of them may be off as a rule where steps cost what was learned."""
CORRECTED = 0.25
"""Requests of which the arrival may be told by their admission: where they are more, nothing is left to reproduce."""
STEPS_LOOKED_AT, REQUESTS_LOOKED_AT = 2_000, 200


class Check(NamedTuple):
    """Shares from 0 to 1: ``decisions`` that the scheduler's rules make as recorded from what was there before each of them,
    and ``prompts``: of those about prompts; ``batches`` that come out as recorded, for the same requests at the same places of
    their texts, where only arrivals, answers' lengths and what steps met besides their work are given; ``first_tokens`` that
    come then within WITHIN of their time from the request's arrival. ``corrected``: the share of the requests of which an
    admission corrected when they came. ``bias``: how far these times are off as a rule (0.05: 5 % too long) where each step
    takes what the other half of the capture teaches. ``why``: why no claim is made, empty where one is.
    """

    decisions: float
    prompts: float
    batches: float
    first_tokens: float
    corrected: float
    bias: float
    why: str


def ordered(ran: Batches, came: Arrivals, limits: Limits) -> Limits:
    """``limits`` with the order that reproduces most of the decisions about prompts."""
    steps = sample(np.flatnonzero(_fills(ran)), REQUESTS_LOOKED_AT)
    tried = [replace(limits, order=order) for order in Order]
    return max(tried, key=lambda one: int(decided_alike(ran, came, one, steps).sum()))


def decided_alike(ran: Batches, came: Arrivals, limits: Limits, steps: Int64) -> Mask:
    """bool a step of ``steps``: the scheduler chooses what was recorded."""
    return np.array(
        [_named(choose(snapshot(ran, came, step), limits)) == _named(shares(ran, step)) for step in steps.tolist()],
        dtype=np.bool_,
    )


def check(setting: Setting, stamps: Arrivals) -> Check:
    """Whether ``setting`` reproduces what was recorded. ``stamps``: the arrivals before admissions corrected them."""
    ran, came = setting.ran, setting.came
    steps = sample(np.arange(1, len(ran.step)), STEPS_LOOKED_AT)
    alike, fills = decided_alike(ran, came, setting.limits, steps), _fills(ran)[steps]
    corrected = (came.time != stamps.time)[came.stamped]
    batches, first_tokens = _free(setting)
    errors = first_token_errors(setting)
    bias = _bias(setting, errors)
    found = Check(_share(alike), _share(alike[fills]), batches, first_tokens, _share(corrected), bias, "")
    return found._replace(why=_why(found, len(errors.error)))


class _Errors(NamedTuple):
    """Of some requests, int64 positions in the capture, by how much of it (float64) a time is off."""

    request: Int64
    error: Float64


def first_token_errors(setting: Setting) -> _Errors:
    """For some requests: by how much of it the simulated time from its arrival to its first token is off. Each is
    simulated from the first decision after its arrival, with costs that were learned from the other half of the capture.
    """
    ran, came = setting.ran, setting.came
    work, taken, middle = features(ran), took(ran), len(ran.step) // 2
    halves = [learn(work[middle:], taken[middle:]), learn(work[:middle], taken[:middle])]
    calm = quiet(setting, background(setting).usual)
    errors: dict[int, float] = {}
    known = np.flatnonzero((ran.answers >= 0) & (ran.first > 0) & came.stamped)
    for request in sample(known, REQUESTS_LOOKED_AT).tolist():
        time = int(came.time[request])
        start = min(int(np.searchsorted(ran.decided, time, "right")), int(ran.first[request]))
        costs = halves[int(start >= middle)]
        if costs is None:
            continue
        made = run(replace(setting, costs=costs), calm, start, {request}, first_only=True)
        truth = int(ran.ended[ran.answers[request]]) - time
        if request in made.answered and truth > 0:
            errors[request] = (made.answered[request] - time) / truth - 1
    return _Errors(np.array(list(errors), dtype=np.int64), np.array(list(errors.values()), dtype=np.float64))


def _bias(setting: Setting, found: _Errors) -> float:
    """How far first-token times are off as a rule. Costs know nothing of stalls: who met one says that times are too short, and
    who met none is among the fast ones. What can be said lies between the middle of all and that of the latter.
    """
    if not len(found.error):
        return float("inf")
    calm = found.error[_undisturbed(setting, found.request)]
    ends = [float(np.median(found.error))] + ([float(np.median(calm))] if len(calm) >= MIN_PEERS else [])
    return 0.0 if min(ends) <= 0.0 <= max(ends) else min(ends, key=abs)


def _undisturbed(setting: Setting, requests: Int64) -> Mask:
    """bool a request: no step from its arrival to its first token was stalled."""
    ran, stalled = setting.ran, background(setting).extra > 0
    before = np.append(0, np.cumsum(stalled))
    low = np.searchsorted(ran.ended, setting.came.time[requests], "right")
    return before[np.maximum(ran.answers[requests] + 1, low)] == before[low]


def sample(values: Int64, most: int) -> Int64:
    """At most ``most`` of ``values``, evenly spread."""
    return values if len(values) <= most else values[np.linspace(0, len(values) - 1, most).astype(np.int64)]


def _free(setting: Setting) -> tuple[float, float]:
    """The share of the batches and of the first tokens that a simulation from the first decision on reproduces."""
    ran = setting.ran
    count = min(len(ran.step), MOST_STEPS)
    served = np.flatnonzero((ran.first >= 0) & (ran.last < count))
    made = run(setting, background(setting), 0, served.tolist(), most=count)
    simulated = {frozenset(step.batch) for step in made.steps}
    same = [frozenset(shares(ran, step)) in simulated for step in range(count)]
    known = [request for request in served.tolist() if ran.answers[request] >= 0]
    close = [_close(setting, request, made.answered.get(request)) for request in known]
    return _share(np.array(same, dtype=np.bool_)), _share(np.array(close, dtype=np.bool_))


def _close(setting: Setting, request: int, answered: int | None) -> bool:
    time, truth = int(setting.came.time[request]), int(setting.ran.ended[setting.ran.answers[request]])
    return answered is not None and abs(answered - truth) <= WITHIN * (truth - time)


def _named(batch: list[Share]) -> set[tuple[int, int]]:
    return {(share.request, share.tokens) for share in batch}


def _fills(ran: Batches) -> Mask:
    """bool a step: it computes a prompt. The first step is none: what was before it is not known."""
    filled = np.zeros(len(ran.step), dtype=np.bool_)
    filled[ran.at[ran.ahead > 0]] = True
    filled[:1] = False
    return filled


def _share(holds: Mask) -> float:
    return float(holds.mean()) if len(holds) else 0.0


def _why(found: Check, requests: int) -> str:
    """What speaks against using the simulation, in words."""
    if requests < MIN_PEERS:
        return f"both the arrival and the first token are known of {requests} requests only"
    if min(found.decisions, found.prompts) < REPRODUCED:
        return (
            f"the scheduler's rules reproduce {found.decisions:.0%} of its decisions and {found.prompts:.0%} of those about "
            f"prompts; {REPRODUCED:.0%} are needed"
        )
    if min(found.batches, found.first_tokens) < REPRODUCED:
        return (
            f"a simulation from the arrivals on reproduces {found.batches:.0%} of the batches and {found.first_tokens:.0%} of "
            f"the first-token times; {REPRODUCED:.0%} are needed"
        )
    if found.corrected > CORRECTED:
        return f"when requests came is doubtful: {found.corrected:.0%} were admitted later than their stamps allow"
    if abs(found.bias) > WITHIN:
        return f"first-token times from learned costs are off by {found.bias:+.0%} as a rule; {WITHIN:.0%} are allowed"
    return ""
