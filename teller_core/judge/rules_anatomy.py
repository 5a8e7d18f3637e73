"""Rules by what slow profiled steps are made of: for requests whose steps were slow as well, and whose threads ran in them."""

import numpy as np

from teller_core.data.report import EvidenceItem, View
from teller_core.judge.anatomy import Way, slow_way
from teller_core.judge.around import calm
from teller_core.judge.evidence import COUNTED, HINTED, Clue, cost, count
from teller_core.judge.rules_host import worst, worst_item
from teller_core.judge.scene import Scene

ALIKE = 2.2
"""A request's steps were slow as profiled ones were where the times by which they were differ by no more than this factor."""
SAID = {
    "operator": "own time of the operator in such a profiled step",
    "weights": "operators that read the weights in such a profiled step",
    "collectives": "time in collectives in such a profiled step, on all of its ranks",
    "one silence": "the longest time in such a profiled step that no operator covers",
    "silences": "time in such a profiled step that no operator covers, in many pieces",
}


def slow_operator(scene: Scene) -> Clue | None:
    """One operator made profiled steps slow, by more calls of it or longer ones."""
    return _like(scene, "operator", "host.slow_operator", layer="operator")


def memory_bandwidth(scene: Scene) -> Clue | None:
    """The operators that read weights grew in slow profiled steps, by no more calls, and more than the others did."""
    return _like(scene, "weights", "host.memory_bandwidth", layer="operator")


def step_overhead(scene: Scene) -> Clue | None:
    """One silence grew in slow profiled steps, in which their thread ran: it did something else before or behind them."""
    return _like(scene, "one silence", "host.step_overhead", layer="python")


def observer_overhead(scene: Scene) -> Clue | None:
    """All silences grew in slow profiled steps: each call between two operators takes longer, as under somebody's tracer."""
    return _like(scene, "silences", "host.observer_overhead", layer="python")


def degraded_link(scene: Scene) -> Clue | None:
    """All ranks were longer in collectives in slow profiled steps: nobody waited for one of them alone."""
    return _like(scene, "collectives", "comm.degraded_link", layer="communication", view="horizontal")


def other_way(scene: Scene, kind: str) -> bool:
    """Whether profiled steps were slow in another way than ``kind``."""
    way = slow_way(scene.case)
    return way is not None and way.kind != kind


def _like(scene: Scene, kind: str, cause: str, *, layer: str, view: View = "vertical") -> Clue | None:
    way = slow_way(scene.case)
    if way is None or way.kind != kind:
        return None
    held = scene.holds
    apart = view == "horizontal"  # who waits for others may sleep
    busy = np.where(held.gap, 0, held.rest - (0 if apart else held.asleep))
    ns = int(busy.sum())
    slow = (busy > 0) & (held.base > 0)
    if ns <= 0 or not slow.any():
        return None
    times = (1.0 + float(busy[slow].sum()) / float(held.base[slow].sum())) / np.exp(min(calm(scene.case), 0.0))
    if not way.times / ALIKE <= times <= way.times * ALIKE:
        return None
    own = bool(set(way.steps.tolist()) & set(scene.life.step.tolist()))
    evidence = [
        cost(
            "its steps took longer than their work asks for"
            if apart
            else "its steps took longer than their work asks for, while their thread ran",
            ns,
            kind="step",
            scope="its_steps",
        ),
        _of_profile(way, own=own),
        count("profiled steps that were slow in this way", len(way.steps), unit="steps", kind="span", scope="capture"),
        *worst_item(scene, busy),
    ]
    return Clue(
        cause,
        ns,
        COUNTED if own else HINTED,
        evidence,
        step=worst(scene, busy),
        operator=way.operator or None,
        layer=layer,
        profiled=True,
        view=view,
    )


def _of_profile(way: Way, *, own: bool) -> EvidenceItem:
    scope = "this_request" if own else "similar_steps"
    item = cost(SAID[way.kind], way.value, way.normal, kind="span", scope=scope)
    return item.model_copy(update={"name": f"{item.name}: {way.operator}"}) if way.operator else item
