"""Settings made from what the second engine did."""

from teller_core.judge.reschedule.arrivals import arrivals
from teller_core.judge.reschedule.batches import batches
from teller_core.judge.reschedule.costs import features, learn, took
from teller_core.judge.reschedule.scheduler import Limits, Order
from teller_core.judge.reschedule.simulate import Setting
from tests.core.judge.reschedule.served import Engine, Served, capture

MANY = 10**8


def told(engine: Engine) -> Limits:
    """The engine's limits, as they are."""
    return Limits(
        order=Order.DECODES if engine.decodes_first else Order.ADMITTED,
        tokens=engine.tokens if engine.tokens < MANY else None,
        requests=engine.seats if engine.seats < MANY else None,
        blocks=engine.blocks if engine.blocks < MANY else None,
    )


def setting(run: Served) -> Setting:
    """What a simulation of ``run`` is given, its limits as they are."""
    whole = capture(run)
    ran = batches(whole, 0)
    costs = learn(features(ran), took(ran))
    assert costs is not None
    return Setting(ran, arrivals(whole, ran), told(run.engine), costs)
