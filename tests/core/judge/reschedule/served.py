"""An engine written down a second time, naively: texts are lists of tokens, and everything is counted anew in every step.

What it did is recorded as a capture, so that what is learned from captures can be compared with what is known here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.capture import Capture, Collectives, Pauses, Samples
from teller_core.data.steps import Lines, Mapping, Participation, Requests, Role, Steps, StepWork, TokenTimes
from teller_core.data.table import UNKNOWN

MS = 1_000_000
ZERO = 1_700_000_000_000_000_123
BASE, PROMPT, OUTPUT, CACHED, TURN = 4 * MS, 30_000, 150_000, 200, 300_000


@dataclass(frozen=True)
class Ask:
    """A request: when it comes (ns after ZERO), its prompt and its answer in tokens."""

    at: int
    prompt: int = 40
    output: int = 20


@dataclass(frozen=True)
class Engine:
    """Most tokens of a step, most requests at a time, KV blocks of 16 tokens; decodes first; the last that came goes first."""

    tokens: int = 10**9
    seats: int = 10**9
    blocks: int = 10**9
    decodes_first: bool = False
    last_first: bool = False


@dataclass
class Served:
    """What happened: a row a step: when it was decided on, when it ended, and (request, tokens, cached, answered, recomputed)."""

    asks: Sequence[Ask]
    engine: Engine
    decided: list[int] = field(default_factory=list[int])
    ended: list[int] = field(default_factory=list[int])
    rows: list[list[tuple[int, int, int, bool, int]]] = field(
        default_factory=list[list[tuple[int, int, int, bool, int]]]
    )
    usage: list[float] = field(default_factory=list[float])
    evicted: list[int] = field(default_factory=list[int])
    evictions: list[int] = field(default_factory=list[int])
    first: dict[int, int] = field(default_factory=dict[int, int])
    done: dict[int, int] = field(default_factory=dict[int, int])

    def work(self, step: int) -> int:
        """ns that the step's work takes."""
        total = BASE
        for _, tokens, cached, answered, again in self.rows[step]:
            total += CACHED * (cached + tokens)
            total += OUTPUT if answered and not again else PROMPT * tokens
        return total


def served(
    asks: Sequence[Ask],
    engine: Engine,
    extra: Callable[[int], int] = lambda now: 0,
    limited: Callable[[int], Engine] | None = None,
) -> Served:
    """Serve ``asks``; ``extra`` ns are added to a step that is decided on at a time (ns after ZERO), when the engine is as
    ``limited`` says.
    """
    out = Served(asks, engine)
    text = [list(range(ask.prompt)) for ask in asks]
    cache = [0] * len(asks)
    lost = [0] * len(asks)
    waiting: list[int] = []
    running: list[int] = []
    coming = sorted(range(len(asks)), key=lambda one: (asks[one].at, one))
    now = ZERO
    while coming or waiting or running:
        if not running and not waiting:
            now = max(now, ZERO + asks[coming[0]].at)
        now += TURN
        while coming and ZERO + asks[coming[0]].at <= now:
            waiting = [coming.pop(0), *waiting] if engine.last_first else [*waiting, coming.pop(0)]
        here = engine if limited is None else limited(now - ZERO)
        chosen, gone = _chosen(here, text, cache, running, waiting, lost, out)
        at = len(out.decided)
        assert chosen, "somebody must be served"
        out.decided.append(now)
        out.evicted.append(gone)
        out.rows.append(
            [
                (
                    one,
                    n,
                    cache[one],
                    len(text[one]) > asks[one].prompt,
                    max(min(cache[one] + n, lost[one]) - cache[one], 0),
                )
                for one, n in chosen.items()
            ]
        )
        now += out.work(at) + extra(now - ZERO)
        out.ended.append(now)
        for one, n in chosen.items():
            cache[one] += n
            if cache[one] == len(text[one]):
                text[one].append(-1)
                out.first.setdefault(one, now)
        out.usage.append(sum(map(_blocks, (cache[one] for one in running))) / engine.blocks)
        for one in [one for one in running if len(text[one]) == asks[one].prompt + asks[one].output]:
            running.remove(one)
            out.done[one] = now
    return out


def _blocks(tokens: int) -> int:
    return (tokens + 15) // 16


def _chosen(  # noqa: PLR0917  # the state of the loop above, as it is
    engine, text, cache, running, waiting, lost, out
) -> tuple[dict[int, int], int]:
    chosen: dict[int, int] = {}
    gone, asks = 0, out.asks

    def need(one: int, n: int) -> int:
        others = {*running, one}
        return sum(_blocks(cache[o] + (n if o == one else chosen.get(o, 0))) for o in others)

    order = list(running)
    if engine.decodes_first:
        order.sort(key=lambda one: len(text[one]) - cache[one] > 1 or len(text[one]) == asks[one].prompt)
    for one in order:
        n = min(len(text[one]) - cache[one], engine.tokens - sum(chosen.values()))
        if one not in running or n <= 0:
            continue
        while one in running and need(one, n) > engine.blocks:
            victim = running.pop()
            lost[victim], cache[victim] = max(lost[victim], cache[victim]), 0
            waiting.insert(0, victim)
            chosen.pop(victim, None)
            out.evictions.append(victim)
            gone += 1
        if one in running:
            chosen[one] = n
    while not gone and waiting and len(running) < engine.seats:
        n = min(len(text[waiting[0]]) - cache[waiting[0]], engine.tokens - sum(chosen.values()))
        if n <= 0 or need(waiting[0], n) > engine.blocks:
            break
        running.append(waiting.pop(0))
        chosen[running[-1]] = n
    return chosen, gone


def capture(run: Served) -> Capture:
    """What a recorder would have kept of it: decisions, ends, who took part, when requests reached the engine."""
    n, count = len(run.asks), len(run.decided)
    e32, e64 = np.empty(0, np.int32), np.empty(0, np.int64)
    flat = [(step, *row) for step, rows in enumerate(run.rows) for row in sorted(rows)]
    step, request, tokens, cached, _answered, again = (np.array(column, np.int64) for column in zip(*flat, strict=True))
    prompt = np.array([ask.prompt for ask in run.asks])
    role = np.where(cached < prompt[request], Role.PREFILL, Role.DECODE)
    fills = role == Role.PREFILL
    decided, ended = np.array(run.decided), np.array(run.ended)
    done = np.array([run.done[one] for one in range(n)])
    unknown = np.full(n, UNKNOWN)
    return Capture(
        id="5e77ed",
        name="served",
        engine="vllm",
        files=[],
        ranks=[],
        steps=Steps(
            engine=np.zeros(count, np.int32),
            number=np.arange(count, dtype=np.int64),
            scheduled=decided,
            launched=decided,
            finished=ended,
            delivered=ended,
            context_requests=np.bincount(step[fills], minlength=count).astype(np.int32),
            context_tokens=np.bincount(step[fills], weights=tokens[fills], minlength=count).astype(np.int32),
            generation_requests=np.bincount(step[~fills], minlength=count).astype(np.int32),
            generation_tokens=np.bincount(step[~fills], weights=tokens[~fills], minlength=count).astype(np.int32),
            kv_tokens=np.full(count, -1),
            kv_usage=np.array(run.usage),
            preempted=np.array(run.evicted, np.int32),
            mapping=np.full(count, Mapping.RECORDED, np.uint8),
            confidence=np.ones(count),
            elapsed=np.full(count, UNKNOWN),
        ),
        work=StepWork(e32, e32, e64, e64, e32, e32),
        requests=Requests(
            number=np.arange(1, n + 1, dtype=np.int32),
            engine_id=[f"cmpl-{one}" for one in range(n)],
            client_id=[""] * n,
            trace_id=[""] * n,
            client_start=unknown,
            received=unknown,
            queued=np.array([ZERO + ask.at for ask in run.asks]),
            scheduled=unknown,
            first_token=np.array([run.first[one] for one in range(n)]),
            last_token=done,
            finished=done,
            client_first=unknown,
            client_end=unknown,
            itl_max=unknown,
            itl_max_at=unknown,
            queue_ns=unknown,
            prompt_tokens=prompt.astype(np.int32),
            output_tokens=np.array([ask.output for ask in run.asks], np.int32),
            cached_tokens=np.full(n, -1, np.int32),
            preemptions=np.array([run.evictions.count(one) for one in range(n)], np.int32),
            engine=np.zeros(n, np.int32),
            failed=np.zeros(n, np.uint8),
            tokenized=unknown,
            finish_reason=["length"] * n,
        ),
        participation=Participation(
            step=step.astype(np.int32),
            request=request.astype(np.int32),
            tokens=tokens.astype(np.int32),
            recomputed=again.astype(np.int32),
            role=role.astype(np.uint8),
            mapping=np.full(len(step), Mapping.RECORDED, np.uint8),
            confidence=np.ones(len(step)),
        ),
        tokens=TokenTimes(np.zeros(n + 1, np.int64), e64),
        lines=Lines(e64, e64, e64, [], [], [], [], [], e32, e32, e32, e32),
        pauses=Pauses(e64, e64, e64, [], [], []),
        samples=Samples(e64, e64, [], [], [], e64),
        collectives=Collectives(e32, e64, e32, e32, e32, e64, e64, e64, e32),
        tier=3,
    )


def crowd(seed: int, size: int = 30, every_ms: float = 12.0, *, prompt: int = 120, output: int = 30) -> list[Ask]:
    """Requests that come by chance, ``every_ms`` on average."""
    rng = np.random.default_rng(seed)
    at = np.cumsum(rng.exponential(every_ms * MS, size)).astype(np.int64)
    sizes = zip(
        at.tolist(), rng.integers(1, prompt, size).tolist(), rng.integers(1, output, size).tolist(), strict=True
    )
    return [Ask(*one) for one in sizes]
