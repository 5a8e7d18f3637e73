"""What recorded steps met besides their work: the machine, other programs, faults; and the same without some of it."""

import numpy as np

from teller_core.data.table import Float64, Int64, Mask
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.costs import features, took
from teller_core.judge.reschedule.simulate import MOST_TIMES, NEAR, Background, Setting

LEAST_NS = 1_000
"""What no saving takes from a step: it is computed after all."""
NEVER = int(np.iinfo(np.int64).max)


def alone(ran: Batches) -> Mask:
    """bool a step: nobody who was served before it is served in it or later: the engine had nothing to do, but for newcomers."""
    served = np.flatnonzero(ran.first >= 0)
    size = len(ran.step) + 2
    change = np.bincount(ran.first[served] + 1, minlength=size) - np.bincount(ran.last[served] + 1, minlength=size)
    return np.cumsum(change)[: len(ran.step)] == 0


def before(ran: Batches, depth: int) -> Int64:
    """int64 ns a step: the end of the step ``depth`` before it, no sooner than the decision before it; its own where none is."""
    ends = np.concatenate([ran.decided[:depth], ran.ended[: max(len(ran.ended) - depth, 0)]])[: len(ran.ended)]
    return np.maximum(ends, np.concatenate([ran.decided[:1], ran.decided[:-1]]))


def ready(setting: Setting) -> Int64:
    """int64 ns a step: when the scheduler could have decided on it: an earlier step had ended, and somebody was there."""
    ran, came = setting.ran, setting.came
    served = np.flatnonzero(ran.first >= 0)
    next_ = np.full(len(ran.step) + 1, NEVER)
    np.minimum.at(next_, ran.first[served], came.time[served] + came.delay)
    next_ = np.minimum.accumulate(next_[::-1])[::-1][: len(ran.step)]
    free = before(ran, setting.limits.depth)
    free[: setting.limits.depth] = np.minimum(next_, free)[: setting.limits.depth]
    return np.where(alone(ran), np.maximum(free, np.minimum(next_, ran.decided)), free)


def without(setting: Setting, turnaround: Int64, saved: Int64) -> tuple[Float64, Int64]:
    """ns that each step, and the turnaround before it, would have taken. ``saved`` int64 ns a step of ``setting.ran``: how much
    sooner it would have ended after the one before it, negative for later. It is taken from what the step needed beyond what
    its work predicts, then from the turnaround beyond the usual, at last from the step itself.
    """
    taken, usual = took(setting.ran).astype(np.float64), setting.costs.predict(features(setting.ran))
    less = saved.astype(np.float64)
    inside = np.minimum(less, np.maximum(taken - usual, 0))
    between = np.minimum(less - inside, np.maximum(turnaround - np.median(turnaround), 0)) if len(less) else less
    between = np.floor(between)
    return np.maximum(taken - (less - between), np.minimum(taken, LEAST_NS)), turnaround - between.astype(np.int64)


def background(setting: Setting, saved: Int64 | None = None) -> Background:
    """What the steps met, less what is ``saved``: see :func:`without`."""
    ran = setting.ran
    recorded = ran.decided - ready(setting)
    nothing = np.zeros(len(recorded), dtype=np.int64)
    taken, turnaround = without(setting, recorded, nothing if saved is None else saved)
    usual = np.maximum(setting.costs.predict(features(ran)), 1.0)
    level = np.minimum(taken / usual, MOST_TIMES)
    quick = int(np.median(recorded)) if len(recorded) else 0
    cycle = float(np.median(np.diff(ran.ended))) if len(ran.ended) > 1 else 0.0
    return Background(
        level=np.log(level),
        extra=taken - usual * level,
        ready=ran.decided - recorded,
        turnaround=turnaround,
        usual=quick,
        near=round(NEAR * cycle),
    )
