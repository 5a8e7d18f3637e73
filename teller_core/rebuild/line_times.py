"""When steps ran of which nothing but a line tells: the line says how long its step took, its stamp when that was over at
the latest.

One step after another, a step had ended before the next one began. From the stamps and the durations follow the earliest
and the latest end of each: a line that was written late, or whose clock knows whole seconds only, is put right by those
around it. Where an engine runs its steps over one another, that does not follow, and its lines stand as they are.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from teller_core.data.records import Iteration, Recording, known
from teller_core.data.steps import Steps
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.line_of_steps import Slot
from teller_core.rebuild.step_table import FINE_NS

PLACED_NS = 10_000_000
"""A step whose end is known this well may lie beside finer times of its requests."""
OVERLAPPING = 0.9
"""Ends that lie closer together than this share of what the steps took are of steps that ran over one another."""
UPPER = 0.75
"""The quantile of that share: a front end that stood still writes many lines at once."""
STRAYED = 0.1
"""This share of steps that would have ended before their line's second says the same."""


def placed_by_lines(recording: Recording, slots: Sequence[Slot], steps: Steps) -> Steps:
    """``steps`` with the begin (``launched``) and the end (``finished``) of those that only a line with a duration times.

    Stamps finer than FINE_NS place each. Coarser ones do where the end is known to PLACED_NS, or where no caller or span has
    finer times of requests, which a guess would contradict.
    """
    alone = not recording.clients and not recording.spans
    launched, finished = steps.launched.copy(), steps.finished.copy()
    for own in _series(recording, slots, steps):
        lines: list[Iteration] = [recording.iterations[slots[int(step)].iteration] for step in own]
        low = np.array([line.time for line in lines], dtype=np.int64)
        coarse = np.array([line.resolution for line in lines], dtype=np.int64)
        took = steps.elapsed[own]
        first, last = ends(low, low + coarse, took)
        end = np.where(coarse > FINE_NS, first, last)
        sure = (coarse <= FINE_NS) | (last - first <= PLACED_NS) | alone
        launched[own] = np.where(sure, end - took, UNKNOWN)
        finished[own] = np.where(sure, end, UNKNOWN)
    return replace(steps, launched=launched, finished=finished)


def _series(recording: Recording, slots: Sequence[Slot], steps: Steps) -> "list[npt.NDArray[np.intp]]":
    """The steps of each engine's life, in its order, that nothing but a line with a stamp and a duration times."""

    def stamped(slot: Slot) -> bool:
        line = recording.iterations[slot.iteration]
        return known(line.time) and known(line.resolution)

    mine = np.array(
        [known(int(took)) and stamped(slot) for slot, took in zip(slots, steps.elapsed, strict=True)], dtype=np.bool_
    )
    life = np.array([slot.life for slot in slots], dtype=np.int64)
    return [np.flatnonzero(mine & (life == one)) for one in np.unique(life[mine])]


def ends(low: Int64, high: Int64, took: Int64) -> tuple[Int64, Int64]:
    """int64 ns: the earliest and the latest end of each step of one engine, which took ``took`` and whose line was written
    from ``low`` to ``high``. Both are ``high`` where the steps ran over one another.
    """
    work = np.cumsum(took)
    last = work + np.minimum.accumulate((high - work)[::-1])[::-1]
    fine = (high - low) <= FINE_NS
    gaps = high[1:] - low[:-1]
    both = fine[1:] & (took[1:] > 0)
    close = bool(both.any()) and float(np.quantile(gaps[both] / took[1:][both], UPPER)) < OVERLAPPING
    if close or float((last < np.where(fine, UNKNOWN, low)).mean()) > STRAYED:
        return high, high
    last = np.where(fine, last, np.maximum(last, low))
    first = work + np.maximum.accumulate(low - work)
    return np.minimum(first, last), last
