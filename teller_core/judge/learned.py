"""What was learned of a service elsewhere, as judging uses it: costs of work, and all numbers of a capture held against them."""

from dataclasses import replace

import numpy as np

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.learned import Costs, Learned, StepCosts, no_baselines
from teller_core.data.table import take
from teller_core.judge.assess import assess
from teller_core.judge.expectations import StepModel, expect_steps
from teller_core.judge.known import known_steps, usual_requests
from teller_core.judge.regress import Fit
from teller_core.judge.request_load import expect_requests


def held_against(capture: Capture, numbers: Assessment, learned: Learned | None) -> Assessment:
    """The numbers of ``capture`` held against what was ``learned``, or, for None, against itself alone.

    Without its trees the baselines and the candidates stay those of ``numbers`` where these were held against the same, else
    they are left out: no answer is held against two.
    """
    if any(rank.tree is not None and len(rank.tree) for rank in capture.ranks):
        return assess(capture, learned)
    steps, model = expect_steps(capture, known_steps(learned))
    requests = expect_requests(capture, steps, model, usual_requests(learned))
    called = "" if learned is None else learned.called
    kept = numbers if numbers.reference == called else _without_operators(numbers, called)
    return replace(kept, steps=steps, requests=requests, reference=called, learned=learned)


def _without_operators(numbers: Assessment, called: str) -> Assessment:
    """``numbers`` without those that were held against something else and cannot be made again."""
    if not len(numbers.baselines.count):
        return numbers
    then, now = numbers.reference or "the capture itself", called or "the capture itself"
    why = f"operators: they were held against {then} at import, and its profile is too large to hold them against {now} now"
    none = take(numbers.candidates, np.zeros(len(numbers.candidates.step), np.bool_))
    return replace(numbers, baselines=no_baselines(), candidates=none, left_out=why)


def costs_of(fit: Fit, used: "list[str]") -> Costs:
    """A fit as it is kept."""
    return Costs(used, fit.cost, fit.spread, fit.inverse, fit.peers)


def step_costs_of(model: StepModel) -> StepCosts:
    """The same of a model of steps."""
    return StepCosts(costs_of(model.costs, [*model.used]), dict(model.shift), dict(model.spread))
