"""What one step went through, row by row: its stages, what stood still, and on every rank its spans by layer and depth."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Pauses, Rank
from teller_core.data.linked import StepSpans
from teller_core.data.plain_names import MODULE
from teller_core.data.replays import captured_rows
from teller_core.data.report_findings import Finding
from teller_core.data.report_timeline import Drawn, Kind
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN, Int32, Int64, Mask
from teller_core.data.trace import Layer, Trace
from teller_core.data.tree import Tree
from teller_core.tell.layout import milliseconds, plain
from teller_core.tell.names import shorten
from teller_core.tell.timeline.marks import Lane, Thing, Told, lane, not_drawn
from teller_core.tell.timeline.still import pause_lanes, paused

STAGES = (
    ("scheduled", "launched", "scheduled"),
    ("launched", "finished", "running"),
    ("finished", "delivered", "done"),
)
"""The times of a step, and what it is called from each to the next."""


class Shown(NamedTuple):
    """How a layer is drawn: its name there, what its marks are, how deep within it rows go."""

    layer: Drawn
    kind: Kind
    label: str
    depth: int


LAYERS: dict[Layer, Shown] = {
    Layer.ENGINE: Shown("engine", "annotation", "the engine's ranges", 2),
    Layer.PYTHON: Shown("python", "python", "Python", 3),
    Layer.OPERATOR: Shown("operator", "operator", "operators", 3),
    Layer.RUNTIME: Shown("runtime", "runtime", "calls of the driver", 1),
    Layer.KERNEL: Shown("kernel", "kernel", "kernels", 1),
    Layer.COMMUNICATION: Shown("communication", "communication", "communication", 1),
}
LANES = 3
"""Threads, or streams, of a rank that are drawn of each layer: those on which it took most."""
RANKS = 8
"""Ranks that are drawn, those with what is blamed first."""


class StepRows(NamedTuple):
    """The rows of a step, its beginning and its length in ns (UNKNOWN where nobody timed it), how many spans have no row, and in
    words what else has none.
    """

    lanes: list[Lane]
    begin: int
    length: int
    left_out: int
    note: str


def step_lanes(
    step: int,
    steps: Steps,
    spans: Sequence[StepSpans],
    *,
    pauses: Pauses,
    ranks: Sequence[Rank],
    findings: Sequence[Finding],
) -> StepRows:
    """The rows of one step. ``steps`` has its row alone; ``spans``: its rows on every rank with a profile."""
    spans = [mine for mine in spans if len(mine.tree)]
    begin, end = _extent(steps, spans)
    if UNKNOWN in (begin, end) or end <= begin:
        return StepRows([], UNKNOWN, UNKNOWN, 0, "")
    found = [_blamed(step, mine, findings) for mine in spans]
    order = sorted(range(len(spans)), key=lambda at: (not found[at].any(), spans[at].rank))[:RANKS]
    drawn = [(spans[at], found[at]) for at in sorted(order, key=lambda at: spans[at].rank)]
    still, pauses_left = pause_lanes(list(paused(pauses, begin, end)))
    lanes = [*_above(step, steps, (begin, end), findings=findings, drawn=drawn), *still]
    left_out = sum(len(mine.tree) for mine in spans) - sum(len(mine.tree) for mine, _ in drawn)
    for mine, blamed in drawn:
        rank = ranks[mine.rank]
        group = f"rank {rank.rank}" if len(spans) > 1 else f"process {rank.pid}"
        below, missed = _rank_lanes(mine, blamed, plain(f"{group}, {rank.role or 'unknown role'}", 60))
        lanes += below
        left_out += missed
    note = not_drawn((len(spans) - len(drawn), "rank"), (pauses_left, "pause"))
    return StepRows([one for one in lanes if len(one.start)], begin, end - begin, left_out, note)


def _extent(steps: Steps, spans: Sequence[StepSpans]) -> tuple[int, int]:
    """ns: from the earliest time known of the step to the latest."""
    times = [int(getattr(steps, name)[0]) for name in ("scheduled", "launched", "finished", "delivered")]
    times = [time for time in times if time != UNKNOWN]
    for mine in spans:
        low = int(mine.tree.trace.start.min()) + mine.shift
        times += [low, low + mine.tree.trace.lasted]
    return min(times, default=UNKNOWN), max(times, default=UNKNOWN)


def _above(
    step: int,
    steps: Steps,
    time: tuple[int, int],
    *,
    findings: Sequence[Finding],
    drawn: Sequence[tuple[StepSpans, Int32]],
) -> Iterator[Lane]:
    """What stands above the ranks: what was found here, the step's stages."""
    begin, end = time
    things: list[Thing] = []
    numbers: list[int] = []
    for number, finding in enumerate(findings, 1):
        if finding.step != step:
            continue
        low, high = _where(number, drawn) or (begin, end)
        things.append((low, high - low, "found", f"{number}. {finding.title}"))
        numbers.append(number)
    yield lane("what was found", "found", "", things, numbers)
    stages: list[Thing] = []
    for early, late, text in STAGES:
        low, high = int(getattr(steps, early)[0]), int(getattr(steps, late)[0])
        if UNKNOWN not in (low, high) and low < high:
            stages.append((low, high - low, "stage", f"{text}, {milliseconds((high - low) / 1e6)}"))
    yield lane("engine", "engine", f"step {step}", stages)


def _where(number: int, drawn: Sequence[tuple[StepSpans, Int32]]) -> tuple[int, int] | None:
    """From the first to the last span that the finding blames, None where it blames none."""
    low: list[int] = []
    high: list[int] = []
    for mine, blamed in drawn:
        rows = np.flatnonzero(blamed == number)
        low += (mine.tree.trace.start[rows] + mine.shift).tolist()
        high += (mine.tree.trace.end[rows] + mine.shift).tolist()
    return (min(low), max(high)) if low else None


def _blamed(step: int, mine: StepSpans, findings: Sequence[Finding]) -> Int32:
    """int32 a row: the number of the first finding whose evidence names it, 0 for none."""
    blamed = np.zeros(len(mine.tree), dtype=np.int32)
    for number, finding in reversed(list(enumerate(findings, 1))):
        for item in finding.evidence:
            rank, _, row = (item.span or "").partition(":")
            if item.step in (None, step) and rank == str(mine.rank) and row.isdecimal():
                at = int(row) - mine.first
                if 0 <= at < len(blamed):
                    blamed[at] = number
    return blamed


def _rank_lanes(mine: StepSpans, blamed: Int32, group: str) -> tuple[list[Lane], int]:
    """The rows of one rank, layer by layer, and how many of its spans have none."""
    tree = mine.tree
    trace = tree.trace
    shown = trace.dur > 0
    shown &= ~captured_rows(tree)
    modules = np.array([name.startswith(MODULE) for name in trace.names], dtype=np.bool_)[trace.name]
    frames = (trace.layer == Layer.PYTHON) & ~modules
    if (modules & (trace.layer == Layer.PYTHON)).any():
        shown &= ~frames
    total = int(np.count_nonzero(shown))
    lanes: list[Lane] = []
    drawn = 0
    for layer, how in LAYERS.items():
        of_layer: Mask = shown & (trace.layer == layer)
        if not of_layer.any():
            continue
        deep = _inside(tree, of_layer)
        took = np.bincount(trace.lane[of_layer & (deep == 0)], trace.dur[of_layer & (deep == 0)], len(trace.lanes))
        used: list[int] = [at for at in np.argsort(-took, kind="stable").tolist() if took[at] > 0][:LANES]
        for at in used:
            for depth in range(how.depth):
                rows = np.flatnonzero(of_layer & (trace.lane == at) & (deep == depth))
                drawn += len(rows)
                thread = f", {plain(trace.lanes[at].thread, 24)}" if len(used) > 1 else ""
                lanes.append(_lane(mine, rows, blamed, group, how, label="" if depth else f"{how.label}{thread}"))
    return lanes, total - drawn


def _inside(tree: Tree, chosen: Mask) -> Int32:
    """int32: in how many ``chosen`` rows of its own lane and above it each row is; right for chosen rows alone."""
    depth = np.zeros(len(tree), dtype=np.int32)
    for at in np.unique(tree.trace.lane[chosen]).tolist():
        rows = np.flatnonzero(chosen & (tree.trace.lane == at))
        change = np.zeros(len(tree) + 1, dtype=np.int64)
        np.add.at(change, rows + 1, 1)
        np.subtract.at(change, np.maximum(tree.stop[rows], rows + 1), 1)
        depth[rows] = np.cumsum(change)[rows]
    return depth


def _lane(mine: StepSpans, rows: Int64, blamed: Int32, group: str, how: Shown, *, label: str) -> Lane:
    trace = mine.tree.trace
    rows = rows[np.argsort(trace.start[rows], kind="stable")]
    return Lane(
        group,
        how.layer,
        label,
        trace.start[rows] + np.int64(mine.shift),
        trace.dur[rows],
        Told(lambda _: how.kind, rows),
        Told(lambda row: f"{shorten(_name(trace, row), 60)}, {milliseconds(int(trace.dur[row]) / 1e6)}", rows),
        blamed[rows].astype(np.int64),
    )


def _name(trace: Trace, row: int) -> str:
    return trace.names[int(trace.name[row])]
