"""What one episode will be, from its seed alone: the requests, the fault, when it strikes and how hard."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from teller_core.errors import UnknownName
from teller_core.lab.load import Ask

CAUSES: Mapping[str, str | None] = {
    "cpu_hog": "host.cpu_starvation",
    "long_prefill": "scheduler.prefill_interference",
    "gc_pause": "host.gc_pause",
    "slow_operator": "host.slow_operator",
    "disk_stall": "host.io_stall",
    "none": None,
}
"""The taxonomy's name of what each fault causes."""
REQUESTS = 40
CONNECTIONS = 8


@dataclass(frozen=True)
class Plan:
    """An episode. ``strike`` and ``length`` are seconds after the first request; ``severity`` is the fault's own."""

    seed: int
    fault: str
    asks: tuple[Ask, ...]
    long_requests: frozenset[str]
    strike: float
    length: float
    severity: Mapping[str, float]


def fault_of(seed: int) -> str:
    """The fault of a seed: six seeds in a row have the six faults in an order of their own."""
    block, place = divmod(seed, len(CAUSES))
    faults = list(CAUSES)
    random.Random(block).shuffle(faults)
    return faults[place]


def plan_episode(seed: int, fault: str | None) -> Plan:
    """The plan of ``seed``, with its own fault or the one named. Raises UnknownName for a fault that is not there."""
    name = fault_of(seed) if fault is None else fault
    if name not in CAUSES:
        raise UnknownName("The fault", "it is none of " + ", ".join(CAUSES), "Name one of these")
    chance = random.Random(f"{seed} {name}")
    asks = _requests(chance)
    strike = chance.uniform(0.28, 0.42) * asks[-1].at
    length = chance.uniform(2.6, 4.0)
    long_requests: frozenset[str] = frozenset()
    if name == "long_prefill":
        asks, long_requests = _with_long_prompts(chance, asks, strike, length)
    return Plan(seed, name, asks, long_requests, strike, length, _severity(chance, name))


def _requests(chance: random.Random) -> tuple[Ask, ...]:
    at = 0.0
    asks: list[Ask] = []
    for number in range(REQUESTS):
        asks.append(Ask(f"req-{number:03d}", at, chance.randint(8, 110), chance.randint(24, 96)))
        at += chance.expovariate(1 / 0.24)
    return tuple(asks)


def _with_long_prompts(
    chance: random.Random, asks: tuple[Ask, ...], strike: float, length: float
) -> tuple[tuple[Ask, ...], frozenset[str]]:
    """A few requests that arrive while the fault lasts get very long prompts, as from another user of the service."""
    inside = [place for place, ask in enumerate(asks) if strike <= ask.at < strike + length]
    chosen = inside[:: max(1, len(inside) // chance.choice((2, 3)))][:3] or [len(asks) // 2]
    changed = [
        ask._replace(words=chance.randint(1400, 2400), output=chance.randint(4, 12)) if place in chosen else ask
        for place, ask in enumerate(asks)
    ]
    return tuple(changed), frozenset(asks[place].rid for place in chosen)


def _severity(chance: random.Random, fault: str) -> Mapping[str, float]:
    match fault:
        case "cpu_hog":
            return {"burners": chance.choice((3, 4, 5))}
        case "gc_pause":
            return {"objects": chance.randint(600_000, 1_100_000), "period_s": chance.uniform(0.35, 0.6)}
        case "slow_operator":
            return {"layer": chance.randint(0, 1), "factor": chance.randint(26, 48)}
        case "disk_stall":
            return {"stall_ms": chance.uniform(14.0, 28.0), "most_writes": 1000}
        case _:
            return {}
