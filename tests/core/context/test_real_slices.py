"""Slices of real steps, over all their ranks: within their budget, with the chain to each suspected span or a word on it."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.context.dependencies import Met, StepSpans, across, dependencies
from teller_core.context.moments import Moment
from teller_core.context.pages import slice_report
from teller_core.context.slicing import price
from teller_core.context.waits import CLOCKS
from teller_core.data.assessment import Candidates
from teller_core.data.capture import Capture
from teller_core.data.graph import Kind
from teller_core.data.report import SliceReport
from teller_core.data.table import UNKNOWN, take
from teller_core.data.trace import Layer
from tests.core.judge.captured import ROOT, TRIMMED, rebuilt
from tests.core.judge.service import MS, Work, service

TRACES = ROOT.parent / "shared" / "traces" / "kineto"
FOLDERS = sorted(path for path in TRACES.glob("*") if path.is_dir())
ROOMS = ((700, None), (4_000, None), (40_000, 40), (10_000_000, None))
"""Tokens and nodes. The last has room for everything."""
MISSED = re.compile(r"(\d+) suspected spans? found no room")


def parts(made: Capture, step: int) -> list[StepSpans]:
    """The rows of a step on every rank; where no step is known, all rows that were recorded."""
    if step < 0:
        trees = [(at, rank.tree) for at, rank in enumerate(made.ranks) if rank.tree is not None]
        return [StepSpans(at, 0, tree, made.ranks[at].shift) for at, tree in trees if len(tree)]
    out: list[StepSpans] = []
    for i in np.flatnonzero((made.work.step == step) & (made.work.row >= 0)).tolist():
        low, high, at = int(made.work.row[i]), int(made.work.row_stop[i]), int(made.work.rank[i])
        tree = made.ranks[at].tree
        assert tree is not None
        out.append(StepSpans(at, low, tree.part(low, high), made.ranks[at].shift))
    return out


def moment(made: Capture, step: int) -> Moment:
    if step < 0:
        made, step = service([Work(profiled=False)]), 0
        none = np.full(1, UNKNOWN, dtype=np.int64)
        steps = replace(made.steps, scheduled=none, launched=none, finished=none, delivered=none)
        made = replace(made, steps=steps, work=take(made.work, np.empty(0, dtype=np.int64)))
    return Moment(
        step=step,
        steps=take(made.steps, np.array([step])),
        work=take(made.work, made.work.step == step),
        participation=take(made.participation, made.participation.step == step),
        pauses=made.pauses,
    )


def suspects(spans: list[StepSpans], judged: Candidates) -> Candidates:
    """The spans that numbers found and, on every rank, the largest, the largest of each thread and stream, and some others."""
    chosen: list[tuple[int, int]] = list(zip(judged.rank.tolist(), judged.row.tolist(), strict=True))
    for mine in spans:
        trace, n = mine.tree.trace, len(mine.tree)
        own = np.argsort(-mine.tree.self_time(), kind="stable")
        lanes = [int(rows[np.argmax(trace.dur[rows])]) for rows in map(np.flatnonzero, per_lane(trace.lane))]
        rows = {*own[:2].tolist(), *lanes[:4], n // 3, n - 1}
        chosen += [(mine.rank, mine.first + row) for row in sorted(rows)]
    chosen = list(dict.fromkeys(chosen))
    n = len(chosen)
    return Candidates(
        step=np.zeros(n, dtype=np.int32),
        rank=np.array([rank for rank, _ in chosen], dtype=np.int32),
        row=np.array([row for _, row in chosen], dtype=np.int32),
        name=["x"] * n,
        layer=np.zeros(n, dtype=np.uint8),
        value=np.full(n, MS, dtype=np.int64),
        normal=np.full(n, MS, dtype=np.int64),
        residual=np.full(n, 5.0),
        excess=np.arange(n, 0, -1, dtype=np.int64),
        baseline=np.full(n, -1, dtype=np.int32),
        method=["residual"] * n,
    )


def per_lane(lane: np.ndarray) -> list[np.ndarray]:
    return [lane == one for one in np.unique(lane)]


def steps_of(made: Capture) -> list[int]:
    """The first, the longest and the last step with a profile; -1 where no step is known."""
    work = take(made.work, made.work.row >= 0)
    if not len(work.step):
        return [-1]
    return sorted({int(work.step[0]), int(work.step[np.argmax(work.stop - work.start)]), int(work.step[-1])})


def shown_rows(said: SliceReport) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for line in said.lines:
        rank, _, row = line.handle.partition(":")
        if rank.isdigit():
            found.setdefault(int(rank), set()).add(int(row))
    return found


def check(said: SliceReport, spans: list[StepSpans], found: Candidates, room: tuple[int, int | None]) -> None:
    tokens, nodes = room
    assert sum(price(line) for line in said.lines) <= said.tokens <= tokens
    assert nodes is None or len(said.lines) <= nodes
    assert said.events == sum(len(mine.tree) for mine in spans)
    spanned = sum(line.count for line in said.lines if line.handle.partition(":")[0].isdigit())
    assert said.cut == said.events - spanned
    shown, missed = shown_rows(said), 0
    for mine in spans:
        own = {row - mine.first for row in shown.get(mine.rank, set())}
        layer = mine.tree.trace.layer
        for row in (found.row[found.rank == mine.rank] - mine.first).tolist():
            missed += row not in own
            assert row not in own or {a for a in mine.tree.ancestors(row) if layer[a] != Layer.PYTHON} <= own
    told = MISSED.search(said.note)
    assert missed == (int(told[1]) if told else 0)
    assert tokens < ROOMS[-1][0] or missed == 0


def check_edges(spans: list[StepSpans], met: Met) -> None:
    for mine in spans:
        graph = dependencies(mine.tree)
        graph.check()
        start, end = mine.tree.trace.start, mine.tree.trace.end
        waits = graph.of(Kind.WAIT)
        assert np.all(end[graph.before[waits]] <= end[graph.after[waits]] + CLOCKS)
        order = graph.of(Kind.STREAM, Kind.ORDER, Kind.CHILD)
        assert np.all(start[graph.before[order]] <= start[graph.after[order]])
    across(spans, met).check()


def check_capture(folder: Path) -> int:
    """How many reports were checked."""
    made, numbers = rebuilt(folder)
    count = 0
    for step in steps_of(made):
        spans = parts(made, step)
        judged = take(numbers.candidates, numbers.candidates.step == step)
        found = suspects(spans, judged)
        met = Met(take(made.collectives, made.collectives.step == step), made.meetings)
        check_edges(spans, met)
        for tokens, nodes in ROOMS:
            said = slice_report(
                moment(made, step),
                spans,
                found,
                capture="c",
                budget=tokens,
                nodes=nodes,
                text=lambda n: n[:80],
                met=met,
            )
            check(said, spans, found, (tokens, nodes))
            count += 1
    return count


def test_slices_of_two_ranks_of_a_service_keep_their_budget_and_hold_the_chains() -> None:
    assert check_capture(TRIMMED / "vllm_2node") == 3 * len(ROOMS)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FOLDERS or [None], ids=lambda path: path.name if path else "absent")
def test_slices_of_real_traces_keep_their_budget_and_hold_the_chains_on_every_rank(folder: Path | None) -> None:
    if folder is None:
        pytest.skip("no real traces beside the checkout (../shared)")
    assert check_capture(folder) >= len(ROOMS)
