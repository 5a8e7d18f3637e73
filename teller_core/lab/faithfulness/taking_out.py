"""A capture without what is marked in it, as if that had not been recorded; and as many others of like size and duration."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from teller_core.data.capture import Capture, Samples
from teller_core.data.table import UNKNOWN, Int64, Mask, take
from teller_core.judge.prepare import Case
from teller_core.judge.robust import weighted
from teller_core.lab.benchmark.cut import without_spans
from teller_core.lab.faithfulness.cited import UNTOLD, Marks, known, times

STEP_TIMES = ("scheduled", "launched", "finished", "delivered", "elapsed")


def others(case: Case, marks: Marks, stretch: tuple[int, int], seed: int) -> Marks:
    """For each row of ``marks`` another one of its table that is not marked: of a duration as near as can be, in octaves; of
    those as near, one that touches the request's own ``stretch`` (ns) before others; of these by chance. Each once: fewer where
    there are not as many.
    """
    random = np.random.default_rng(seed)
    return {name: _matched(case, name, mask, stretch, random) for name, mask in marks.items()}


def _matched(case: Case, name: str, mask: Mask, stretch: tuple[int, int], random: np.random.Generator) -> Mask:
    start, stop = times(case, name)
    octave = np.log2(np.maximum(stop - start, 1).astype(np.float64)).round()
    away = ~((start < stretch[1]) & (stop > stretch[0]))
    left = np.flatnonzero(known(case, name) & ~mask)
    left = left[random.permutation(len(left))]
    found = np.zeros(len(mask), np.bool_)
    for row in np.flatnonzero(mask).tolist()[: len(left)]:
        best = int(np.argmin(2 * np.abs(octave[left] - octave[row]) + away[left]))
        found[left[best]] = True
        left = np.delete(left, best)
    return found


def without(capture: Capture, marks: Marks) -> Capture:
    """``capture`` without what is marked. Rows of steps and requests stay, their times or cells are unknown. A counter has rows
    only where it grew, so that one that is gone would say that it did not: it shows what that counter usually does instead.
    """
    spans = {int(name.partition(".")[2]): mask for name, mask in marks.items() if name.startswith("spans.")}
    if spans:
        capture = without_spans(capture, spans)
    changed: dict[str, Any] = {}
    for name in ("pauses", "collectives", "lines", "readings"):
        if name in marks:
            changed[name] = take(getattr(capture, name), ~marks[name])
    if "samples" in marks:
        end = capture.steps.end()
        changed["samples"] = _usual(capture.samples, marks["samples"], np.sort(end[end != UNKNOWN]))
    changed |= _steps(capture, marks)
    for name in ("requests", "participation"):
        if cells := _cells(getattr(capture, name), name, marks):
            changed[name] = replace(getattr(capture, name), **cells)
    return replace(capture, **changed)


def _steps(capture: Capture, marks: Marks) -> dict[str, Any]:
    """When steps ran, what is known of them, and their profiles."""
    steps, work, none = capture.steps, capture.work, np.zeros(len(capture.steps.engine), np.bool_)
    untimed, bare = marks.get("steps", none), marks.get("profiles", none)
    cells = _cells(steps, "cells", marks)
    cells |= {column: np.where(untimed, UNKNOWN, getattr(steps, column)) for column in STEP_TIMES}
    profiled = ~bare[work.step]
    kept = replace(
        work,
        row=np.where(profiled, work.row, np.int32(-1)),
        row_stop=np.where(profiled, work.row_stop, np.int32(-1)),
    )
    return {"steps": replace(steps, **cells), "work": take(kept, ~untimed[work.step])}


def _cells(table: Any, name: str, marks: Marks) -> dict[str, Any]:
    """The columns of ``table`` of which cells are marked, without these."""
    found: dict[str, Any] = {}
    for key, mask in marks.items():
        of, _, column = key.partition(".")
        if of == name and column:
            value = getattr(table, column)
            untold = np.nan if value.dtype.kind == "f" else UNKNOWN if value.dtype == np.int64 else UNTOLD
            found[column] = np.where(mask, value.dtype.type(untold), value)
    return found


def _usual(samples: Samples, gone: Mask, ended: Int64) -> Samples:
    """``samples`` in which the ``gone`` rows show the rate that their counter had, at most, in half of the steps, which ``ended``
    then (ns, ascending); they are left out where that is none. Over steps, and not over the time, of which a fault has most.
    """
    steps = np.searchsorted(ended, samples.stop) - np.searchsorted(ended, samples.start)
    rows = _by_counter(samples)
    sampled: dict[str, int] = {}
    for (_, process), mine in rows.items():
        sampled[process] = max(sampled.get(process, 0), int(steps[mine].sum()))
    delta, length = samples.delta.copy(), samples.stop - samples.start
    for (_, process), mine in rows.items():
        struck, left = mine[gone[mine]], mine[~gone[mine]]
        if len(struck):
            rate = np.append(samples.delta[left] / np.maximum(length[left], 1), 0.0)
            # It has rows only where it grew: in the other steps it did not.
            still = max(sampled[process] - int(steps[mine].sum()), 0)
            weight = np.append(steps[left], still).astype(np.float64)
            usual = weighted(rate, weight, 0.5) if weight.any() else 0.0
            delta[struck] = np.rint(usual * length[struck]).astype(np.int64)
    return take(replace(samples, delta=delta), ~gone | (delta > 0))


def _by_counter(samples: Samples) -> Mapping[tuple[str, str], Int64]:
    rows: dict[tuple[str, str], list[int]] = {}
    for row, key in enumerate(zip(samples.name, samples.process, strict=True)):
        rows.setdefault(key, []).append(row)
    return {key: np.array(mine, np.int64) for key, mine in rows.items()}
