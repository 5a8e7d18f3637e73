"""The steps of a capture as numbers, for methods that learn: durations against those of the capture's own like steps, so that
what is learned on one service says something about another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.data.tree import Tree
from teller_core.judge.intervals import overlaps
from teller_core.judge.prepare import Case

FLOOR = 100_000.0
"""ns: two durations below a tenth of a millisecond are alike: a clock's and a scheduler's grain."""
COUNTERS = (
    "run_ns",
    "run_queue_wait_ns",
    "pressure_cpu_some_us",
    "pressure_io_some_us",
    "pressure_memory_some_us",
    "cgroup_throttled_us",
    "involuntary_switches",
    "voluntary_switches",
    "write_bytes",
    "machine_busy_ns",
)
UNIT: dict[str, float] = {"ns": 1.0, "us": 1e3, "switches": 1e6, "bytes": 100.0}
"""ns of a step that one unit stands for: a switch for a millisecond, 10 MB/s for all of the step."""
PAUSES = ("gc", "thread_lag", "stop_signal")
TIMES = ("took", "before", "wait", "run", "out")
WORK = ("context", "generation", "kv", "prefill", "mixed")
RANKS = ("rank_spread", "rank_wait")
PROFILE = ("spans", "work", "silence", "device", "largest")
NAMES = (*TIMES, *WORK, *COUNTERS, *PAUSES, *(f"front {kind}" for kind in PAUSES), *RANKS, *PROFILE)


@dataclass(frozen=True)
class StepFeatures:
    """``value`` float64 [steps, NAMES], NaN for what nobody recorded. ``took`` int64 ns, UNKNOWN; ``phase``: as ``Steps.phases``;
    ``profiled`` bool: operators were recorded of it.
    """

    value: Float64
    took: Int64
    phase: Sequence[str]
    profiled: Mask

    def column(self, name: str) -> Float64:
        """float64 a step."""
        return self.value[:, NAMES.index(name)]


def step_features(case: Case) -> StepFeatures:
    """What was recorded of every step. Nothing of what our own methods make of it."""
    steps, phase = case.capture.steps, case.capture.steps.phases()
    took = np.where(case.took != UNKNOWN, case.took, UNKNOWN)
    times = [took, _before(case), *_stages(case)]
    columns = [relative(column, phase) for column in times]
    columns += [_logged(column.astype(np.float64)) for column in (steps.context_tokens, steps.generation_requests)]
    columns.append(_logged(steps.kv_tokens.astype(np.float64)))
    columns += [np.array([name == wanted for name in phase], dtype=np.float64) for wanted in ("prefill", "mixed")]
    columns += [*_counted(case), *_paused(case), *_between_ranks(case), *_profile(case, phase)]
    return StepFeatures(np.column_stack(columns), took, phase, case.profiled)


def relative(ns: Int64, phase: Sequence[str]) -> Float64:
    """float64: the log of each duration over the median of those of its phase; NaN for UNKNOWN."""
    known = ns != UNKNOWN
    log = np.log(np.where(known, ns, 0).clip(0) + FLOOR)
    of = np.array(phase, dtype=object)
    out = np.full(len(ns), np.nan)
    for name in set(phase):
        mine = known & (of == name)
        if mine.any():
            out[mine] = log[mine] - np.median(log[mine])
    return out


def _before(case: Case) -> Int64:
    """int64 ns: how long nothing ran before each step."""
    gap = np.full(len(case.begin), UNKNOWN, dtype=np.int64)
    for engine in case.engines.values():
        if len(engine.step) > 1:
            gap[engine.step[1:]] = engine.after[:-1]
    return gap


def _stages(case: Case) -> list[Int64]:
    """int64 ns: from scheduled to launched, from launched to finished, from finished to delivered."""
    steps = case.capture.steps
    moments = (steps.scheduled, steps.launched, steps.finished, steps.delivered)
    return [
        np.where((low != UNKNOWN) & (high != UNKNOWN) & (high >= low), high - low, UNKNOWN)
        for low, high in pairwise(moments)
    ]


def _logged(count: Float64) -> Float64:
    return np.where(count >= 0, np.log1p(count.clip(0)), np.nan)


def _window(case: Case) -> tuple[Int64, Int64, Mask]:
    """The time from the end of the step before to the end of each step: what struck between two steps delays the later one."""
    known = (case.begin != UNKNOWN) & (case.stop != UNKNOWN) & (case.stop >= case.begin)
    before = _before(case)
    low = np.where(known, case.begin - np.where(before != UNKNOWN, before, 0), 0)
    return low, np.where(known, case.stop, 1), known


def _counted(case: Case) -> list[Float64]:
    """float64: the growth of each counter beside a step, as a share of its time, logged."""
    low, high, known = _window(case)
    columns: list[Float64] = []
    for name in COUNTERS:
        counter = case.counters.get(name)
        if counter is None:
            columns.append(np.full(len(low), np.nan))
            continue
        grown = counter.growth(low, high).clip(0) * UNIT[name.rpartition("_")[2]]
        columns.append(np.where(known, np.log1p(grown / np.maximum(high - low, 1)), np.nan))
    return columns


def _paused(case: Case) -> list[Float64]:
    """float64: the share of a step's time in which processes stood still, by kind: those that compute, those that answer."""
    low, high, known = _window(case)
    return [
        np.where(known, overlaps(spans[kind], low, high) / np.maximum(high - low, 1), np.nan)
        for spans in (case.pauses, case.front_pauses)
        for kind in PAUSES
    ]


def _between_ranks(case: Case) -> list[Float64]:
    """float64: how far apart the ranks' times of a step are (log), and the share of it that they waited for one another."""
    steps, work, met = len(case.begin), case.capture.work, case.capture.collectives
    least, most = np.full(steps, np.inf), np.full(steps, -np.inf)
    lasted = np.log((work.stop - work.start).astype(np.float64) + FLOOR)
    np.minimum.at(least, work.step, lasted)
    np.maximum.at(most, work.step, lasted)
    several = np.bincount(work.step, minlength=steps) > 1
    spread = np.where(several, np.where(several, most, 0.0) - np.where(several, least, 0.0), np.nan)
    known = (met.step >= 0) & (met.wait != UNKNOWN)
    waited = np.bincount(met.step[known], weights=met.wait[known], minlength=steps)
    there = np.bincount(met.step[known], minlength=steps) > 0
    timed = there & (case.took != UNKNOWN)
    return [spread, np.where(timed, np.log1p(waited / np.maximum(case.took, 1)), np.nan)]


def _profile(case: Case, phase: Sequence[str]) -> list[Float64]:
    """float64 of profiled steps, all ranks together, against those of their phase: spans, time of outermost work, what no such
    work covers, device time, the largest own time.
    """
    steps = len(case.begin)
    sums = np.zeros((len(PROFILE), steps), dtype=np.int64)
    for position, rank in enumerate(case.capture.ranks):
        mine = np.flatnonzero((case.capture.work.rank == position) & case.detailed)
        if rank.tree is None or not len(mine):
            continue
        for step, *values in _measured(rank.tree, case, mine):
            sums[:4, step] += values[:4]
            sums[4, step] = max(sums[4, step], values[4])
    return [relative(np.where(case.profiled, row, UNKNOWN), phase) for row in sums]


def _measured(tree: Tree, case: Case, mine: Int64) -> list[tuple[int, ...]]:
    work, own = case.capture.work, tree.self_time()
    device = np.append(0, np.cumsum(np.where(tree.trace.on_device, tree.trace.dur, 0)))
    rows: list[tuple[int, ...]] = []
    for at in mine.tolist():
        low, high = int(work.row[at]), int(work.row_stop[at])
        lasted = int(work.stop[at] - work.start[at])
        busy = min(
            int(own[low:high][~tree.trace.on_device[low:high] & (tree.trace.layer[low:high] >= 3)].sum()), lasted
        )
        largest = int(own[low:high].max(initial=0))
        rows.append((int(work.step[at]), high - low, busy, lasted - busy, int(device[high] - device[low]), largest))
    return rows
