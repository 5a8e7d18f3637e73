"""Rules for threads that steps wait for and that slept: in a call of their own, or because all of their process stood still.

The recorder wakes up a thread of its own in every process, again and again. Where a whole process stands still for ``h``, that
thread is late by ``h`` at most, and mostly by less; where it stands still for a short time, it is seldom seen to be late.
"""

import numpy as np

from teller_core.data.capture import processes
from teller_core.data.table import Float64, Int64
from teller_core.judge.evidence import SAMPLED, Clue, cost, count
from teller_core.judge.front import NOWHERE
from teller_core.judge.intervals import overlap, overlaps
from teller_core.judge.prepare import Case
from teller_core.judge.rules_host import front_pauses, paused, ways, worst, worst_item
from teller_core.judge.rules_neighbors import operators_grew
from teller_core.judge.scene import Scene
from teller_core.judge.step_threads import step_threads

TICK_NS, SEEN_NS = 125_000_000, 20_000_000
"""How often that thread wakes up, and how late it must be to say so (collect/shim)."""
AS_OFTEN = 0.3
"""A process stood still where it was seen to for this share of what is to be expected of stops as long as these."""
AROUND_NS = 1_000_000_000
"""Before and after a request, the same trouble is looked for: one stop alone is easily missed."""


def blocking_call(scene: Scene) -> Clue | None:
    """Its steps grew by time in which the thread that they wait for slept, while the rest of its process could run."""
    held, case = scene.holds, scene.case
    if not held.judged or case.once("several work", _several) or not step_threads(case).awake:
        return None
    slept = _slept(scene)
    ns = int(slept.sum())
    if ns <= 0 or _stood_still(scene, slept) or case.once("operators grew", operators_grew):
        return None
    evidence = [
        cost("the thread that runs its steps, or decides on them, slept longer than usual", ns, kind="sample",
             scope="its_steps"),
        count("steps and gaps in which it did", int((slept > 0).sum()), unit="steps", scope="its_steps"),
        cost("run-queue wait beyond the calm level", int(scene.beyond_calm("run_queue_wait_ns")), kind="sample",
             scope="capture"),
        *worst_item(scene, slept),
    ]  # fmt: skip
    return Clue("host.blocking_call", ns, SAMPLED * 0.9, evidence, step=worst(scene, slept), layer="python")


def interpreter_lock(scene: Scene) -> Clue | None:
    """All Python threads of a process stood still, and no collection, starvation or storage explains it."""
    held = scene.holds
    late = np.minimum(held.rest, overlaps(scene.case.pauses["thread_lag"], held.low, held.high))
    slept = _slept(scene)
    if held.watched and not scene.case.once("several work", _several):
        late = np.maximum(late, slept) if _stood_still(scene, slept) else np.minimum(late, np.maximum(slept, late // 2))
    ns = int(late.sum()) + _front(scene)
    rows = paused(scene, "thread_lag")
    if ns <= 0 or not (rows or late.any()):
        return None
    pauses = scene.case.capture.pauses
    evidence = [
        cost("time in which the threads of a process stood still", ns, kind="pause"),
        count("times a waiting thread woke late", len(rows), unit="times", kind="pause"),
    ]
    if rows:
        evidence.append(cost("the longest", max(int(pauses.dur[row]) for row in rows), kind="pause"))
    return Clue("host.interpreter_lock", ns, SAMPLED * 0.9, evidence, step=worst(scene, late), layer="python")


def _several(case: Case) -> bool:
    """Whether several processes run the steps: then each sleeps while it waits for the others."""
    ranks = case.capture.ranks
    return len({who for who, rank in zip(processes(ranks).tolist(), ranks, strict=True) if rank.role == "worker"}) > 1


def _slept(scene: Scene) -> Int64:
    """int64 ns a hold: the thread slept, and no others of its process ran meanwhile."""
    return scene.holds.asleep - scene.holds.crowded


def _stood_still(scene: Scene, slept: Int64) -> bool:
    """Whether it was the whole process that slept: a thread that does nothing else woke up late about as often as it would."""
    lag = scene.case.pauses["thread_lag"]
    low, high = scene.low - AROUND_NS, scene.high + AROUND_NS
    seen, looked = overlap(lag, low, high), max(high - low, 1) / max(scene.span, 1)
    return (
        seen > 0
        and seen >= AS_OFTEN * float(_expected(slept).sum())
        and seen >= AS_OFTEN * _least(slept) * min(looked, 2.0)
    )


def _expected(slept: Int64) -> Float64:
    """float64 ns: how late a thread that wakes up every TICK_NS is on the average for a stop of each length."""
    return np.where(slept > SEEN_NS, (slept.astype(np.float64) ** 2 - float(SEEN_NS) ** 2) / (2.0 * TICK_NS), 0.0)


def _least(slept: Int64) -> float:
    """ns: what short stops are seen for at least, before they are believed to be of the whole process."""
    return float(slept[slept <= SEEN_NS].sum())


def _front(scene: Scene) -> int:
    """ns that the front end stood still and thereby delayed it."""
    if scene.metric == "itl_max" or scene.front["in"] is NOWHERE:
        return front_pauses(scene, "thread_lag")
    return sum(scene.front[way].stood for way in ways(scene))
