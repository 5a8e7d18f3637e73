"""What one episode will be, from its seed alone: the requests, the fault, when it strikes and how hard."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from teller_core.errors import UnknownName
from teller_core.lab.blocks import Strike
from teller_core.lab.injectors import draw, injector
from teller_core.lab.load import Ask
from teller_core.lab.requests import changed, ordinary

SEVERITIES: Mapping[str, str] = {
    "cpu_colocation": "strong",
    "long_prefill": "clear",
    "gc_pause": "strong",
    "slow_operator": "strong",
    "disk_stall": "extreme",
}
"""The injectors that may strike, and how hard: so that a few seconds of it are seen in a request of two."""
NONE = "none"
FAULTS = (*SEVERITIES, NONE)
REQUESTS = 40


@dataclass(frozen=True)
class Plan:
    """An episode. ``at`` and ``length`` are seconds after the first request; ``strike`` is None where nothing is done.

    ``others``: names of requests that are part of the fault.
    """

    seed: int
    strike: Strike | None
    asks: Sequence[Ask]
    others: frozenset[str]
    at: float
    length: float

    @property
    def fault(self) -> str:
        """The injector's name, or NONE."""
        return NONE if self.strike is None else self.strike.fault

    @property
    def cause(self) -> str | None:
        """The taxonomy's name of what it causes."""
        return None if self.strike is None else injector(self.strike.fault).cause


def fault_of(seed: int) -> str:
    """The fault of a seed: as many seeds in a row as there are faults have them all, in an order of their own."""
    block, place = divmod(seed, len(FAULTS))
    faults = list(FAULTS)
    random.Random(block).shuffle(faults)
    return faults[place]


def plan_episode(seed: int, fault: str | None) -> Plan:
    """The plan of ``seed``, with its own fault or the one named. Raises UnknownName for a fault that is not there."""
    name = fault_of(seed) if fault is None else fault
    if name not in FAULTS:
        raise UnknownName("The fault", "it is none of " + ", ".join(FAULTS), "Name one of these")
    chance = random.Random(f"{seed} {name}")
    own = ordinary(chance, REQUESTS)
    at, length = chance.uniform(0.28, 0.42) * own[-1].at, chance.uniform(2.6, 4.0)
    strike: Strike | None = None
    others: Sequence[Ask] = ()
    if name != NONE:
        severity = SEVERITIES[name]
        strike = Strike(name, severity, draw(injector(name), severity, chance))
        others = _others(strike, own, at, length, chance)
    asks, of_fault = _named(own, others)
    return Plan(seed, strike, asks, of_fault, at, length)


def _others(strike: Strike, own: Sequence[Ask], at: float, length: float, chance: random.Random) -> Sequence[Ask]:
    """What others send while the fault lasts, as they do in a window of that length."""
    inside = [ask._replace(at=ask.at - at) for ask in own if at <= ask.at < at + length] or own[:1]
    _, others = changed(inside, injector(strike.fault), strike.knobs, chance)
    return [ask._replace(at=ask.at + at) for ask in others]


def _named(own: Sequence[Ask], others: Sequence[Ask]) -> tuple[Sequence[Ask], frozenset[str]]:
    """All of them in order, with names that tell nothing but the order; and the names of the ``others``."""
    ordered = sorted([*((ask, False) for ask in own), *((ask, True) for ask in others)], key=lambda each: each[0].at)
    asks = [ask._replace(rid=f"req-{place:03d}") for place, (ask, _) in enumerate(ordered)]
    return asks, frozenset(ask.rid for ask, (_, other) in zip(asks, ordered, strict=True) if other)
