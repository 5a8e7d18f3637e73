"""The steps of a capture as numbers, for what learns: durations against those of the capture's own like steps, so that what is
learned on one service says something about another. Nothing of what our own methods make of it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from teller_core.data.sheets import COUNTERS, GROUPS, PAUSES
from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.intervals import overlaps
from teller_core.judge.prepare import Case

FLOOR = 100_000.0
"""ns: two durations below a tenth of a millisecond are alike: a clock's and a scheduler's grain."""
UNIT: dict[str, float] = {"ns": 1.0, "us": 1e3, "switches": 1e6, "bytes": 100.0}
"""ns of a step that one unit stands for: a switch for a millisecond, 10 MB/s for all of the step."""
TIMES = tuple(f"times.{name}" for name in GROUPS["times"])
WORK = tuple(f"work.{name}" for name in ("context", "generation", "kv", "prefill", "mixed"))
HOST = tuple(f"host.{name}" for name in COUNTERS)
STOOD = tuple(f"pauses.{name}" for name in PAUSES)
FRONT_STOOD = tuple(f"pauses.front {name}" for name in PAUSES)
RANKS = ("ranks.spread", "ranks.wait")
PROFILE = tuple(f"profile.{name}" for name in ("spans", "work", "silence", "device", "largest"))
NAMES = (*TIMES, *WORK, *HOST, *STOOD, *FRONT_STOOD, *RANKS, *PROFILE)
"""The columns of :func:`step_numbers`, by their names in a sheet."""


def step_numbers(case: Case, at: Int64 | None = None) -> Float64:
    """float64 [steps, NAMES] of the steps at ``at``, of all by default; NaN for what nobody recorded."""
    rows = np.arange(len(case.begin)) if at is None else at
    steps, phase = case.capture.steps, phases(case)
    columns = [column[rows] for column in case.once("relative times", _relative_times)]
    columns += [
        _logged(column[rows].astype(np.float64)) for column in (steps.context_tokens, steps.generation_requests)
    ]
    columns.append(_logged(steps.kv_tokens[rows].astype(np.float64)))
    columns += [
        np.array([phase[row] == wanted for row in rows.tolist()], np.float64) for wanted in ("prefill", "mixed")
    ]
    low, high, known = window(case, rows)
    columns += [*_counted(case, low, high, known), *_paused(case, low, high, known)]
    columns += [column[rows] for column in (*case.once("between ranks", _between_ranks), *profile_totals(case))]
    return np.column_stack(columns)


def phases(case: Case) -> Sequence[str]:
    """As ``Steps.phases``, told once a capture."""
    return case.once("phases", lambda case: case.capture.steps.phases())


def relative(ns: Int64, phase: Sequence[str]) -> Float64:
    """float64: the log of each duration over the median of those of its phase; NaN for UNKNOWN."""
    of = np.array(phase, dtype=object)
    out = np.full(len(ns), np.nan)
    for name in set(phase):
        out[of == name] = centered(ns[of == name])
    return out


def centered(value: Int64, floor: float = FLOOR) -> Float64:
    """float64: the log over the median of the known values; NaN for UNKNOWN. ``floor``: what is below it is alike."""
    known = value != UNKNOWN
    out = np.full(len(value), np.nan)
    if known.any():
        log = np.log(value[known].clip(0) + floor)
        out[known] = log - np.median(log)
    return out


def _relative_times(case: Case) -> list[Float64]:
    return [relative(column, phases(case)) for column in (case.took, before(case), *_stages(case))]


def before(case: Case) -> Int64:
    """int64 ns: how long nothing ran before each step, UNKNOWN."""
    return case.once("before", _before)


def _before(case: Case) -> Int64:
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


class Stretch(NamedTuple):
    """int64 ns ``low`` to ``high``, and whether each is ``known``."""

    low: Int64
    high: Int64
    known: Mask


def window(case: Case, at: Int64) -> Stretch:
    """The time from the end of the step before to the end of each step: what struck between two steps delays the later one."""
    begin, stop, gap = case.begin[at], case.stop[at], before(case)[at]
    known = (begin != UNKNOWN) & (stop != UNKNOWN) & (stop >= begin)
    low = np.where(known, begin - np.where(gap != UNKNOWN, gap, 0), 0)
    return Stretch(low, np.where(known, stop, 1), known)


def _counted(case: Case, low: Int64, high: Int64, known: Mask) -> list[Float64]:
    """float64: the growth of each counter beside a step, as a share of its time, logged."""
    columns: list[Float64] = []
    for name in COUNTERS:
        counter = case.counters.get(name)
        if counter is None:
            columns.append(np.full(len(low), np.nan))
            continue
        grown = counter.growth(low, high).clip(0) * UNIT[name.rpartition("_")[2]]
        columns.append(np.where(known, np.log1p(grown / np.maximum(high - low, 1)), np.nan))
    return columns


def _paused(case: Case, low: Int64, high: Int64, known: Mask) -> list[Float64]:
    """float64: the share of a step's time in which processes stood still, by kind: those that compute, those that answer."""
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


def profile_totals(case: Case) -> list[Float64]:
    """float64 a step, NaN of those without a profile: all ranks together, against those of their phase: spans, time of outermost
    work, what no such work covers, device time, the largest own time.
    """
    return case.once("profile totals", _profile)


def _profile(case: Case) -> list[Float64]:
    steps = len(case.begin)
    sums = np.zeros((len(PROFILE), steps), dtype=np.int64)
    for position, rank in enumerate(case.capture.ranks):
        mine = np.flatnonzero((case.capture.work.rank == position) & case.detailed)
        if rank.tree is None or not len(mine):
            continue
        for step, *values in _measured(rank.tree, case, mine):
            sums[:4, step] += values[:4]
            sums[4, step] = max(sums[4, step], values[4])
    return [relative(np.where(case.profiled, row, UNKNOWN), phases(case)) for row in sums]


def _measured(tree: Tree, case: Case, mine: Int64) -> list[tuple[int, ...]]:
    work, own = case.capture.work, tree.self_time()
    device = np.append(0, np.cumsum(np.where(tree.trace.on_device, tree.trace.dur, 0)))
    rows: list[tuple[int, ...]] = []
    for at in mine.tolist():
        low, high = int(work.row[at]), int(work.row_stop[at])
        lasted = int(work.stop[at] - work.start[at])
        host = ~tree.trace.on_device[low:high] & (tree.trace.layer[low:high] >= Layer.OPERATOR)
        busy = min(int(own[low:high][host].sum()), lasted)
        largest = int(own[low:high].max(initial=0))
        rows.append((int(work.step[at]), high - low, busy, lasted - busy, int(device[high] - device[low]), largest))
    return rows
