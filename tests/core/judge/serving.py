"""A simulated service that batches continuously, with requests, and the troubles put into it, recorded as a recorder would.

A step costs BASE + PROMPT a prompt token + OUTPUT a generated token, exactly. What a trouble adds is known exactly too, so
tests can say what each request lost to it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.assessment import Assessment, Baselines, Candidates, RequestExpectations, StepExpectations
from teller_core.data.capture import Capture, Collectives, Pauses, Rank, Samples
from teller_core.data.records import FileRead
from teller_core.data.steps import Lines, Mapping, Participation, Requests, Role, Steps, StepWork, TokenTimes
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Layer

MS = 1_000_000
ZERO = 1_700_000_000_000 * MS
BASE, PROMPT, OUTPUT, TURN = 4 * MS, 40_000, 200_000, 300_000
SAMPLED = 100 * MS


@dataclass(frozen=True)
class Ask:
    """A request: when it arrives (ms), its tokens, how long the way to the server and the front end take (ms)."""

    at: float
    prompt: int = 50
    output: int = 60
    way: float = 0.2
    front: float = 0.3


@dataclass(frozen=True)
class Trouble:
    """Between ``low`` and ``high`` (ms) every ``every``-th step takes ``extra`` ms more, for the reason ``kind``."""

    kind: str
    low: float
    high: float
    extra: float
    every: int = 1


@dataclass
class _Step:
    begin: int
    stop: int
    context: int
    generation: int
    served: list[tuple[int, int, int, int]]
    extra: dict[str, int] = field(default_factory=dict)
    evicted: int = 0

    @property
    def served_by(self) -> set[int]:
        return {request for request, *_ in self.served}


def serve(
    asks: Sequence[Ask],
    troubles: Sequence[Trouble] = (),
    *,
    slots: int = 8,
    evict: tuple[int, int, float] | None = None,
    mapped: bool = True,
    counters: bool = True,
    tier: int = 4,
    named: str = "aten::mm",
) -> tuple[Capture, Assessment]:
    """The capture and its numbers. ``evict``: this request loses its place after so many tokens, for so many ms."""
    steps, first, token_times, chosen = _run(asks, troubles, slots, evict)
    return _capture(
        asks, steps, first, token_times=token_times, chosen=chosen, mapped=mapped, counters=counters, tier=tier
    ), _assessment(asks, steps, token_times, named)


def _run(asks: Sequence[Ask], troubles: Sequence[Trouble], slots: int, evict: tuple[int, int, float] | None):
    now = ZERO
    waiting = list(range(len(asks)))
    running: list[int] = []
    made = [0] * len(asks)
    back: dict[int, int] = {}
    away: tuple[int, int] | None = None
    steps: list[_Step] = []
    token_times: list[list[int]] = [[] for _ in asks]
    chosen: list[int] = [0] * len(asks)
    turn = 0
    while waiting or running or away:
        if away and now >= away[1] and len(running) < slots:
            back[away[0]] = asks[away[0]].prompt + made[away[0]]
            running.append(away[0])
            away = None
        new = [i for i in waiting if ZERO + int((asks[i].at + asks[i].way + asks[i].front) * MS) <= now][
            : slots - len(running)
        ]
        waiting = [i for i in waiting if i not in new]
        running += new
        if not running:
            now += MS // 2
            continue
        served, context, generation = [], 0, 0
        for i in running:
            if made[i] == 0 or i in back:
                again = back.pop(i, 0)
                tokens = again or asks[i].prompt
                served.append((i, tokens, Role.PREFILL, again))
                context += tokens
                chosen[i] = chosen[i] or now
            else:
                served.append((i, 1, Role.DECODE, 0))
                generation += 1
        step = _Step(now, now + BASE + PROMPT * context + OUTPUT * generation, context, generation, served)
        step.evicted = int(away is not None and away[0] in steps[-1].served_by)
        for trouble in troubles:
            if ZERO + trouble.low * MS <= now < ZERO + trouble.high * MS and turn % trouble.every == 0:
                step.extra[trouble.kind] = int(trouble.extra * MS)
                step.stop += int(trouble.extra * MS)
        turn += 1
        for i, *_ in served:
            made[i] += 1
            token_times[i].append(step.stop + 100_000)
        running = [i for i in running if made[i] < asks[i].output]
        if evict and evict[0] in running and made[evict[0]] == evict[1]:
            running.remove(evict[0])
            away = (evict[0], step.stop + int(evict[2] * MS))
        steps.append(step)
        now = step.stop + TURN
    return steps, [times[0] for times in token_times], token_times, chosen


def _capture(asks, steps, first, *, token_times, chosen, mapped, counters, tier) -> Capture:
    n, e32, e64 = len(asks), np.empty(0, np.int32), np.empty(0, np.int64)
    pairs = [(s, i, tokens, role, again) for s, step in enumerate(steps) for i, tokens, role, again in step.served]
    if not mapped:
        pairs = []
    columns = np.array(pairs, np.int64).reshape(-1, 5)
    sent = [ZERO + int(ask.at * MS) for ask in asks]
    gaps = [np.diff(times) if len(times) > 1 else np.array([0]) for times in token_times]
    return Capture(
        id="c0ffee",
        name="simulated",
        engine="vllm",
        files=[FileRead("server.log", "vllm_log", 1)],
        ranks=[Rank(0, "host", 7, "worker", None, -1)],
        steps=_steps(steps, mapped),
        work=StepWork(
            np.arange(len(steps), dtype=np.int32),
            np.zeros(len(steps), np.int32),
            np.array([s.begin for s in steps]),
            np.array([s.stop for s in steps]),
            np.full(len(steps), 0 if tier == 4 else -1, np.int32),
            np.full(len(steps), 400 if tier == 4 else -1, np.int32),
        ),
        requests=Requests(
            number=np.arange(1, n + 1, dtype=np.int32),
            engine_id=[f"cmpl-{i}" for i in range(n)],
            client_id=[""] * n,
            trace_id=[""] * n,
            client_start=np.array(sent),
            received=np.array([t + int(a.way * MS) for t, a in zip(sent, asks, strict=True)]),
            queued=np.array([t + int((a.way + a.front) * MS) for t, a in zip(sent, asks, strict=True)]),
            scheduled=np.array(chosen),
            first_token=np.array([t[0] for t in token_times]),
            last_token=np.array([t[-1] for t in token_times]),
            finished=np.array([t[-1] + 50_000 for t in token_times]),
            client_first=np.array(first),
            client_end=np.array([t[-1] + 200_000 for t in token_times]),
            itl_max=np.array([int(g.max()) for g in gaps]),
            itl_max_at=np.array(
                [t[int(g.argmax()) + 1] if len(t) > 1 else t[0] for t, g in zip(token_times, gaps, strict=True)]
            ),
            queue_ns=np.full(n, UNKNOWN),
            prompt_tokens=np.array([a.prompt for a in asks], np.int32),
            output_tokens=np.array([a.output for a in asks], np.int32),
            cached_tokens=np.full(n, -1, np.int32),
            preemptions=np.zeros(n, np.int32),
            engine=np.zeros(n, np.int32),
            failed=np.zeros(n, np.uint8),
            tokenized=np.full(n, UNKNOWN),
            finish_reason=["length"] * n,
        ),
        participation=Participation(
            step=columns[:, 0].astype(np.int32),
            request=columns[:, 1].astype(np.int32),
            tokens=columns[:, 2].astype(np.int32),
            recomputed=columns[:, 4].astype(np.int32),
            role=columns[:, 3].astype(np.uint8),
            mapping=np.full(len(columns), Mapping.RECORDED, np.uint8),
            confidence=np.ones(len(columns)),
        ),
        tokens=TokenTimes(
            np.append(0, np.cumsum([len(t) for t in token_times])), np.array([t for ts in token_times for t in ts])
        ),
        lines=Lines(e64, e64, e64, [], [], [], [], [], e32, e32, e32, e32),
        pauses=_pauses(steps),
        samples=_samples(steps) if counters else Samples(e64, e64, [], [], [], e64),
        collectives=Collectives(e32, e64, e32, e32, e32, e64, e64, e64, e32),
        tier=tier,
    )


def _steps(steps: list[_Step], mapped: bool) -> Steps:
    n = len(steps)
    begin, stop = np.array([s.begin for s in steps]), np.array([s.stop for s in steps])
    prefills = [sum(role == Role.PREFILL for _, _, role, _ in s.served) for s in steps]
    return Steps(
        engine=np.zeros(n, np.int32),
        number=np.arange(n, dtype=np.int64),
        scheduled=begin - 10_000,
        launched=begin,
        finished=stop,
        delivered=stop + 100_000,
        context_requests=np.array(prefills, np.int32),
        context_tokens=np.array([s.context for s in steps], np.int32),
        generation_requests=np.array([s.generation for s in steps], np.int32),
        generation_tokens=np.array([s.generation for s in steps], np.int32),
        kv_tokens=np.full(n, -1),
        kv_usage=np.full(n, 0.4),
        preempted=np.array([s.evicted for s in steps], np.int32),
        mapping=np.full(n, Mapping.RECORDED if mapped else Mapping.UNKNOWN, np.uint8),
        confidence=np.ones(n),
        elapsed=np.full(n, UNKNOWN),
    )


def _pauses(steps: list[_Step]) -> Pauses:
    rows = [(0, 500_000, "gc")] and [
        (s.begin + MS, s.extra[kind], name)
        for s in steps
        for kind, name in (("gc", "gc"), ("lock", "thread_lag"), ("recorder", "profiler_stop"))
        if kind in s.extra
    ]
    rows.append((ZERO - 100 * MS, MS, "gc"))
    rows.sort()
    return Pauses(
        np.array([r[0] for r in rows]),
        np.array([r[1] for r in rows]),
        np.zeros(len(rows), np.int64),
        ["host/7"] * len(rows),
        ["worker"] * len(rows),
        [r[2] for r in rows],
    )


def _samples(steps: list[_Step]) -> Samples:
    """What a sampler sees: a little of everything always, and each trouble in the counter that it moves."""
    low, high = steps[0].begin - SAMPLED, steps[-1].stop + SAMPLED
    edges = np.arange(low, high + SAMPLED, SAMPLED)
    usual = {"run_ns": 60 * MS, "run_queue_wait_ns": 2 * MS, "pressure_io_some_us": 100, "write_bytes": 4096}
    moved = {
        "run_ns": ("operator", 1.0),
        "run_queue_wait_ns": ("starved", 1.0),
        "pressure_io_some_us": ("disk", 1e-3),
        "write_bytes": ("disk", 0.2),
    }
    rows: list[tuple[int, int, str, int]] = []
    for name, amount in usual.items():
        kind, factor = moved[name]
        extra = np.zeros(len(edges) - 1)
        for step in steps:
            if kind in step.extra:
                for at in range(np.searchsorted(edges, step.begin, "right") - 1, np.searchsorted(edges, step.stop)):
                    inside = min(step.stop, int(edges[at + 1])) - max(step.begin, int(edges[at]))
                    extra[at] += step.extra[kind] * inside / (step.stop - step.begin) * factor
        rows += [(int(a), int(b), name, int(amount + x)) for a, b, x in zip(edges[:-1], edges[1:], extra, strict=True)]
    rows.sort()
    whole = ("pressure",)
    return Samples(
        start=np.array([r[0] for r in rows]),
        stop=np.array([r[1] for r in rows]),
        name=[r[2] for r in rows],
        process=["" if r[2].startswith(whole) else "host/7" for r in rows],
        role=["" if r[2].startswith(whole) else "worker" for r in rows],
        delta=np.array([r[3] for r in rows]),
    )


def _assessment(asks: Sequence[Ask], steps: list[_Step], token_times: list[list[int]], named: str) -> Assessment:
    took = np.array([s.stop - s.begin for s in steps])
    expected = np.array([s.stop - s.begin - sum(s.extra.values()) for s in steps])
    slow = [(at, s) for at, s in enumerate(steps) if "operator" in s.extra]
    e32, e64 = np.empty(0, np.int32), np.empty(0, np.int64)
    value = np.array(
        [times[-1] + 200_000 - ZERO - int(ask.at * MS) for ask, times in zip(asks, token_times, strict=True)]
    )
    alone = np.array([BASE + PROMPT * a.prompt + (a.output - 1) * (BASE + TURN + 4 * OUTPUT) for a in asks])
    names = ["ttft", "tpot", "itl_max", "e2e"]
    n = len(asks)
    first = np.array([times[0] - ZERO - int(ask.at * MS) for ask, times in zip(asks, token_times, strict=True)])
    each = np.array([(times[-1] - times[0]) // max(len(times) - 1, 1) for times in token_times])
    gap = np.array([int(np.diff(times).max()) if len(times) > 1 else UNKNOWN for times in token_times])
    usual = BASE + TURN + 4 * OUTPUT
    work = [BASE + PROMPT * np.array([a.prompt for a in asks]), np.full(n, usual), np.full(n, usual), alone]
    return Assessment(
        baselines=Baselines(
            [], [], [], np.empty(0, np.uint8), e32, e64, np.empty(0), e64, np.empty(0), np.empty(0), np.empty(0)
        ),
        steps=StepExpectations(took, expected, np.zeros(len(steps)), took - expected),
        candidates=Candidates(
            step=np.array([at for at, _ in slow], np.int32),
            rank=np.zeros(len(slow), np.int32),
            row=np.arange(len(slow), dtype=np.int32),
            name=[named] * len(slow),
            layer=np.full(len(slow), Layer.OPERATOR, np.uint8),
            value=np.array([s.extra["operator"] + MS for _, s in slow], np.int64),
            normal=np.full(len(slow), MS),
            residual=np.full(len(slow), 9.0),
            excess=np.array([s.extra["operator"] for _, s in slow], np.int64),
            baseline=np.zeros(len(slow), np.int32),
            method=["made"] * len(slow),
        ),
        requests=RequestExpectations(
            request=np.tile(np.arange(n, dtype=np.int32), 4),
            metric=[name for name in names for _ in range(n)],
            value=np.concatenate([first, each, gap, value]),
            by_work=np.concatenate(work),
            by_load=np.full(4 * n, UNKNOWN),
            residual=np.zeros(4 * n),
        ),
    )
