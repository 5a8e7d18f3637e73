"""What a block of a server's life is to be, from a seed, and what is known of it afterwards.

In a block several faults share rounds. In a round the same requests are sent again and again: in windows in which nothing is
done, and in one window for each fault, in random order. What else goes on on the machine then strikes all of them alike. In a
last round a few steps of each window are profiled; what profiling costs is in no figure of what was moved.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from teller_core.errors import InputError
from teller_core.lab.effect import Ratio
from teller_core.lab.injectors import SEVERITIES, draw, injector
from teller_core.lab.outside import Delay

TWINS = 2
"""Healthy windows of a round: what they differ by is the noise."""
ROUNDS = 4
"""Before the one that is profiled."""
STRIKES = 6
"""Faults of a block, at most: a round must be short beside what else changes on a machine."""
HEALTHY = -1


@dataclass(frozen=True)
class Strike:
    """One injector at one severity."""

    fault: str
    severity: str
    knobs: Mapping[str, float]


@dataclass(frozen=True)
class Block:
    """What one block is to be. ``orders``: of each round's windows, each a position in ``strikes`` or HEALTHY; the round after
    ROUNDS is the profiled one. ``requests``: of one window.
    """

    number: int
    strikes: Sequence[Strike]
    orders: Sequence[Sequence[int]]
    requests: int


@dataclass(frozen=True)
class Window:
    """What was done in a window, and to whom. ``strike``: position among the block's, or HEALTHY; ``profiled``: some of its steps
    were. Unix ns.

    ``requests``: the names of those that are compared, in order; ``others``: of those that were sent besides. ``delays``:
    [start, stop, ns] that the injector itself saw.
    """

    round: int
    strike: int
    profiled: bool
    begin: int
    end: int
    requests: Sequence[str]
    others: Sequence[str]
    failed: int
    noise: Mapping[str, int | None]
    delays: Sequence[Delay]


@dataclass(frozen=True)
class StrikeTruth:
    """The truth of a strike. ``rank``: the only one that was struck, None where there is no such one. ``moved``: by latency, its
    ratio to the healthy windows of its rounds; ``sigma``: of one healthy window, of the logarithm of ``judged_by``, over the life
    so far; ``rejected``: why nothing counts as moved, None where it does.
    """

    fault: str
    cause: str | None
    severity: str
    knobs: Mapping[str, float]
    where: str
    role: str
    judged_by: str
    moved: Mapping[str, Ratio]
    sigma: float
    rejected: str | None
    rank: int | None = None


@dataclass(frozen=True)
class BlockTruth:
    """The truth of a block. ``bundle``: the recording that holds it; ``windows`` in the order of their running.

    ``healthy_differ``: by latency, how far each healthy window of a round lies from its twins, as one draw of its noise.
    """

    block: int
    bundle: str
    windows: Sequence[Window]
    strikes: Sequence[StrikeTruth]
    healthy_differ: Mapping[str, Sequence[float]]


def healthy_in(block: BlockTruth, turn: int, *, profiled: bool = False) -> list[Window]:
    """The healthy windows of a round of ``block``, twins of the struck ones; ``profiled``: those, or the others."""
    return [
        window
        for window in block.windows
        if window.strike == HEALTHY and (window.round, window.profiled) == (turn, profiled)
    ]


def plan_life(seed: int, wanted: Sequence[tuple[str, str | None]], requests: int) -> Sequence[Block]:
    """The blocks of a life, in an order of the seed's own. ``wanted``: faults and severities, None: one of the seed's own.

    ``requests``: of all windows that are compared for one fault. Raises UnknownName for a fault or severity that is not there,
    InputError where two are of the start of the life.
    """
    chance = random.Random(f"life {seed}")
    strikes: list[Strike] = []
    for fault, severity in wanted:
        chosen = severity or chance.choice(SEVERITIES[1:])
        strikes.append(Strike(fault, chosen, draw(injector(fault), chosen, chance)))
    chance.shuffle(strikes)
    blocks = [_first(strike) for strike in strikes if at_start(strike)]
    if len(blocks) > 1:
        raise InputError("The faults of a life", "two of them strike at its start", "Ask for another life")
    strikes = [strike for strike in strikes if not at_start(strike)]
    count = -(-len(strikes) // STRIKES)
    for number in range(count):
        own = strikes[number::count]
        places = [*range(len(own)), *[HEALTHY] * TWINS]
        orders = [chance.sample(places, len(places)) for _ in range(ROUNDS)]
        orders.append(chance.sample(once := [HEALTHY, *range(len(own))], len(once)))
        blocks.append(Block(len(blocks), own, orders, max(2, -(-requests // ROUNDS))))
    return blocks


def at_start(strike: Strike) -> bool:
    """Whether it strikes once in a life, before the service is warm."""
    return injector(strike.fault).act == "first"


def _first(strike: Strike) -> Block:
    """One round, of which no step is profiled. Its healthy windows come when the service is warm."""
    return Block(0, [strike], [[0, *[HEALTHY] * TWINS]], int(strike.knobs["requests"]))


BROKEN = (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError)
"""What reading a truth that nobody wrote so comes to."""


def block_of(line: Mapping[str, Any]) -> BlockTruth:
    """The truth of a block from its JSON. Raises one of BROKEN where it is none."""
    windows = [window_of(window) for window in line["windows"]]
    strikes = [_strike(strike) for strike in line["strikes"]]
    return BlockTruth(line["block"], line["bundle"], windows, strikes, line["healthy_differ"])


def window_of(line: Mapping[str, Any]) -> Window:
    """A window from its JSON."""
    given: dict[str, Any] = {**line, "delays": [Delay(*delay) for delay in line["delays"]]}
    return Window(**given)


def _strike(line: Mapping[str, Any]) -> StrikeTruth:
    given: dict[str, Any] = {**line, "moved": {name: Ratio(*ratio) for name, ratio in line["moved"].items()}}
    return StrikeTruth(**given)
