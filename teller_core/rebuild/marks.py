"""Steps that a trace of device work marks by their numbers: kernel, launch and step belong together without any clock.

The recorder tells CUPTI which step runs on a thread, so that every call in it carries the step's number; what the call launched
hangs under it in the tree. Executions of workers have the same numbers.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int64
from teller_core.data.tree import ROOT, Tree
from teller_core.rebuild.ranges import range_max

PRODUCER = "cupti_records"
NO_STEP = -1
CLOCK_NS = 1_000_000
"""Calls that lie outside of their execution by more than this show that the two clocks differ."""


class Marked(NamedTuple):
    """One row a marked step, in the tree's order; int64. The step's rows are ``range(row, row_stop)``.

    ``begin``, ``stop``: from its first call to the end of its last one on the host; ``finished``: the end of what it launched.
    """

    number: Int64
    row: Int64
    row_stop: Int64
    begin: Int64
    stop: Int64
    finished: Int64


def marked(tree: Tree, problems: Counter[str]) -> Marked | None:
    """The steps that the calls of ``tree`` carry; None where they carry none.

    Problems: ``steps_interleaved``: calls of a step lie on both sides of another one's; the longer part stands for it.
    """
    if tree.trace.origin.producer != PRODUCER:
        return None
    number = _numbers(tree)
    at = np.flatnonzero(number != NO_STEP)
    if not len(at):
        return None
    roots = np.flatnonzero(tree.parent == ROOT)
    root = np.searchsorted(roots, at, side="right") - 1
    lane = tree.trace.lane[roots[root]]
    own = lane == np.argmax(np.bincount(lane))  # one thread runs the steps of a process
    root, number = root[own], number[at[own]]
    first = np.flatnonzero(np.append(True, number[1:] != number[:-1]))
    last = np.append(first[1:], len(number)) - 1
    runs = number[first], root[first], root[last]
    best = _longest(*runs)
    problems["steps_interleaved"] += len(first) - len(best)
    number, low, high = (column[best] for column in runs)
    row, row_stop = roots[low].astype(np.int64), tree.stop[roots[high]].astype(np.int64)
    trace = tree.trace
    stop = trace.start[roots[high]] + trace.dur[roots[high]]
    return Marked(number, row, row_stop, trace.start[row], stop, range_max(trace.end, row, row_stop))


def _numbers(tree: Tree) -> Int64:
    """int64: the step that each row carries, NO_STEP for none."""
    told = np.array([*map(_step, tree.trace.args), NO_STEP], dtype=np.int64)
    return told[tree.trace.arg]  # -1, no argument, is the last


def _step(text: str) -> int:
    if not text.startswith('{"step":'):
        return NO_STEP
    number = json.loads(text)["step"]
    return number if isinstance(number, int) and 0 <= number < 1 << 62 else NO_STEP


def _longest(number: Int64, low: Int64, high: Int64) -> Int64:
    """Which of the runs stand for their numbers: the longest of each, in their order."""
    order = np.lexsort((low - high, number))
    first = np.append(True, number[order][1:] != number[order][:-1])
    return np.sort(order[first])


class Joined(NamedTuple):
    """int64 columns. ``step``, ``start``, ``stop``: where a marked step ran, by its execution's clock. ``of``: its row."""

    step: Int64
    start: Int64
    stop: Int64
    of: Int64


def join_marked(found: Marked, ran: Mapping[int, tuple[int, int, int]], problems: Counter[str]) -> Joined:
    """The steps of ``found``. ``ran``: by number, the step, start and stop of the worker's execution.

    Their times are those of the execution, and end when the last of their work did. Problems: ``marks_without_step`` (numbers
    that no execution has), ``device_clock_apart`` (steps whose calls lie outside of their execution: the trace's times are moved
    by what brings them in).
    """
    numbers: Sequence[int] = found.number.tolist()
    of = np.array([k for k, number in enumerate(numbers) if number in ran], dtype=np.int64)
    problems["marks_without_step"] += len(numbers) - len(of)
    times = np.array([ran[numbers[k]] for k in of.tolist()], dtype=np.int64).reshape(-1, 3)
    step, start, stop = times[:, 0], times[:, 1], times[:, 2]
    shift, outside = _shift(start - found.begin[of], stop - found.stop[of])
    problems["device_clock_apart"] += outside
    return Joined(step, start, np.maximum(stop, found.finished[of] + shift), of)


def _shift(least: Int64, most: Int64) -> tuple[int, int]:
    """(ns to add to the trace's times, steps that lie outside without it). Each step allows from ``least`` to ``most``."""
    outside = int(np.count_nonzero((least > CLOCK_NS) | (most < -CLOCK_NS)))
    if 2 * outside <= len(least):
        return 0, outside
    low, high = int(np.median(least)), int(np.median(most))
    return (low if low > 0 else high), outside
