"""What clients send in a window of a server's life, from a seed: ordinary requests, and what a fault makes of them."""

import random
from collections.abc import Mapping, Sequence

from teller_core.lab.injectors import Injector
from teller_core.lab.load import Ask

REQUESTS = 24
GAP_S = 0.3
WORDS = (8, 110)
OUTPUT = (16, 64)
MOST_WORDS = 950
"""Of a prompt: a word is a little more than one token, and the smallest context has 2048."""
MOST_OUTPUT = 700


def ordinary(chance: random.Random, requests: int = REQUESTS) -> tuple[Ask, ...]:
    """Requests that arrive by chance (a Poisson process). Their names say nothing, and are drawn by :func:`named`."""
    at = 0.0
    asks: list[Ask] = []
    for _ in range(requests):
        asks.append(Ask("", at, chance.randint(*WORDS), chance.randint(*OUTPUT)))
        at += chance.expovariate(1 / GAP_S)
    return tuple(asks)


def changed(
    asks: Sequence[Ask], one: Injector | None, knobs: Mapping[str, float], chance: random.Random
) -> tuple[Sequence[Ask], Sequence[Ask]]:
    """(the ordinary requests, those of others) of a window in which ``one`` strikes; in order, as many as ``asks``."""
    match one.act if one is not None else "":
        case "others":
            return asks, _others(asks, knobs, chance)
        case "shift":
            return [_shifted(ask, knobs) for ask in asks], ()
        case "bursts":
            return _in_bursts(asks, int(knobs["bursts"])), ()
        case _:
            return asks, ()


def named(asks: Sequence[Ask], chance: random.Random) -> list[Ask]:
    """The same with names that tell neither window nor order."""
    return [ask._replace(rid=f"{chance.getrandbits(48):012x}") for ask in asks]


def _others(asks: Sequence[Ask], knobs: Mapping[str, float], chance: random.Random) -> list[Ask]:
    count = max(1, round(len(asks) * knobs["share_percent"] / 100))
    last = asks[-1].at
    times = sorted(chance.uniform(0.0, 0.9 * last) for _ in range(count))
    return [Ask("", at, int(knobs["words"]), int(knobs["output"])) for at in times]


def _shifted(ask: Ask, knobs: Mapping[str, float]) -> Ask:
    words = round(ask.words * knobs.get("words_percent", 100) / 100)
    output = round(ask.output * knobs.get("output_percent", 100) / 100)
    at = ask.at * knobs.get("gap_percent", 100) / 100
    return ask._replace(at=at, words=min(words, MOST_WORDS), output=min(output, MOST_OUTPUT))


def _in_bursts(asks: Sequence[Ask], bursts: int) -> list[Ask]:
    """Each request comes with the first one of its burst."""
    size = -(-len(asks) // bursts)
    return [ask._replace(at=asks[place // size * size].at) for place, ask in enumerate(asks)]
