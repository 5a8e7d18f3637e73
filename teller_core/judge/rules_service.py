"""Rules for causes around the steps that a log line, or the beginning of the engine, tells of."""

import json

import numpy as np

from teller_core.data.steps import Lines
from teller_core.data.table import UNKNOWN
from teller_core.judge.evidence import COUNTED, HINTED, RECORDED, Clue, cost, count, line_item, step_item
from teller_core.judge.intervals import overlap, span
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


def _graph(lines: Lines, row: int) -> str | None:
    return json.loads(lines.fields[row]).get("graph")


def _graphs(case: Case) -> bool:
    """Whether the log says of any decode step that it ran with a graph."""
    return any(
        _graph(case.capture.lines, row) == "True" for row in case.lines.get("sglang.decode", EMPTY_ROWS).tolist()
    )
