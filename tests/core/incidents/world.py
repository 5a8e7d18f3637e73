"""What happened to a service, as a case tells it: requests, steps that batch them, and the troubles that stretched these.

Nothing here knows what a rule looks for: the writers beside it put what happened into the words of engines and recorders.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MS = 1_000_000
ZERO = 1_795_953_600_000 * MS + 137_291_000
"""Unix ns of 2026-11-29 12:00:00 and a bit: no time of a fine clock falls on a whole second."""
TURN = 300_000


@dataclass(frozen=True)
class Ask:
    """One request. Times in ms: sent ``at``, on the ``way`` to the server, in the ``front`` end, kept from the scheduler for
    ``hold`` though the engine has it, ``back`` to the caller; ``slip``: how much later each token leaves the server than the one
    before it; ``late``: the same on the way to the caller; ``lump``: tokens that are sent together. ``schema`` and ``adapter``
    as the engine calls them; ``engine``: which one.
    """

    at: float
    prompt: int = 200
    output: int = 40
    cached: int = 0
    way: float = 1.0
    front: float = 1.0
    hold: float = 0.0
    back: float = 0.5
    slip: float = 0.0
    late: float = 0.0
    lump: int = 1
    schema: str = ""
    adapter: str = ""
    engine: int = 0
    lost: bool = False
    """No answer ever came: its caller gave up."""


@dataclass(frozen=True)
class Trouble:
    """What stretches steps between ``begin`` and ``end`` (ms): each ``every``-th of those that ``when`` speaks of takes ``extra``
    ms more, or ``times`` as long. ``rank``: on which rank, -1 for all; ``name``: of the operator or kernel, where one is meant.
    """

    kind: str
    begin: float = 0.0
    end: float = 1e9
    extra: float = 0.0
    times: float = 1.0
    every: int = 1
    when: str = "always"
    above: int = 0
    rank: int = -1
    name: str = ""


@dataclass
class Step:
    """One iteration. ``served``: (ask, tokens, prefill, recomputed); ``extra``: ns by trouble."""

    engine: int
    begin: int
    base: int
    stop: int
    served: list[tuple[int, int, bool, int]]
    extra: list[tuple[Trouble, int]]
    evicted: list[int] = field(default_factory=list[int])
    waiting: int = 0
    used: int = 0
    """KV tokens held."""

    @property
    def context(self) -> int:
        return sum(tokens for _, tokens, prefill, _ in self.served if prefill)

    @property
    def prefills(self) -> int:
        return sum(prefill for _, _, prefill, _ in self.served)

    @property
    def generation(self) -> int:
        return sum(not prefill for _, _, prefill, _ in self.served)


@dataclass(frozen=True)
class Service:
    """How the service works: ``slots`` requests at once, ``budget`` prompt tokens a step, ``room`` KV tokens (0: enough),
    ``mixed``: prompts and outputs share a step; costs in ms; ``serial``: the front end does one thing at a time; ``ready``: the
    engine's first step is not before it (ms); ``ranks``; ``stop``: no step begins after it (ms); ``accept``: tokens a step.
    """

    slots: int = 8
    budget: int = 2048
    room: int = 0
    mixed: bool = True
    base: float = 8.0
    token: float = 0.03
    output: float = 0.15
    serial: bool = False
    ready: float = 0.0
    ranks: int = 1
    engines: int = 1
    stop: float = 1e9
    accept: int = 1
    adapters: int = 4
    """Slots for adapters."""


@dataclass
class World:
    """All that happened. Lists an ask: ns of the moments (0 for never) and of its tokens, made and arrived."""

    service: Service
    asks: Sequence[Ask]
    steps: list[Step]
    received: list[int]
    queued: list[int]
    scheduled: list[int]
    made: list[list[int]]
    arrived: list[list[int]]
    blocked: list[tuple[int, int]]
    """When the front end's loop did one thing only."""

    def sent(self, ask: int) -> int:
        return ns(self.asks[ask].at)

    def ended(self, ask: int) -> int:
        """ns at which the caller has its answer, or gives up."""
        end = self.arrived[ask][-1] if self.arrived[ask] and not self.asks[ask].lost else self.last + 30_000 * MS
        return end + 200_000

    @property
    def last(self) -> int:
        """ns at which all is over."""
        return max([step.stop for step in self.steps] + [ns(ask.at) for ask in self.asks])

    def left(self, ask: int, token: int) -> int:
        """ns at which a token leaves the server."""
        at = self.made[ask][token] + 60_000 + round(token % len(self.made[ask]) * self.asks[ask].slip * MS)
        return next((high + 10_000 for low, high in self.blocked if low <= at < high), at)

    def name(self, ask: int) -> str:
        return f"r{ask:03d}"

    def engine_id(self, ask: int) -> str:
        return f"cmpl-r{ask:03d}-0-{(ask * 2654435761 + 77) % 2**32:08x}"


def ns(ms: float) -> int:
    """Unix ns of a time of a case."""
    return ZERO + round(ms * MS)


def play(capture: Mapping[str, Any]) -> World:
    """What a case's table ``capture`` tells."""
    service = Service(**capture.get("service", {}))
    asks = sorted((ask for group in capture["asks"] for ask in _asks(group)), key=lambda ask: ask.at)
    troubles = [Trouble(**told) for told in capture.get("troubles", [])]
    received = [ns(ask.at + ask.way) for ask in asks]
    queued, blocked = _front(service, asks, received)
    world = World(service, asks, [], received, queued, [0] * len(asks), [[] for _ in asks], [], blocked)
    for engine in range(service.engines):
        _Engine(world, engine, troubles).run()
    world.steps.sort(key=lambda step: step.begin)
    world.arrived = [_arrived(world, ask) for ask in range(len(asks))]
    return world


def _asks(group: Mapping[str, Any]) -> list[Ask]:
    """The requests of one group: ``count`` of them, ``every`` ms from ``at`` on; ``by``: keys whose values they take in turn."""
    same = {key: value for key, value in group.items() if key not in ("count", "every", "by")}
    turns: Mapping[str, Sequence[Any]] = group.get("by", {})
    begin, every = float(group["at"]), float(group.get("every", 0))
    asks: list[Ask] = []
    for i in range(group.get("count", 1)):
        own: dict[str, Any] = {"at": begin + i * every}
        own |= {key: values[i % len(values)] for key, values in turns.items()}
        asks.append(Ask(**(same | own)))
    return asks


def _front(service: Service, asks: Sequence[Ask], received: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    queued: list[int] = []
    blocked: list[tuple[int, int]] = []
    free = 0
    for ask, at in zip(asks, received, strict=True):
        begin = max(at, free) if service.serial else at
        end = begin + round(ask.front * MS)
        if service.serial and ask.front > 5:
            blocked.append((begin, end))
        free = end
        queued.append(end)
    return queued, blocked


class _Engine:
    def __init__(self, world: World, number: int, troubles: Sequence[Trouble]) -> None:
        self.world, self.number, self.troubles = world, number, troubles
        self.rng = np.random.default_rng(7 + number)
        self.waiting = [i for i, ask in enumerate(world.asks) if ask.engine == number and not ask.lost]
        self.running: list[int] = []
        self.todo: dict[int, int] = {}
        """Prompt tokens that are still to be computed, by ask; of an evicted one all that it had."""
        self.again: dict[int, int] = {}
        self.resident: list[str] = []
        self.counted: dict[int, int] = {}

    def run(self) -> None:
        service = self.world.service
        now = ns(service.ready)
        while (self.waiting or self.running) and now < ns(service.stop):
            self._admit(now)
            if not self.running:
                now += MS // 2
                continue
            step = self._step(now)
            self.world.steps.append(step)
            now = step.stop + TURN

    def _ready(self, ask: int) -> int:
        return self.world.queued[ask] + round(self.world.asks[ask].hold * MS)

    def _admit(self, now: int) -> None:
        service, asks = self.world.service, self.world.asks
        for ask in [i for i in self.waiting if self._ready(i) <= now]:
            held = sum(self._held(i) for i in self.running)
            need = asks[ask].prompt + len(self.world.made[ask])
            if len(self.running) >= service.slots or (service.room and held + need > service.room):
                break
            self.waiting.remove(ask)
            self.running.append(ask)
            self.todo[ask] = need - (asks[ask].cached if not self.world.made[ask] else 0)
            self.world.scheduled[ask] = self.world.scheduled[ask] or now

    def _held(self, ask: int) -> int:
        return self.world.asks[ask].prompt + len(self.world.made[ask])

    def _step(self, now: int) -> Step:
        service = self.world.service
        evicted: list[int] = []
        while service.room and len(self.running) > 1 and sum(map(self._held, self.running)) > service.room:
            gone = self.running.pop()
            evicted.append(gone)
            self.waiting.insert(0, gone)
            self.again[gone] = self._held(gone)
        served = self._served()
        cost = service.base + service.token * sum(n for _, n, prefill, _ in served if prefill)
        cost += service.output * sum(not prefill for _, _, prefill, _ in served)
        base = round(cost * MS * float(np.exp(self.rng.normal(0, 0.02))))
        extra = [(trouble, added) for trouble in self.troubles if (added := self._extra(trouble, now, served, base))]
        # On two ranks at once a trouble holds the step up but once.
        stop = now + base + sum(added for _, added in extra)
        waiting = sum(self._ready(i) <= now for i in self.waiting)
        step = Step(self.number, now, base, stop, served, extra, evicted, waiting)
        step.used = sum(map(self._held, self.running))
        self._after(step)
        return step

    def _served(self) -> list[tuple[int, int, bool, int]]:
        left, served = self.world.service.budget, list[tuple[int, int, bool, int]]()
        for ask in self.running:
            if (tokens := min(self.todo.get(ask, 0), left)) > 0:
                again = min(tokens, self.again.get(ask, 0))
                served.append((ask, tokens, True, again))
                left -= tokens
        if served and not self.world.service.mixed:
            return served
        return served + [(ask, 1, False, 0) for ask in self.running if not self.todo.get(ask, 0)]

    def _extra(self, trouble: Trouble, now: int, served: Sequence[tuple[int, int, bool, int]], base: int) -> int:
        if not ns(trouble.begin) <= now < ns(trouble.end) or not self._meant(trouble, served):
            return 0
        turn = self.counted[id(trouble)] = self.counted.get(id(trouble), -1) + 1
        if turn % trouble.every:
            return 0
        return round(trouble.extra * MS) + round((trouble.times - 1) * base)

    def _meant(self, trouble: Trouble, served: Sequence[tuple[int, int, bool, int]]) -> bool:
        asks = self.world.asks
        match trouble.when:
            case "schema":
                return any(asks[i].schema for i, *_ in served)
            case "adapter":
                return any(asks[i].adapter and asks[i].adapter not in self.resident for i, *_ in served)
            case "batch":
                return len(served) > trouble.above
            case "engine":
                return self.number == trouble.above
            case "prompt":
                return any(prefill and asks[i].prompt > trouble.above for i, _, prefill, _ in served)
            case _:
                return True

    def _after(self, step: Step) -> None:
        made, asks = self.world.made, self.world.asks
        for ask, tokens, prefill, _ in step.served:
            if asks[ask].adapter:
                self.resident = [name for name in self.resident if name != asks[ask].adapter] + [asks[ask].adapter]
            if prefill:
                self.todo[ask] -= tokens
                self.again[ask] = max(self.again.get(ask, 0) - tokens, 0)
                if self.todo[ask] > 0:
                    continue
            made[ask] += [step.stop + 50_000] * (1 if prefill else self.world.service.accept)
            del made[ask][asks[ask].output :]
        self.resident = self.resident[-self.world.service.adapters :]
        self.running = [i for i in self.running if len(made[i]) < asks[i].output]


def _arrived(world: World, ask: int) -> list[int]:
    """When its tokens reach its caller: later and later where they slip, together where they are sent in lumps."""
    told = world.asks[ask]
    times = [at + round((told.back + i * (told.slip + told.late)) * MS) for i, at in enumerate(world.made[ask])]
    for i, at in enumerate(times):
        for low, high in world.blocked:
            times[i] = high + 20_000 if low <= at < high else times[i]
        last = min((i // told.lump + 1) * told.lump, len(times)) - 1
        if told.lump > 1:
            times[i] = world.made[ask][last] + round(told.back * MS)
    return times
