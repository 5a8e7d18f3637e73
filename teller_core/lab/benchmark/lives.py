"""Which lives the benchmark is made of: what serves in each, under which load, what is done to it, and on which side it stands.

A side is a set of whole lives: what a server has of its own never stands on both. Each kind of service has as many lives on
either side, with its models and loads spread alike. A life is called by a hash of all that is asked for: its name tells nothing,
and a life whose plan changes is another one.
"""

import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal

from teller_core.lab.injectors import Injector, injectors

Side = Literal["train", "test"]

SIDES: tuple[Side, Side] = ("train", "test")
MODELS = ("plain", "deep", "wide")
LOADS = ("steady", "chat", "bursty")
STRIKES = 12
"""Of a life: two blocks."""
CALM = 3
"""Of these, hard negatives."""
OWN = 6
"""Of these, what the life's kind of service alone allows, two ranks, a link between them, a small cache: at most, and none of
them more than three times."""
SEVERITIES = ("strong", "clear", "extreme", "strong", "clear", "extreme", "strong", "slight")
"""One after the other, for each fault on each side. What is slight seldom moves anything."""
REQUESTS = 24
NOT_HERE = frozenset({"device"})
"""Needs that no life of the table has."""
EVERYWHERE = frozenset({"root", "cpu_quota", "disk", "fresh_start"})
NOTHING: frozenset[str] = frozenset()
OF_VLLM = frozenset({"shared_prefix", "grammar"})


@dataclass(frozen=True)
class Kind:
    """One kind of service."""

    engine: str = "vllm"
    ranks: int = 1
    apart: bool = False
    cache: str = "roomy"

    @property
    def provides(self) -> frozenset[str]:
        """Needs of injectors that it has and not every other one."""
        own = {"second_rank": self.ranks > 1, "link": self.apart, "small_cache": self.cache == "small"}
        return frozenset(need for need, there in own.items() if there)


KINDS: tuple[tuple[Kind, int], ...] = (
    (Kind(), 6),
    (Kind("transformers"), 6),
    (Kind(cache="small"), 2),
    (Kind(ranks=2), 2),
    (Kind(ranks=2, apart=True), 2),
    (Kind(), 3),
    (Kind(ranks=2, apart=True), 3),
    (Kind(ranks=2, apart=True), 3),
)
"""Kinds of service, and how many lives of each there are on each side. More come at the end: those before keep their names."""


@dataclass(frozen=True)
class LifePlan:
    """What one life is to be. ``wanted``: faults and their severities."""

    side: Side
    kind: Kind
    model: str
    load: str
    seed: int
    wanted: tuple[tuple[str, str], ...]
    requests: int = REQUESTS

    @property
    def name(self) -> str:
        """Eight hexadecimal digits."""
        return called(asdict(self))


def called(about: Mapping[str, Any]) -> str:
    """What a life of which this was asked is called: eight hexadecimal digits."""
    return sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:8]


def table(seed: int = 6) -> list[LifePlan]:
    """The lives, train and test in turn. Raises InputError where the injectors cannot be read."""
    lives: list[LifePlan] = []
    for turn, side in enumerate(SIDES):
        chance = random.Random(f"lives {seed} {side}")
        uses: Counter[str] = Counter()
        for number, (kind, model, load) in enumerate(_services(turn)):
            wanted = tuple(_wanted(kind, side, uses, chance))
            lives.append(LifePlan(side, kind, model, load, 1000 * seed + 2 * number + turn, wanted))
    half = len(lives) // 2
    return [life for pair in zip(lives[:half], lives[half:], strict=True) for life in pair]


def fits(one: Injector, kind: Kind) -> bool:
    """Whether ``one`` can be done to a service of this kind."""
    here = EVERYWHERE | kind.provides | (OF_VLLM if kind.engine == "vllm" else NOTHING)
    return kind.engine in one.engines and here.issuperset(one.needs)


def _services(turn: int) -> Iterator[tuple[Kind, str, str]]:
    """Kind, model and load of the lives of a side. On each engine every model and every load comes as often as the others; the
    other side has them in other pairs.
    """
    places: Counter[str] = Counter()
    for kind, count in KINDS:
        for _ in range(count):
            place = places[kind.engine]
            places[kind.engine] += 1
            yield kind, MODELS[place % 3], LOADS[(place + place // 3 + turn) % 3]


def _wanted(kind: Kind, side: Side, uses: Counter[str], chance: random.Random) -> Iterator[tuple[str, str]]:
    """The faults of one life: its own kind's first, then hard negatives, then whatever the side has least of."""
    known = [one for one in injectors().values() if fits(one, kind)]
    own = [one for one in known if not kind.provides.isdisjoint(one.needs)]
    calm = [one for one in known if one.cause is None]
    faults = [one for one in known if one.cause is not None and one not in own]
    taken: Counter[str] = Counter()
    first = {one.name: random.Random(f"{side} {one.name}").randrange(len(SEVERITIES)) for one in known}
    of_kind = min(OWN, 3 * len(own))
    for pool, count in ((own, of_kind), (calm, CALM), (faults, STRIKES - CALM - of_kind)):
        for _ in range(count):
            one = _least_used(pool, taken, uses, chance)
            taken[one.name] += 1
            uses[one.name] += 1
            uses[f"cause {one.cause}"] += 1
            yield one.name, SEVERITIES[(uses[one.name] + first[one.name]) % len(SEVERITIES)]


def _least_used(pool: Sequence[Injector], taken: Counter[str], uses: Counter[str], chance: random.Random) -> Injector:
    """Of those that this life has least of, the one whose cause, then which itself, the side has least of. A cause with more
    injectors has more room.
    """
    many = Counter(one.cause for one in injectors().values())

    def used(one: Injector) -> tuple[int, float, int, float]:
        return (
            taken[one.name],
            uses[f"cause {one.cause}"] / ((many[one.cause] + 1) // 2),
            uses[one.name],
            chance.random(),
        )

    return min(pool, key=used)
