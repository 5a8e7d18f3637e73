"""The critical path: which operators the time of a step goes to, a call that waits for the device giving way to its work."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from teller_core.data.table import Float64, Int64
from teller_core.judge.intervals import overlaps, union
from teller_core.judge.localize.waits import BLOCKING
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.methods.zscore import z_scores
from teller_core.lab.evaluation.operator_times import (
    LEAST_WIDTH,
    Profiled,
    Totals,
    by_excess,
    ordered,
    profiled,
    summed,
)
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen

GRID: Sequence[Options] = tuple({"top": k, "excess": over} for over in (0, 1) for k in (1, 3, 5))
"""How many operators of the path count for a step's score, and whether operators are ordered by their time or by what it is over
the usual."""


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Options:
    """Nothing but the options."""
    return options


def score(options: Options, seen: Seen) -> Float64:
    """float64 a step: the time of its first operators on the path, in robust standard deviations; NaN without a profile."""
    found = path(seen)
    out = np.full(len(seen.case.begin), np.nan)
    if not len(found.step):
        return out
    largest = -np.sort(-_value(found, options, seen), axis=1)[:, : int(options["top"])].sum(axis=1)
    phase = [seen.steps.phase[int(step)] for step in found.step]
    out[found.step] = z_scores(np.log(np.maximum(largest, 0.0) + 1_000.0), phase, LEAST_WIDTH)
    return out


def path(seen: Seen) -> Totals:
    """ns by operator on the critical path of each profiled step, all ranks together."""
    return seen.once("path", lambda seen: summed([(part, _on_path(part)) for part in profiled(seen)]))


def _on_path(part: Profiled) -> Int64:
    """int64 ns a row: own time on the thread that does most of the work; in calls that wait, the device's work instead."""
    trace, work = part.tree.trace, part.work
    rows = slice(part.low, part.high)
    device = trace.on_device[rows]
    own = np.where(work, part.own, 0)
    lane = trace.lane[rows]
    host = work & ~device
    busy = np.bincount(lane[host], weights=own[host], minlength=1)
    waits = np.array([bool(BLOCKING.search(name)) for name in trace.names], dtype=np.bool_)[trace.name[rows]] & host
    start, end = trace.start[rows], trace.end[rows]
    waited = overlaps(union(start[waits], end[waits]), start, end)
    return np.where(device, waited, np.where(host & (lane == int(np.argmax(busy))) & ~waits, own, 0))


def _value(found: Totals, options: Options, seen: Seen) -> Float64:
    return by_excess(found, seen.steps.phase) if options["excess"] else found.own


def _operators(options: Any, seen: Seen) -> list[list[str]]:
    found = path(seen)
    return ordered(found, _value(found, options, seen), len(seen.case.begin))


METHOD = method_of(
    Scorer("path", "the first operators of each step's critical path", learn, score, GRID, operators=_operators)
)
