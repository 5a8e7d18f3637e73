"""A small synthetic service for tests: steps of known work, trees with known durations, and the faults put into them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from teller_core.data.capture import Capture, Collectives, Pauses, Rank, Samples
from teller_core.data.steps import Lines, Participation, Requests, Steps, StepWork, TokenTimes
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import NO_LINK, Lane, Layer, Origin, Trace
from teller_core.data.tree import Tree

MS = 1_000_000
US = 1_000


@dataclass
class Rows:
    """A tree written top down: ``open`` a span, write what is in it, ``close`` it."""

    names: list[str] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    dur: list[int] = field(default_factory=list)
    name: list[int] = field(default_factory=list)
    lane: list[int] = field(default_factory=list)
    layer: list[int] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)
    stop: list[int] = field(default_factory=list)
    stack: list[int] = field(default_factory=list)

    def open(self, name: str, layer: Layer, start: int, lane: int = 0) -> int:
        if name not in self.names:
            self.names.append(name)
        row = len(self.start)
        self.start.append(start)
        self.dur.append(0)
        self.name.append(self.names.index(name))
        self.lane.append(lane)
        self.layer.append(layer)
        self.parent.append(self.stack[-1] if self.stack else -1)
        self.stop.append(0)
        self.stack.append(row)
        return row

    def close(self, end: int) -> None:
        row = self.stack.pop()
        self.dur[row] = end - self.start[row]
        self.stop[row] = len(self.start)

    def leaf(self, name: str, layer: Layer, start: int, dur: int, lane: int = 0) -> int:
        row = self.open(name, layer, start, lane)
        self.close(start + dur)
        return row

    def tree(self) -> Tree:
        n = len(self.start)
        trace = Trace(
            start=np.array(self.start, dtype=np.int64),
            dur=np.array(self.dur, dtype=np.int64),
            name=np.array(self.name, dtype=np.int32),
            lane=np.array(self.lane, dtype=np.int32),
            category=np.zeros(n, dtype=np.uint8),
            layer=np.array(self.layer, dtype=np.uint8),
            link=np.full(n, NO_LINK, dtype=np.int64),
            arg=np.full(n, -1, dtype=np.int32),
            names=tuple(self.names),
            lanes=(Lane("p", "main", False), Lane("p", "other", False), Lane("gpu", "7", True)),
            categories=("x",),
            args=(),
            origin=Origin(producer="test", clock="unix"),
            events_in_file=n,
        )
        return Tree(trace, np.array(self.parent, dtype=np.int32), np.array(self.stop, dtype=np.int32))


@dataclass(frozen=True)
class Work:
    """What one step has to do, and what is wrong with it. ``slow`` multiplies the own time of operators by name, ``repeat``
    the calls of the MLP, ``gap`` ns is a silence in the middle, ``pauses`` multiplies the silence before every operator,
    ``all_slow`` stretches everything.
    """

    context: int = 0
    generation: int = 8
    kv: int = 800
    slow: Mapping[str, float] = field(default_factory=dict)
    repeat: int = 1
    gap: int = 0
    pauses: int = 1
    all_slow: float = 1.0
    profiled: bool = True


COST = {
    "aten::linear": 4 * US,
    "aten::addmm": 60 * US,
    "aten::sdpa": 20 * US,
    "aten::silu": 8 * US,
    "aten::norm": 6 * US,
}
LAYERS = 4
PAUSE = 5 * US
"""Host time before every operator."""


def service(steps: Sequence[Work], seed: int = 0, ranks: int = 1, noise: float = 0.03) -> Capture:
    """A capture of ``steps``, one after another, without requests."""
    rng = np.random.default_rng(seed)
    trees: list[Tree] = []
    windows: list[list[tuple[int, int, int, int]]] = []
    for _ in range(ranks):
        rows, mine, now = Rows(), [], 1_000 * MS
        for work in steps:
            low, begin = len(rows.start), now
            now = _step(rows, work, now, rng, noise)
            mine.append((begin, now, low, len(rows.start)) if work.profiled else (begin, now, -1, -1))
            now += 200 * US
        trees.append(rows.tree())
        windows.append(mine)
    n = len(steps)
    begin = np.array([min(w[i][0] for w in windows) for i in range(n)], dtype=np.int64)
    end = np.array([max(w[i][1] for w in windows) for i in range(n)], dtype=np.int64)
    index = np.repeat(np.arange(n, dtype=np.int32), ranks)
    flat = [windows[r][i] for i in range(n) for r in range(ranks)]
    return capture(
        steps_table(steps, begin, end),
        StepWork(
            step=index,
            rank=np.tile(np.arange(ranks, dtype=np.int32), n),
            start=np.array([w[0] for w in flat], dtype=np.int64),
            stop=np.array([w[1] for w in flat], dtype=np.int64),
            row=np.array([w[2] for w in flat], dtype=np.int32),
            row_stop=np.array([w[3] for w in flat], dtype=np.int32),
        ),
        [Rank(r, "host", 100 + r, "worker", tree, -1) for r, tree in enumerate(trees)],
    )


def _step(rows: Rows, work: Work, now: int, rng: np.random.Generator, noise: float) -> int:
    tokens = work.context + work.generation

    def operator(name: str, inner: str | None = None, size: float = 1.0) -> None:
        nonlocal now
        now += PAUSE * work.pauses
        rows.open(name, Layer.OPERATOR, now)
        if inner is not None:
            now += int(COST[name] / 2)
            operator(inner, size=size)
            now += int(COST[name] / 2)
        else:
            factor = work.slow.get(name, 1.0) * work.all_slow * float(np.exp(rng.normal(0, noise)))
            grow = tokens / 8 if name == "aten::addmm" else work.kv / 800 if name == "aten::sdpa" else 1.0
            now += int(COST[name] * factor * grow * size)
        rows.close(now)

    rows.open(
        f"execute_context_{int(work.context > 0)}({work.context})_generation_{work.generation}", Layer.ENGINE, now
    )
    for layer in range(LAYERS):
        rows.open(f"nn.Module: Block_{layer}", Layer.PYTHON, now)
        operator("aten::norm")
        operator("aten::linear", "aten::addmm")
        operator("aten::sdpa")
        if layer == 2:
            now += work.gap
        for _ in range(work.repeat):
            operator("aten::linear", "aten::addmm", size=3.0)
            operator("aten::silu")
        rows.close(now)
    rows.close(now)
    return now


def steps_table(steps: Sequence[Work], begin: np.ndarray, end: np.ndarray) -> Steps:
    n = len(steps)
    return Steps(
        engine=np.zeros(n, dtype=np.int32),
        number=np.arange(n, dtype=np.int64),
        scheduled=begin - 10 * US,
        launched=begin,
        finished=end,
        delivered=end + 20 * US,
        context_requests=np.array([int(w.context > 0) for w in steps], dtype=np.int32),
        context_tokens=np.array([w.context for w in steps], dtype=np.int32),
        generation_requests=np.array([w.generation for w in steps], dtype=np.int32),
        generation_tokens=np.array([w.generation for w in steps], dtype=np.int32),
        kv_tokens=np.array([w.kv for w in steps], dtype=np.int64),
        kv_usage=np.full(n, np.nan),
        preempted=np.zeros(n, dtype=np.int32),
        mapping=np.zeros(n, dtype=np.uint8),
        confidence=np.zeros(n),
        elapsed=np.full(n, UNKNOWN),
    )


def capture(
    steps: Steps,
    work: StepWork,
    ranks: Sequence[Rank],
    *,
    requests: Requests | None = None,
    participation: Participation | None = None,
    pauses: Pauses | None = None,
    engine: str = "vllm",
) -> Capture:
    empty64, empty32 = np.empty(0, np.int64), np.empty(0, np.int32)
    requests = requests if requests is not None else requests_table(0)
    return Capture(
        id="0123456789abcdef",
        name="test",
        engine=engine,
        files=(),
        ranks=ranks,
        steps=steps,
        work=work,
        requests=requests,
        participation=participation
        if participation is not None
        else Participation(
            empty32, empty32, empty32, empty32, np.empty(0, np.uint8), np.empty(0, np.uint8), np.empty(0)
        ),
        tokens=TokenTimes(np.zeros(len(requests.number) + 1, dtype=np.int64), empty64),
        lines=Lines(empty64, empty64, empty64, [], [], [], [], [], empty32, empty32, empty32, empty32),
        pauses=pauses if pauses is not None else Pauses(empty64, empty64, empty64, [], [], []),
        samples=Samples(empty64, empty64, [], [], [], empty64),
        collectives=Collectives(empty32, empty64, empty32, empty32, empty32, empty64, empty64, empty64, empty32),
    )


def requests_table(n: int, **columns: Any) -> Requests:
    """``n`` requests of which nothing is known but ``columns``."""
    nothing = np.full(n, UNKNOWN, dtype=np.int64)
    uncounted = np.full(n, -1, dtype=np.int32)
    plain = Requests(
        number=np.arange(1, n + 1, dtype=np.int32),
        engine_id=[f"r{i}" for i in range(n)],
        client_id=[""] * n,
        trace_id=[""] * n,
        client_start=nothing,
        received=nothing,
        queued=nothing,
        scheduled=nothing,
        first_token=nothing,
        last_token=nothing,
        finished=nothing,
        client_first=nothing,
        client_end=nothing,
        itl_max=nothing,
        itl_max_at=nothing,
        queue_ns=nothing,
        prompt_tokens=uncounted,
        output_tokens=uncounted,
        cached_tokens=uncounted,
        preemptions=uncounted,
        engine=np.zeros(n, dtype=np.int32),
        failed=np.zeros(n, dtype=np.uint8),
        tokenized=nothing,
        finish_reason=[""] * n,
    )
    return replace(plain, **columns)
