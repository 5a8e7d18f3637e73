"""Rules for causes before, after and around the steps: the front end, the way to it, and what a log line tells."""

import json
from typing import NamedTuple

import numpy as np

from teller_core.data.report import EvidenceItem
from teller_core.data.steps import Lines
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge.breakdown import phase_ns
from teller_core.judge.evidence import COUNTED, HINTED, RECORDED, Clue, cost, count, line_item, step_item
from teller_core.judge.intervals import Spans, overlap, span, union
from teller_core.judge.life import SECOND
from teller_core.judge.prepare import EMPTY_ROWS, Case
from teller_core.judge.scene import Scene, over_work

COLD_STEPS = 3
"""An engine's first steps, in which it compiles, allocates and connects."""
COLD_TIMES = 5
"""A first step is cold where it takes this many times what its work asks for later."""
COLD_WAIT = 1_000_000_000
"""ns that a request must have waited for an engine's very first step before that is called a cold start."""
FRONT_END, WAY = ("received", "queued"), ("client_start", "received")
"""The two times between which a request is in the front end, and on the way to it."""
WAY_BACK = ("finished", "client_end")
"""And between which its answer is on the way back."""
LEAST_PEERS = 4
"""Fewer requests than this have no median to be compared with."""
LAG_TOKENS = 16
"""Fewer tokens than this show no trend of delivery."""
COMPILES = ("vllm.jit", "sglang.jit", "torch.recompiled")
"""Log rules of lines that name a compilation while requests are served."""
MOSTLY = 0.5
"""Share of a pause, or of a lag, that another explanation must have to be one."""
LUMP, LUMPS = 4, 0.8
"""Tokens that come together, by so many at least, and the share of such lumps that must be of one size."""
TOGETHER = 2_000_000
"""ns: tokens that come no farther apart came together."""
NEAR = 1_000_000_000
"""ns around a log line in which a slow step is taken to be what the line speaks of, where the line's clock is no finer."""


def input_processing(scene: Scene) -> Clue | None:
    """The front end kept it longer than it keeps most requests."""
    if scene.metric == "itl_max":
        return _stream_paused(scene)
    table, life = scene.case.capture.requests, scene.life
    ns, usual = _beyond(scene, FRONT_END)
    if ns <= 0 or UNKNOWN in (life.received, life.queued) or scene.metric in ("tpot", "itl_max") or not scene.span:
        return None
    handed = _handed(scene)
    kept, ns = handed - life.received, ns - (life.queued - handed)
    paused = _paused(scene, life.received, handed)
    if ns <= paused:
        return None
    evidence = [
        cost("longer in the front end than most requests", ns - paused, kind="decision"),
        cost("time in the front end before the engine can have had it", kept, usual, kind="decision"),
    ]
    tokenized = int(table.tokenized[life.request])
    if life.received <= tokenized <= life.queued:
        evidence.append(cost("of it, until its prompt was tokens", tokenized - life.received, kind="decision"))
    evidence += _loop_lag(scene, life.received, handed)
    if int(table.prompt_tokens[life.request]) >= 0:
        evidence.append(count("prompt tokens", int(table.prompt_tokens[life.request]), unit="tokens"))
    # Of an engine of which only durations are known it is not known either that it did not get it between two steps.
    sure = COUNTED if len(life.step) else HINTED
    return Clue("frontend.input_processing", ns - paused, sure, evidence, layer="request")


def _stream_paused(scene: Scene) -> Clue | None:
    """The event loop ran late in the gap between two of its tokens while it was busy with another request's input."""
    late = scene.case.once("loop lag", lambda case: _kind(case, "loop_lag"))
    ns = scene.during(late) - _paused(scene, scene.low, scene.high) if scene.span else 0
    if ns <= 0:
        return None
    table = scene.case.capture.requests
    known = (table.received != UNKNOWN) & (table.queued != UNKNOWN)
    busy = np.where(known, np.minimum(table.queued, scene.high) - np.maximum(table.received, scene.low), 0)
    busy[scene.life.request] = 0
    other = int(np.argmax(busy))
    if busy[other] < MOSTLY * ns:
        return None
    evidence = [
        cost("the event loop ran late between two of its tokens", ns, kind="pause"),
        cost("another request was in the front end meanwhile", int(busy[other]), kind="decision", scope="capture"),
    ]
    if int(table.prompt_tokens[other]) >= 0:
        evidence.append(count("its prompt tokens", int(table.prompt_tokens[other]), unit="tokens", scope="capture"))
    return Clue("frontend.input_processing", ns, COUNTED, evidence, layer="request")


def _handed(scene: Scene) -> int:
    """ns: the earliest time at which the front end may have been done with it.

    An engine takes new requests in between two steps. One that it took in there may have lain before it since the last step
    began, if that was one of several in a row; one that it took in inside a step, by the front end's word, did not.
    """
    life, engine = scene.life, scene.life.engine
    if engine is None or not len(engine.step):
        return life.queued
    last = int(np.searchsorted(engine.begin, life.queued, "right")) - 1
    if last < 0 or last + 1 >= len(engine.step) or int(engine.stop_reach[last]) > life.queued:
        return life.queued
    steps, after = scene.case.capture.steps, int(engine.step[last + 1])
    if int(steps.generation_requests[after]) == 0:  # it waited for requests, and takes one at once
        return life.queued
    tokenized = int(scene.case.capture.requests.tokenized[life.request])
    return max(life.received, min(int(engine.begin[last]), life.queued), min(tokenized, life.queued))


def detok_stream(scene: Scene) -> Clue | None:
    """Its tokens arrived later and later after the steps that made them."""
    life = scene.life
    times = scene.case.capture.tokens.of(life.request)
    made = life.stop[np.flatnonzero(life.stop >= life.first)] if life.first != UNKNOWN else life.stop[:0]
    if len(times) < LAG_TOKENS or len(times) != len(made) or scene.metric == "ttft":
        return None
    lag = times - made
    quarter = len(lag) // 4
    early, late = int(np.median(lag[:quarter])), int(np.median(lag[-quarter:]))
    middle = int(np.median(lag[quarter:-quarter]))
    if not early < middle < late or _outside(scene) >= MOSTLY * (late - early):
        return None
    evidence = [
        cost("how much later than its first tokens the last ones arrived", late - early),
        cost("tokens arrived after their steps, at the end", late, early),
        count("tokens", len(times), unit="tokens"),
    ]
    return Clue("frontend.detok_stream", late - early, COUNTED, evidence, layer="request")


def gateway_overhead(scene: Scene) -> Clue | None:
    """It spent longer on the way to the server than most requests."""
    life = scene.life
    if scene.metric == "itl_max":
        return _lumps(scene)
    before, usual = _beyond(scene, WAY)
    if scene.metric != "ttft" and (back := _outside(scene)) > max(before, 0):
        return _way_back(back)
    if before <= 0 or scene.metric == "tpot":
        return None
    before -= _paused(scene, life.begin, life.received)
    if before <= 0:
        return None
    whole = phase_ns(scene.phases, "before_server")
    evidence = [
        cost("longer on the way to the server than most requests", before),
        cost("time between its caller's start, or a gateway's receipt, and the server's", whole, usual),
    ]
    return Clue("frontend.gateway_overhead", before, COUNTED, evidence, layer="request")


def _outside(scene: Scene) -> int:
    """ns that its answer took from the server to its caller beyond most requests, 0 where that is not known."""
    table, request = scene.case.capture.requests, scene.life.request
    ns = _beyond(scene, WAY_BACK)[0]
    return max(ns - _paused(scene, int(table.finished[request]), int(table.client_end[request])), 0) if ns > 0 else 0


def _way_back(ns: int) -> Clue:
    evidence = [cost("its caller had the end of the answer later than most, after the server was done", ns)]
    return Clue("frontend.gateway_overhead", ns, COUNTED, evidence, layer="request")


def _lumps(scene: Scene) -> Clue | None:
    """Its tokens came in lumps of one size, though its steps made them one after the other."""
    times, life = scene.case.capture.tokens.of(scene.life.request), scene.life
    cuts = np.flatnonzero(np.diff(times) > TOGETHER) + 1
    sizes = np.diff(np.concatenate([[0], cuts, [len(times)]]))[:-1]  # the last one is what was left
    inside = int(((life.stop > scene.low) & (life.stop < scene.high)).sum()) if scene.span else 0
    if len(sizes) < 2 or inside < LUMP or np.median(sizes) < LUMP or (sizes == np.median(sizes)).mean() < LUMPS:
        return None
    usual = int(np.median(np.diff(life.stop))) if len(life.stop) > 1 else 0
    ns = scene.span - usual
    evidence = [
        cost("the gap, beyond what its steps were apart", ns, usual),
        count("tokens that came at once, each time", int(np.median(sizes)), unit="tokens"),
        count("steps that made tokens for it in the gap", inside, unit="steps"),
    ]
    return Clue("frontend.gateway_overhead", ns, COUNTED, evidence, layer="request") if ns > 0 else None


def jit_compile(scene: Scene) -> Clue | None:
    """The log names a compilation while it ran, and a step of that time took longer than its work asks for."""
    lines = scene.case.capture.lines
    rows = sorted(row for rule in COMPILES for row in scene.lines(rule))
    if not rows:
        return None
    held = scene.holds
    near = np.zeros(len(held.low), np.bool_)
    for row in rows:
        time, width = int(lines.time[row]), max(int(lines.after[row]), 0)
        near |= (held.low <= time + width) & (held.high >= time - max(width, NEAR))
    ns = int(held.rest[near].sum()) if held.judged else over_work(scene)
    step = int(held.step[near][np.argmax(held.rest[near])]) if near.any() else None
    evidence = [cost("steps stretched around the compilation", ns, kind="step", scope="its_steps")]
    evidence += [line_item(scene, row, "a compilation in the log") for row in rows[:3]]
    return Clue("cuda.jit_compile", ns, COUNTED if held.judged else HINTED, evidence, step=step, layer="runtime")


def cold_start(scene: Scene) -> Clue | None:
    """The engine ran its very first steps for it, or had not begun when it came."""
    engine, life = scene.life.engine, scene.life
    lines = scene.case.capture.lines
    ready = [
        row for row in (*scene.lines("vllm.init"), *scene.lines("sglang.ready")) if int(lines.time[row]) > life.begin
    ]
    if engine is None or not len(engine.step) or not scene.span:
        return None
    first = span(life.begin, int(engine.begin[0]))
    waited = overlap(first, scene.low, scene.high)
    held = scene.holds
    cold = np.isin(held.step, engine.step[:COLD_STEPS]) & (held.took > COLD_TIMES * np.maximum(held.base, 1))
    cold &= ~held.gap & (held.base != UNKNOWN)
    ns = int(held.rest[cold].sum()) + (waited if waited >= COLD_WAIT else 0)
    if ns <= 0:
        return None
    evidence = [cost("before and in the engine's first steps", ns, kind="step", scope="its_steps")]
    evidence += [
        step_item(int(held.step[row]), "one of its first steps", int(held.took[row]), int(held.base[row]))
        for row in np.flatnonzero(cold)[:1].tolist()
    ]
    evidence += [line_item(scene, row, "the engine says that it is ready") for row in ready[:1]]
    sure = RECORDED if ready else COUNTED if cold.any() else HINTED
    step = int(held.step[cold][0]) if cold.any() else int(engine.step[0])
    return Clue("lifecycle.cold_start", ns, sure, evidence, step=step, layer="engine")


def graph_miss(scene: Scene) -> Clue | None:
    """The log says that its decode steps ran without a graph, while others ran with one."""
    lines = scene.case.capture.lines
    without = [row for row in scene.lines("sglang.decode") if _graph(lines, row) == "False"]
    if not without or not scene.case.once("graphs", _graphs):
        return None
    ns = over_work(scene)
    evidence = [
        cost("beyond what its work predicts", ns),
        count("log lines without a graph", len(without), unit="lines", kind="log_line", scope="capture"),
    ]
    evidence += [line_item(scene, row, "decode without a graph") for row in without[:3]]
    return Clue("cuda.graph_miss", ns, HINTED, evidence, layer="runtime")


def _paused(scene: Scene, low: int, high: int) -> int:
    """ns in which the front end stood still for a reason of its own, or the recorder's."""
    pauses = [*scene.case.front_pauses.values(), scene.case.stalls]
    return sum(overlap(spans, low, high) for spans in pauses)


def _loop_lag(scene: Scene, low: int, high: int) -> list[EvidenceItem]:
    """How late an event loop ran what was due: the wait of all that it serves."""
    late = scene.case.once("loop lag", lambda case: _kind(case, "loop_lag"))
    ns = overlap(late, low, high)
    return [cost("of it, the event loop ran late", ns, kind="pause")] if ns > 0 else []


def _kind(case: Case, kind: str) -> Spans:
    pauses = case.capture.pauses
    mine = np.array([row for row, name in enumerate(pauses.kind) if name == kind], np.int64)
    return union(pauses.start[mine], pauses.start[mine] + pauses.dur[mine])


def _graph(lines: Lines, row: int) -> str | None:
    return json.loads(lines.fields[row]).get("graph")


def _graphs(case: Case) -> bool:
    """Whether the log says of any decode step that it ran with a graph."""
    return any(
        _graph(case.capture.lines, row) == "True" for row in case.lines.get("sglang.decode", EMPTY_ROWS).tolist()
    )


class _Took(NamedTuple):
    """What requests took between two times: ``ns`` int64 a request, UNKNOWN where it is not known, and the median."""

    ns: Int64
    usual: int


def _took(case: Case, way: tuple[str, str]) -> _Took:
    low, high = (getattr(case.capture.requests, name) for name in way)
    known = (low != UNKNOWN) & (high != UNKNOWN)
    known &= (low % SECOND != 0) & (high % SECOND != 0)  # whole seconds of a coarse log would be noise
    if known.sum() < LEAST_PEERS:
        return _Took(np.full(len(known), UNKNOWN), 0)
    took = np.where(known, high - low, UNKNOWN)
    return _Took(took, int(np.median(took[known])))


def _beyond(scene: Scene, way: tuple[str, str]) -> tuple[int, int]:
    """How much longer than the median request this one took between two times, and the median; 0 where that is not known."""
    took = scene.case.once(f"took {way}", lambda case: _took(case, way))
    mine = int(took.ns[scene.life.request])
    return (mine - took.usual, took.usual) if mine != UNKNOWN else (0, 0)
