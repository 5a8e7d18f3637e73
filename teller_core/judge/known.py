"""What was learned of a service elsewhere, as what predicts its steps and requests."""

from teller_core.data.learned import Costs, Learned
from teller_core.judge.expectations import StepModel
from teller_core.judge.regress import Fit
from teller_core.judge.request_load import NOT_LEARNED, Usual


def known_steps(learned: Learned | None) -> StepModel | None:
    """What predicts steps, None where that was not learned."""
    if learned is None or learned.step_costs is None:
        return None
    found = learned.step_costs
    return StepModel(_fit(found.costs), found.costs.used, dict(found.shift), dict(found.spread))


def usual_requests(learned: Learned | None) -> Usual:
    """What predicts requests, as far as it was learned."""
    if learned is None:
        return NOT_LEARNED
    return Usual({name: (each.used, _fit(each)) for name, each in learned.request_costs.items()}, learned.rest)


def _fit(costs: Costs) -> Fit:
    return Fit(costs.cost, costs.spread, costs.inverse, costs.peers)
