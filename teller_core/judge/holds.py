"""What held one request up: the time its steps took over what their work asks for, charged once to what explains it.

Every engine step and every long gap between steps from when the engine may have had the request to its last step is a hold, and
so is the time that a worker takes to begin the first of them.
What is over the expected is charged in the order of how directly it was recorded: collections by their own times, other
requests' prompts by their tokens, then waiting for a device and waiting for a processor by counters that were sampled
around the step (the service's own writes first: each also waits to be scheduled again). What no record explains stays ``rest``.
Charges of one hold never add up to more than its overtime.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.steps import Role
from teller_core.data.table import UNKNOWN, Float64, Int64, take
from teller_core.judge.around import slowdown
from teller_core.judge.front import handed
from teller_core.judge.intervals import overlaps
from teller_core.judge.life import Life
from teller_core.judge.prepare import Case, Engine
from teller_core.judge.step_threads import Doing, step_threads

STRETCHED = 0.3
"""A step is held up when it takes this share longer than its work asks for: below it lies everyday noise."""
LASTING = 1.15
"""Or when the steps around it together took this many times what their work asks for: what is noise in one evens out in many."""
PREFILL_MARGIN = 1.5
"""Other requests' prompts may explain up to this many times what their tokens usually cost: long prompts attend to more."""
OPENING_MOST = 300_000_000
"""ns that a profiler needs at most to set itself up in one step; a first step that takes seconds compiles or loads."""
STALLED = 0.3
"""A hold waits for a device when some task did so for this share of its time beyond the calm level."""
CONTENDED = 0.4
"""Where waiting for a processor explains this share of what is left, it is charged whole: who shares a core has less of it
when it runs, too (caches, hyper-threads)."""
BURST_BYTES = 8e6
"""Bytes a second beyond the calm level that a serving process does not write in ordinary logging."""

Bool = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True)
class Holds:
    """One row a hold, by time; int64 columns in ns save where said.

    ``step`` (position of the step, or of the one before a gap), ``gap`` bool, ``own`` bool (it served the request), ``low``,
    ``high``, ``took``, ``base`` (what it would take without the other requests' prompts, UNKNOWN where nobody can say),
    ``others`` (prompt tokens of other requests in the step), ``over`` (took - base, at least 0) and its charges
    ``observed`` (by the recorder: the first steps of a profile), ``collection``, ``prompts``, ``starved``, ``device``,
    ``rest``. Of ``rest``: ``asleep``, while the thread that it waits for slept; and of that ``crowded``, while other threads of
    its process ran. ``judged``: whether overtime could be told at all; ``watched``: whether threads were sampled.
    """

    step: Int64
    gap: Bool
    own: Bool
    low: Int64
    high: Int64
    took: Int64
    base: Int64
    others: Int64
    over: Int64
    observed: Int64
    collection: Int64
    prompts: Int64
    starved: Int64
    device: Int64
    rest: Int64
    asleep: Int64
    crowded: Int64
    judged: bool
    watched: bool

    def where(self, mask: Bool) -> "Holds":
        """The holds that ``mask`` picks."""
        return take(self, mask)


def holds(case: Case, life: Life, since: int, until: int) -> Holds:
    """The holds of one request inside ``[since, until)``, none where its engine or its time in it is unknown."""
    given = handed(case, life) if life.queued != UNKNOWN else UNKNOWN
    arrived = next((time for time in (given, life.received, life.launched) if time != UNKNOWN), UNKNOWN)
    low, high = max(arrived, since), min(life.last, until)
    if life.engine is None or UNKNOWN in (arrived, since, until, life.last) or high <= low:
        return NOTHING
    rows = life.engine.window(low, high)
    raw = _joined(_joined(_steps(case, life, rows), _gaps(life, rows)), _begun_late(case, life, rows))
    return _charged(case, raw, (low, high)) if len(raw.step) else NOTHING


def holds_of_steps(case: Case, engine: Engine) -> tuple[Holds, Int64]:
    """The holds of all that an engine did, whomever it served; and, int64 a hold, the step that it delays: itself, or the one
    behind a gap. What prompts ask for is work of the step: nothing is charged to them.
    """
    if not len(engine.step):
        return NOTHING, _NO_NS
    step = engine.step.astype(np.int64)
    took, expected = case.took[step], case.expected[step]
    known, none = (expected != UNKNOWN) & (took != UNKNOWN), np.zeros(len(step), np.int64)
    ran = _Raw(
        step=step,
        gap=none,
        own=none,
        low=engine.begin,
        high=engine.stop,
        took=np.where(took == UNKNOWN, 0, took),
        base=np.where(known, expected, UNKNOWN),
        others=none,
        extra=none,
    )
    at = np.flatnonzero((engine.after != UNKNOWN) & (engine.after > engine.turnaround_limit))
    stood = _between(engine, at, none[: len(at)])
    owner = np.append(step, step[np.minimum(at + 1, len(step) - 1)])
    raw = _Raw(*(np.append(a, b) for a, b in zip(ran, stood, strict=True)))
    return _charged(case, raw, (int(raw.low.min()), int(raw.high.max()))), owner


_NO_NS, _NO_MARKS = np.empty(0, np.int64), np.empty(0, np.bool_)
NOTHING = Holds(
    step=_NO_NS,
    gap=_NO_MARKS,
    own=_NO_MARKS,
    low=_NO_NS,
    high=_NO_NS,
    took=_NO_NS,
    base=_NO_NS,
    others=_NO_NS,
    over=_NO_NS,
    observed=_NO_NS,
    collection=_NO_NS,
    prompts=_NO_NS,
    starved=_NO_NS,
    device=_NO_NS,
    rest=_NO_NS,
    asleep=_NO_NS,
    crowded=_NO_NS,
    judged=False,
    watched=False,
)
"""Of a request that no step or gap of a known engine can have held up."""


class _Raw(NamedTuple):
    """Holds before anything is charged; all int64. ``extra``: ns that other requests' prompts add by their tokens."""

    step: Int64
    gap: Int64
    own: Int64
    low: Int64
    high: Int64
    took: Int64
    base: Int64
    others: Int64
    extra: Int64


def _steps(case: Case, life: Life, rows: slice) -> _Raw:
    assert life.engine is not None  # the caller looked: for the type checker
    step = life.engine.step[rows].astype(np.int64)
    others = _others(case, life, step)
    took, expected = case.took[step], case.expected[step]
    cost = 0.0 if np.isnan(case.context_cost) else case.context_cost
    extra = np.rint(others * cost).astype(np.int64)
    known = (expected != UNKNOWN) & (took != UNKNOWN)
    took = np.where(took == UNKNOWN, 0, took)
    return _Raw(
        step=step,
        gap=np.zeros(len(step), np.int64),
        own=np.isin(step, life.step).astype(np.int64),
        low=life.engine.begin[rows],
        high=life.engine.stop[rows],
        took=took,
        base=np.where(known, np.maximum(expected - extra, 0), UNKNOWN),
        others=others,
        extra=extra,
    )


def _gaps(life: Life, rows: slice) -> _Raw:
    """Times in which nothing ran for longer than a turnaround needs."""
    assert life.engine is not None  # the caller looked: for the type checker
    engine = life.engine
    after = engine.after[rows]
    at = np.flatnonzero((after != UNKNOWN) & (after > engine.turnaround_limit)) + rows.start
    return _between(engine, at, np.isin(engine.step[at], life.step).astype(np.int64))


def _between(engine: Engine, at: Int64, own: Int64) -> _Raw:
    """The gaps behind the rows ``at`` of the engine."""
    none = np.zeros(len(at), np.int64)
    low = engine.stop_reach[at]
    return _Raw(
        step=engine.step[at].astype(np.int64),
        gap=none + 1,
        own=own,
        low=low,
        high=low + engine.after[at],
        took=engine.after[at],
        base=none + engine.turnaround,
        others=none,
        extra=none,
    )


def _begun_late(case: Case, life: Life, rows: slice) -> _Raw:
    """From the decision on the first of its steps to its begin, where that took long; between others it lies in a gap."""
    assert life.engine is not None  # the caller looked: for the type checker
    engine = life.engine
    step = engine.step[rows][:1].astype(np.int64)
    low, high = case.capture.steps.scheduled[step], engine.begin[rows][:1]
    late = (low != UNKNOWN) & (high - low > engine.turnaround_limit)
    step, low, high = step[late], low[late], high[late]
    none = np.zeros(len(step), np.int64)
    own = np.isin(step, life.step).astype(np.int64)
    return _Raw(
        step, none + 1, own, low, high, high - low, none + min(engine.turnaround, engine.turnaround_limit), none, none
    )


def _joined(steps: _Raw, gaps: _Raw) -> _Raw:
    order = np.argsort(np.append(steps.low, gaps.low), kind="stable")
    return _Raw(*(np.append(a, b)[order] for a, b in zip(steps, gaps, strict=True)))


def _others(case: Case, life: Life, step: Int64) -> Int64:
    """int64: prompt tokens that each step computed for other requests."""
    tokens = case.capture.steps.context_tokens[step].clip(0).astype(np.int64)
    prefill = life.role == Role.PREFILL
    own = dict(zip(life.step[prefill].tolist(), life.tokens[prefill].tolist(), strict=True))
    mine = np.array([max(own.get(one, 0), 0) for one in step.tolist()], np.int64)
    return (tokens - mine).clip(0)


def _charged(case: Case, raw: _Raw, limits: tuple[int, int]) -> Holds:
    """Charge each hold's overtime, scaled to its part inside ``limits``."""
    low, high = np.maximum(raw.low, limits[0]), np.minimum(raw.high, limits[1])
    share = (high - low).clip(0) / np.maximum(raw.high - raw.low, 1)
    known = raw.base != UNKNOWN
    over = np.where(known, raw.took - raw.base, 0).clip(0)
    lasting = (raw.gap == 0) & (slowdown(case)[raw.step] >= np.log(LASTING))
    over = np.where(lasting | (over > STRETCHED * raw.base), over, 0)
    over = (np.rint(over * share).astype(np.int64) - overlaps(case.stalls, low, high)).clip(0)
    observed = np.where(case.opening[raw.step] & (raw.gap == 0), np.minimum(over, OPENING_MOST), 0)
    collection = np.minimum(over - observed, overlaps(case.pauses["gc"], low, high))
    left = over - observed - collection
    prompts = np.minimum(left, np.rint(PREFILL_MARGIN * raw.extra * share).astype(np.int64))
    left = left - prompts
    doing = _doing(case, low, high, raw.gap > 0)
    waited = np.rint(doing.waited).astype(np.int64)
    contended = waited >= CONTENDED * left
    device = np.where(_wrote(case, low, high) | (_stalled(case, low, high) & ~contended), left, 0)
    left = left - device
    starved = np.where(contended, left, np.minimum(left, waited))
    rest = left - starved
    asleep = np.where(doing.asleep >= CONTENDED * rest, rest, np.minimum(rest, np.rint(doing.asleep)))
    share = np.where(doing.asleep > 0, doing.crowded / np.maximum(doing.asleep, 1.0), 0.0)
    return Holds(
        step=raw.step,
        gap=raw.gap > 0,
        own=raw.own > 0,
        low=low,
        high=high,
        took=raw.took,
        base=raw.base,
        others=raw.others,
        over=over,
        observed=observed,
        collection=collection,
        prompts=prompts,
        starved=starved,
        device=device,
        rest=rest,
        asleep=asleep.astype(np.int64),
        crowded=np.rint(asleep * share).astype(np.int64),
        judged=bool(known.any()),
        watched=bool(step_threads(case).run),
    )


def _doing(case: Case, low: Int64, high: Int64, between: Bool) -> Doing:
    """What the threads that steps wait for did; of threads that were not sampled, that any of the service waited."""
    found = step_threads(case).doing(low, high, between)
    none = np.zeros(len(low))
    return found if found is not None else Doing(beyond_calm(case, "run_queue_wait_ns", low, high), none, none)


def _wrote(case: Case, low: Int64, high: Int64) -> Bool:
    """Whether the service itself wrote far more than it does, during each hold."""
    return beyond_calm(case, "write_bytes", low, high) * 1e9 > BURST_BYTES * np.maximum(high - low, 1)


def _stalled(case: Case, low: Int64, high: Int64) -> Bool:
    """Whether any task of the machine waited for storage, during each hold: it need not be one of the service."""
    return beyond_calm(case, "pressure_io_some_us", low, high) * 1000 > STALLED * np.maximum(high - low, 1)


def beyond_calm(case: Case, name: str, low: Int64, high: Int64) -> Float64:
    """float64: how much a counter grew in each ``[low, high)`` beyond what it does when all is calm, in its own unit."""
    counter = case.counters.get(name)
    if counter is None:
        return np.zeros(len(low))
    return np.maximum(counter.growth(low, high) - counter.calm * (high - low) / 1e9, 0.0)
