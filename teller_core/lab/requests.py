"""What clients send in a window of a server's life, from a seed: ordinary requests, and what a fault makes of them."""

import random
from collections.abc import Mapping, Sequence

from teller_core.lab.injectors import Injector
from teller_core.lab.load import Ask, Piece
from teller_core.lab.mixes import sizes

REQUESTS = 24
MOST_WORDS = 950
"""Of a prompt, after what all begin with: a word is a little more than one token, and the smallest context has some 2000."""
MOST_OUTPUT = 700
WARM_UP = (30, 100, 10, 60)
"""Words of what is sent before a service counts as warm."""
WARM_UP_OUTPUT, WARM_UP_PROPERTIES = 12, 4
BEGINNING = 0
"""The text that all ordinary prompts begin with; conversations have the next ones."""


def ordinary(
    chance: random.Random, requests: int = REQUESTS, mix: str = "steady", beginning: int = 0
) -> tuple[Ask, ...]:
    """Requests of a mix of ``MIXES``. Their names say nothing, and are drawn by :func:`named`.

    ``beginning``: words that all of them begin with, as instructions that an operator puts before each prompt. Raises
    UnknownName for a mix that is not there.
    """
    common = _common(beginning)
    asks: list[Ask] = []
    for size in sizes(mix, requests, chance):
        talk = (Piece(BEGINNING + size.talk, size.shared),) if size.shared else ()
        asks.append(Ask("", size.at, size.words - size.shared, size.output, common + talk))
    return tuple(asks)


def warm_up(beginning: int = 0, grammar: bool = False) -> tuple[Ask, ...]:
    """What a service is warmed up with, at once: afterwards it knows the ``beginning`` of all prompts, and what a schema is."""
    asks = [
        Ask(f"warmup-{number:03d}", 0.0, words, WARM_UP_OUTPUT, _common(beginning))
        for number, words in enumerate(WARM_UP)
    ]
    if grammar:
        asks.append(asks[0]._replace(rid=f"warmup-{len(asks):03d}", properties=WARM_UP_PROPERTIES))
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
        case "prefix":
            return _begun_anew(asks, int(knobs["words"]), _turns(len(asks), knobs), chance), ()
        case "schema":
            return [ask._replace(properties=int(knobs["properties"])) for ask in asks], ()
        case _:
            return asks, ()


def touched(requests: int, one: Injector, knobs: Mapping[str, float]) -> Sequence[int]:
    """The places of those of ``requests`` ordinary requests that ``one`` may make slow by itself.

    All of them, but where they share a new beginning: the first one alone computes it.
    """
    turns = _turns(requests, knobs) if one.act == "prefix" else range(requests)
    return [place for place, turn in enumerate(turns) if place == 0 or turn != turns[place - 1]]


def named(asks: Sequence[Ask], chance: random.Random) -> list[Ask]:
    """The same with names that tell neither window nor order."""
    return [ask._replace(rid=f"{chance.getrandbits(48):012x}") for ask in asks]


def _common(beginning: int) -> tuple[Piece, ...]:
    return (Piece(BEGINNING, beginning),) if beginning else ()


def _others(asks: Sequence[Ask], knobs: Mapping[str, float], chance: random.Random) -> list[Ask]:
    count = max(1, round(len(asks) * knobs["share_percent"] / 100))
    last = asks[-1].at
    times = sorted(chance.uniform(0.0, 0.9 * last) for _ in range(count))
    return [Ask("", at, int(knobs["words"]), int(knobs["output"])) for at in times]


def _shifted(ask: Ask, knobs: Mapping[str, float]) -> Ask:
    room = MOST_WORDS - sum(piece.words for piece in ask.opening if piece.text != BEGINNING)
    words = round(ask.words * knobs.get("words_percent", 100) / 100)
    output = round(ask.output * knobs.get("output_percent", 100) / 100)
    at = ask.at * knobs.get("gap_percent", 100) / 100
    return ask._replace(at=at, words=min(words, room), output=min(output, MOST_OUTPUT))


def _in_bursts(asks: Sequence[Ask], bursts: int) -> list[Ask]:
    """Each request comes with the first one of its burst."""
    size = -(-len(asks) // bursts)
    return [ask._replace(at=asks[place // size * size].at) for place, ask in enumerate(asks)]


def _turns(requests: int, knobs: Mapping[str, float]) -> Sequence[int]:
    """Which new beginning each request has: its own, or one of ``beginnings`` that those in a row share."""
    size = -(-requests // int(knobs.get("beginnings", requests)))
    return [place // size for place in range(requests)]


def _begun_anew(asks: Sequence[Ask], words: int, turns: Sequence[int], chance: random.Random) -> list[Ask]:
    """The last ``words`` of what all begin with are new, and so nothing after them can be found in a cache."""
    numbers = [chance.getrandbits(48) | 1 << 48 for _ in range(len(asks))]  # of no conversation
    found: list[Ask] = []
    for ask, turn in zip(asks, turns, strict=True):
        common, *talk = ask.opening
        new = min(words, common.words)
        kept = (Piece(common.text, common.words - new),) if new < common.words else ()
        found.append(ask._replace(opening=(*kept, Piece(numbers[turn], new), *talk)))
    return found
