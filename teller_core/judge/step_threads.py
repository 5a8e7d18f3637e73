"""What the threads that steps wait for did with their time: whether they ran, waited for a processor, or slept.

A recording keeps the counters of one thread a process: that which runs its steps, or decides on them. Time in which the engine
was at work and this thread neither ran nor waited for a processor, it slept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import STEP_THREAD
from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.judge.intervals import Spans, overlaps, union
from teller_core.judge.levels import near, thread_level
from teller_core.judge.prepare import CALM, EAGER, Case, Counter, counter, quantile

DROWSY = 0.2
"""Share of its steps' time that a thread may sleep and still be awake as a rule."""
SHORT = 0.2
"""A thread that waits for a processor for this share of its time is short of it, however usual that is here."""
QUEUED = 2.0
"""A thread that sleeps waits for others of its process that wait for a processor, where these wait so many times as long: one
that it does not wait for may do so as well.
"""
LEVELS = ("waited", "asleep", "ran", "queue")
"""The counters of a thread whose calm level may be known from elsewhere."""
RAN, WAITED, HELD = "run_ns", "run_queue_wait_ns", "cgroup_throttled_us"


@dataclass(frozen=True)
class Thread:
    """One thread of ``process`` (``host/pid``) and, beside it, the others. Each a counter in ns: it ``waited`` for a processor,
    it was ``asleep`` while the engine was to be at work; the others ``ran``, and waited in a ``queue``. ``held`` (us): its
    control group was held back by a quota, which kernels count as waiting or as sleeping; None where that was not sampled.
    """

    process: str
    waited: Counter
    asleep: Counter
    ran: Counter
    queue: Counter
    held: Counter | None


class Doing(NamedTuple):
    """float64 ns a stretch, each beyond its calm level: the thread ``waited`` for a processor, itself or for others of its
    process that did; it was ``asleep``; ``crowded``: the part of it in which others of its process ran.
    """

    waited: Float64
    asleep: Float64
    crowded: Float64


class Threads(NamedTuple):
    """Those that ``run`` steps, and those that ``decide`` on them: the same ones where one process does both."""

    run: Sequence[Thread]
    decide: Sequence[Thread]

    def doing(self, low: Int64, high: Int64, between: Mask) -> Doing | None:
        """What was done in each ``[low, high)``, ``between`` two steps or in one: of several threads, by the one that was held
        up longest. None where no thread was sampled.
        """
        if not (self.run and self.decide):
            return None
        inside, outside = _slowest(self.run, low, high), _slowest(self.decide, low, high)
        # What decides is asked for in a step as well: it hands over, and takes what comes out. Asleep it may be waiting for it.
        waited = np.maximum(inside.waited, outside.waited)
        return Doing(waited, *(np.where(between, b, a) for a, b in zip(inside[1:], outside[1:], strict=True)))

    @property
    def awake(self) -> bool:
        """Whether those that run steps hardly sleep in them as a rule: whatever they wait for, they wait for it awake."""
        return bool(self.run) and all(thread.asleep.calm < DROWSY * 1e9 for thread in self.run)


def step_threads(case: Case) -> Threads:
    """The threads that were sampled, measured once a capture."""
    return case.once("step threads", _measure)


def thread_levels(case: Case) -> dict[str, float]:
    """The calm levels of the threads of each role, the mean where it has several, by name (see :mod:`levels`)."""
    threads = step_threads(case)
    role = dict(zip(case.capture.samples.process, case.capture.samples.role, strict=True))
    found: dict[str, list[float]] = {}
    for thread in {each.process: each for each in (*threads.run, *threads.decide)}.values():
        for name in LEVELS:
            found.setdefault(thread_level(role[thread.process], name), []).append(getattr(thread, name).calm)
    return {name: float(np.mean(each)) for name, each in found.items()}


def _measure(case: Case) -> Threads:
    samples = case.capture.samples
    role: dict[str, str] = {}
    rows: dict[tuple[str, str], list[int]] = {}
    wanted = {f"{STEP_THREAD}{RAN}", f"{STEP_THREAD}{WAITED}", RAN, WAITED, HELD}
    for row, (name, process) in enumerate(zip(samples.name, samples.process, strict=True)):
        if name in wanted:
            rows.setdefault((process, name), []).append(row)
            role[process] = samples.role[row]
    active = [*(engine.activity for engine in case.engines.values()), _served(case)]
    work = union(*(np.concatenate([getattr(one, edge) for one in active]) for edge in Spans._fields))
    found: dict[str, Thread] = {}
    for process, what in role.items():
        given = [rows.get((process, name)) for name in (f"{STEP_THREAD}{RAN}", f"{STEP_THREAD}{WAITED}", RAN, WAITED)]
        if len(work.start) and all(given):
            threads = [counter(case.capture, np.array(each), case.engines) for each in given]
            quota = rows.get((process, HELD))
            held = counter(case.capture, np.array(quota), case.engines) if quota else None
            found[process] = _usual(case, what, replace(_thread(case, threads, work, held), process=process))
    decide = [thread for process, thread in found.items() if role[process] == "engine"]
    run = [thread for process, thread in found.items() if role[process] == "worker"]
    return Threads(run or decide, decide or run)


def _usual(case: Case, role: str, thread: Thread) -> Thread:
    """``thread`` with the levels that were learned of its role elsewhere."""
    named = {name: getattr(thread, name) for name in LEVELS}
    levels = {name: near(case.assessment, thread_level(role, name), one.calm) for name, one in named.items()}
    return replace(thread, **{name: replace(one, calm=levels[name]) for name, one in named.items()})


def _served(case: Case) -> Spans:
    """When some request had begun and was not done: an engine is to be at work then, also between steps that are far apart."""
    part, none = case.capture.participation, np.iinfo(np.int64).max
    timed = (case.begin[part.step] != UNKNOWN) & (case.stop[part.step] != UNKNOWN)
    request, step = part.request[timed], part.step[timed]
    first, last = np.full(len(case.starts), none), np.full(len(case.starts), UNKNOWN, np.int64)
    np.minimum.at(first, request, case.begin[step])
    np.maximum.at(last, request, case.stop[step])
    known = last != UNKNOWN
    return union(first[known], last[known])


def _thread(case: Case, given: Sequence[Counter], work: Spans, held: Counter | None) -> Thread:
    run, wait, all_run, all_wait = given
    start, stop = run.start, run.stop
    length, busy = stop - start, overlaps(work, start, stop)
    waited = wait.growth(start, stop)
    slept = (busy - run.delta - waited).clip(0)
    asleep = np.where(busy > 0, slept * length / np.maximum(busy, 1), 0.0)
    ran, queue = all_run.growth(start, stop) - run.delta, all_wait.growth(start, stop) - waited
    return Thread(
        process="",
        waited=_ordinary(case, wait, SHORT),
        asleep=_counter(case, start, stop, asleep),
        ran=_ordinary(case, _counter(case, start, stop, ran)),
        queue=_counter(case, start, stop, queue),
        held=held,
    )


def _counter(case: Case, start: Int64, stop: Int64, grown: Float64) -> Counter:
    grown = grown.clip(0)
    rate = grown / np.maximum(stop - start, 1) * 1e9
    return Counter(start, stop, np.rint(grown).astype(np.int64), rate, quantile(rate, CALM, start, stop, case.engines))


def _ordinary(case: Case, one: Counter, most: float = np.inf) -> Counter:
    """With what is no more than usual for its calm level: threads run and wait in a service where all is well, too."""
    usual = quantile(one.rate, 0.5, one.start, one.stop, case.engines)
    return replace(one, calm=min(EAGER * usual, most * 1e9))


def _beyond(one: Counter, low: Int64, high: Int64) -> Float64:
    return np.maximum(one.growth(low, high) - one.calm * (high - low) / 1e9, 0.0)


def _slowest(threads: Sequence[Thread], low: Int64, high: Int64) -> Doing:
    found = [_doing(thread, low, high) for thread in threads]
    if len(found) == 1:
        return found[0]
    most = np.argmax([one.waited + one.asleep for one in found], axis=0)
    return Doing(*(np.choose(most, list(columns)) for columns in zip(*found, strict=True)))


def waits(thread: Thread, low: Int64, high: Int64) -> Float64:
    """float64 ns: how long it waited for a processor, or was held back by a quota, in each stretch beyond its calm level."""
    return _doing(thread, low, high).waited


def _doing(thread: Thread, low: Int64, high: Int64) -> Doing:
    waited, asleep = _beyond(thread.waited, low, high), _beyond(thread.asleep, low, high)
    if thread.held is not None:
        held = 1000 * _beyond(thread.held, low, high)
        waited, asleep = np.maximum(waited, held), np.maximum(asleep - held, 0.0)
    queue = _beyond(thread.queue, low, high)
    queued = np.where(queue >= QUEUED * asleep, asleep, 0.0)  # it waits for threads that wait for a processor
    asleep = asleep - queued
    return Doing(waited + queued, asleep, np.minimum(asleep, _beyond(thread.ran, low, high)))
