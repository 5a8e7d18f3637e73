"""One capture made ready for many diagnoses: indexes that every request would otherwise build again."""

from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from teller_core.data.assessment import Assessment
from teller_core.data.capture import STEP_THREAD, Capture, process_name
from teller_core.data.linked import Linked
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64
from teller_core.data.trace import Layer
from teller_core.judge.intervals import EMPTY, Spans, union, without
from teller_core.judge.levels import TURNAROUND, counter_level, near
from teller_core.judge.robust import weighted

LOCAL_PAUSES = ("gc", "thread_lag", "stop_signal")
"""Pauses of the service itself. ``profiler_stop`` is the recorder's own."""
CALM = 0.25
"""The quantile of a counter's rate over the steps that stands for a calm machine. Over the steps, and not over the time: a fault
that makes steps ten times as long holds for most of the time of a capture in which it strikes a few.
"""
TURNAROUND_TIMES = 3
"""A gap between two steps is the engine's turnaround up to this many times its usual one; what is longer is unexplained."""
TURNAROUND_LEAST = 1_500_000
"""ns that a gap between two steps may always have: writing outputs and scheduling take that on a busy host."""
EAGER = 1.5
"""Times what threads usually run, from which on they have more to do than usual."""
MANY_ROWS = 30
"""A step's operators number in hundreds, an engine's own ranges in a step in tens at most."""
OPENING = 2
"""The steps in which a profiler allocates its buffers and looks up what it sees for the first time."""
MIN_STEPS = 8
"""Fewer steps than this say nothing about what a step usually takes."""
Measured = TypeVar("Measured")
EMPTY_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Engine:
    """The steps of one engine with both times known, by begin: ``step`` int32 positions, ``begin``, ``stop``, ``after``
    int64 ns (``after``: from its stop to the begin of the next one, 0 where they overlap, UNKNOWN for the last).
    """

    step: Int32
    begin: Int64
    stop: Int64
    after: Int64
    turnaround: int
    """ns: what the engine usually needs between two steps."""
    turnaround_limit: int
    """ns: the longest gap between two steps that needs no explanation."""
    activity: Spans
    """All it did: its steps, the turnaround after each up to the limit, and recorded pauses."""

    def window(self, low: int, high: int) -> slice:
        """The rows whose time touches ``[low, high)``, by begin; a long step that began far earlier may be missed."""
        first = int(np.searchsorted(self.stop_reach, low, "right"))
        return slice(first, max(first, int(np.searchsorted(self.begin, high, "left"))))

    @cached_property
    def stop_reach(self) -> Int64:
        """int64 ns: the latest stop of this step and all before it."""
        return np.maximum.accumulate(self.stop) if len(self.stop) else self.stop


@dataclass(frozen=True)
class Counter:
    """Growth of one counter: intervals by start, and the growth a second in each; ``calm`` is its quiet level."""

    start: Int64
    stop: Int64
    delta: Int64
    rate: Float64
    calm: float

    def growth(self, low: Int64, high: Int64) -> Float64:
        """float64: the growth in each ``[low, high)``, taking it as even within an interval."""
        both = self._before(np.concatenate([low, high]))
        return both[len(low) :] - both[: len(low)]

    def grown(self, low: int, high: int) -> float:
        """:func:`growth` in one stretch: it is asked for dozens of them a request, one by one."""
        return self._until(high) - self._until(low)

    @cached_property
    def _done(self) -> Float64:
        return np.concatenate([np.zeros(1), np.cumsum(self.delta.astype(np.float64))])

    @cached_property
    def _listed(self) -> tuple[list[int], list[int], list[int], list[float]]:
        return self.start.tolist(), self.stop.tolist(), self.delta.tolist(), self._done.tolist()

    def _before(self, points: Int64) -> Float64:
        index = self.start.searchsorted(points, "right")
        last = np.maximum(index - 1, 0)
        start, stop = self.start[last], self.stop[last]
        share = (np.minimum(points, stop) - start) / np.maximum(stop - start, 1)
        return np.where(index > 0, self._done[last] + self.delta[last] * share, 0.0)

    def _until(self, point: int) -> float:
        start, stop, delta, done = self._listed
        last = bisect_right(start, point) - 1
        if last < 0:
            return 0.0
        share = (min(point, stop[last]) - start[last]) / max(stop[last] - start[last], 1)
        return done[last] + delta[last] * share


@dataclass(frozen=True)
class Case:
    """A capture, its numbers and their indexes. Step columns are by step position, as in ``Capture.steps``."""

    capture: Capture
    assessment: Assessment
    begin: Int64
    stop: Int64
    took: Int64
    expected: Int64
    context_cost: float
    """ns that one more context token adds to a step, NaN where the capture cannot tell."""
    engines: Mapping[int, Engine]
    rows: Int64
    """Rows of the participation ordered by request, then by step; those of request r are ``rows[first[r]:first[r + 1]]``."""
    first: Int64
    path: frozenset[str]
    """Processes (``host/pid``) whose standing still delays every step."""
    pauses: Mapping[str, Spans]
    """Of the processes on the path, by kind."""
    front_pauses: Mapping[str, Spans]
    """Of the processes that receive and answer, by kind: the same ones where one process does everything."""
    apart: bool
    """Whether other processes receive and answer than those on the path."""
    starts: Int64
    """``Requests.begin()``."""
    ends: Int64
    """``Requests.end()``."""
    stalls: Spans
    """Stops of this capture's own profiler."""
    counters: Mapping[str, Counter]
    """Of the processes on the path together, or of the machine where the name begins with machine or pressure."""
    expected_rows: Mapping[str, Int64]
    """int64 a request, by metric: its row of ``assessment.requests``, -1 for none."""
    lines: Mapping[str, Int64]
    """Rows of the log lines that a rule knows, by rule."""
    detailed: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    """Which rows of ``Capture.work`` have operators or kernels: ranges of the engine alone are no profile."""
    profiled: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    """Which steps a profile overlaps."""
    opening: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    """Those among them in which a profile was just beginning: it sets itself up in its first steps."""
    link: Callable[[int], Linked | None] | None = None
    """The rows of a step on all its ranks with their dependencies, None where no profile has any: handed over by who can."""
    measured: dict[str, Any] = field(default_factory=dict[str, Any])
    """Measured once a capture by who needs it, by name."""

    def expectation(self, request: int, metric: str) -> int | None:
        """The row of ``assessment.requests`` about a request (its position) and a metric, None for none."""
        rows = self.expected_rows.get(metric)
        row = int(rows[request]) if rows is not None else -1
        return row if row >= 0 else None

    def once(self, name: str, measure: "Callable[[Case], Measured]") -> Measured:
        """What ``measure`` says of this case, measured when it is first asked for."""
        if name not in self.measured:
            self.measured[name] = measure(self)
        return self.measured[name]


def prepare(capture: Capture, assessment: Assessment, link: Callable[[int], Linked | None] | None = None) -> Case:
    """The indexes of one capture, to be shared by all its diagnoses. ``link`` as in :class:`Case`."""
    steps, part = capture.steps, capture.participation
    begin, stop = steps.begin(), steps.end()
    timed = (begin != UNKNOWN) & (stop != UNKNOWN) & (stop >= begin)
    took = np.where(assessment.steps.took != UNKNOWN, assessment.steps.took, np.where(timed, stop - begin, UNKNOWN))
    count = len(capture.requests.number)
    rows = np.lexsort((part.step, part.request)).astype(np.int64)
    path = _path(capture)
    front = frozenset(_roles(capture)) - path
    pauses = _pauses(capture, path)
    engines = _engines(capture, assessment, begin, stop, timed=timed, pauses=pauses)
    detailed = _detailed(capture)
    profiled = np.zeros(len(begin), np.bool_)
    profiled[capture.work.step[detailed]] = True
    return Case(
        capture=capture,
        assessment=assessment,
        begin=begin,
        stop=stop,
        took=took.astype(np.int64),
        expected=assessment.steps.expected,
        context_cost=_context_cost(capture, assessment, took),
        engines=engines,
        rows=rows,
        first=np.searchsorted(part.request[rows], np.arange(count + 1)).astype(np.int64),
        path=path,
        pauses=pauses,
        front_pauses=_pauses(capture, front) if front else pauses,
        apart=bool(front),
        starts=capture.requests.begin(),
        ends=capture.requests.end(),
        stalls=_kind(capture, "profiler_stop"),
        counters=_counters(capture, assessment, path, engines),
        expected_rows=_expected_rows(assessment, count),
        lines=_lines(capture),
        detailed=detailed,
        profiled=profiled,
        opening=_opening(profiled, engines),
        link=link,
    )


def _expected_rows(assessment: Assessment, count: int) -> dict[str, Int64]:
    metrics = np.array(assessment.requests.metric, dtype=object)
    found: dict[str, Int64] = {}
    for metric in dict.fromkeys(assessment.requests.metric):
        at = np.flatnonzero(metrics == metric)
        found[metric] = np.full(count, -1, np.int64)
        found[metric][assessment.requests.request[at]] = at
    return found


def _detailed(capture: Capture) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Counted in the trees; where these are not at hand, told by the number of rows."""
    work = capture.work
    detailed = (work.row >= 0) & (work.row_stop - work.row >= MANY_ROWS)
    for position, rank in enumerate(capture.ranks):
        if rank.tree is None:
            continue
        computing = np.isin(rank.tree.trace.layer, (Layer.OPERATOR, Layer.KERNEL))
        before = np.append(0, np.cumsum(computing))
        mine = np.flatnonzero((work.rank == position) & (work.row >= 0))
        detailed[mine] = before[work.row_stop[mine]] > before[work.row[mine]]
    return detailed


def _lines(capture: Capture) -> dict[str, Int64]:
    rows: dict[str, list[int]] = {}
    for row, rule in enumerate(capture.lines.rule):
        if rule:
            rows.setdefault(rule, []).append(row)
    return {rule: np.array(found, np.int64) for rule, found in rows.items()}


def _engines(
    capture: Capture,
    assessment: Assessment,
    begin: Int64,
    stop: Int64,
    *,
    timed: "np.ndarray[tuple[int], np.dtype[np.bool_]]",
    pauses: Mapping[str, Spans],
) -> dict[int, Engine]:
    engines: dict[int, Engine] = {}
    for number in np.unique(capture.steps.engine).tolist():
        step = np.flatnonzero((capture.steps.engine == number) & timed)
        step = step[np.argsort(begin[step], kind="stable")]
        engines[number] = _engine(assessment, step.astype(np.int32), begin[step], stop[step], pauses)
    return engines


def _opening(
    profiled: "np.ndarray[tuple[int], np.dtype[np.bool_]]", engines: Mapping[int, Engine]
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    opening = np.zeros(len(profiled), np.bool_)
    for engine in engines.values():
        seen = profiled[engine.step]
        before = np.concatenate([np.zeros(OPENING, np.bool_), seen])[: len(seen)]
        opening[engine.step[seen & ~before]] = True
    return opening


def _engine(assessment: Assessment, step: Int32, begin: Int64, stop: Int64, pauses: Mapping[str, Spans]) -> Engine:
    after = np.full(len(step), UNKNOWN, np.int64)
    if len(step) > 1:
        after[:-1] = (begin[1:] - np.maximum.accumulate(stop)[:-1]).clip(0)
    gaps = after[after != UNKNOWN]
    usual = int(near(assessment, TURNAROUND, float(np.median(gaps)))) if len(gaps) else 0
    limit = max(TURNAROUND_TIMES * usual, TURNAROUND_LEAST)
    active = [Spans(begin, stop + after.clip(0, limit)), *pauses.values()]
    activity = union(
        np.concatenate([spans.start for spans in active]), np.concatenate([spans.stop for spans in active])
    )
    return Engine(step, begin, stop, after, usual, limit, activity)


def _context_cost(capture: Capture, assessment: Assessment, took: Int64) -> float:
    """ns a context token: the slope of a straight line through what steps are expected to take, else through what they took.

    Least squares, twice: the second time without the steps more than twice above the first line, which something else held up.
    """
    steps = capture.steps
    value = np.where(assessment.steps.expected != UNKNOWN, assessment.steps.expected, took)
    use = (value != UNKNOWN) & (steps.context_tokens >= 0) & (steps.generation_tokens >= 0)
    context = steps.context_tokens[use].astype(np.float64)
    if use.sum() < MIN_STEPS or not context.any() or context.min() == context.max():
        return float("nan")
    design = np.column_stack([np.ones(len(context)), context, steps.generation_tokens[use].astype(np.float64)])
    y = value[use].astype(np.float64)
    line, *_ = np.linalg.lstsq(design, y, rcond=None)
    usual = y <= 2 * np.maximum(design @ line, np.median(y))
    if usual.sum() >= MIN_STEPS and context[usual].any():
        line, *_ = np.linalg.lstsq(design[usual], y[usual], rcond=None)
    return max(float(line[1]), 0.0)


def _roles(capture: Capture) -> dict[str, str]:
    """The role of every process that was paused or sampled."""
    pauses, samples = capture.pauses, capture.samples
    seen = dict(zip([*pauses.process, *samples.process], [*pauses.role, *samples.role], strict=True))
    return {process: role for process, role in seen.items() if process}


def _path(capture: Capture) -> frozenset[str]:
    """The processes that scheduled or executed steps; ranks where nobody says; every process where nothing tells them apart."""
    roles = _roles(capture)
    working = frozenset(process for process, role in roles.items() if role in ("engine", "worker"))
    on_path = [rank for rank in capture.ranks if rank.role != "frontend"]
    # A name without pid and rank is of one of the ranks without a pid: of the path, whichever it is.
    ranks = frozenset(process_name(rank.host, rank.pid, number) for rank in on_path for number in (rank.rank, None))
    return working or ranks or frozenset(roles)


def _pauses(capture: Capture, processes: frozenset[str]) -> dict[str, Spans]:
    """By kind. A thread that woke late because of a collection is the collection's."""
    pauses = {kind: _kind(capture, kind, processes) for kind in LOCAL_PAUSES}
    return {**pauses, "thread_lag": without(pauses["thread_lag"], pauses["gc"])}


def _kind(capture: Capture, kind: str, processes: frozenset[str] | None = None) -> Spans:
    pauses = capture.pauses
    mine = [
        row
        for row, (name, process) in enumerate(zip(pauses.kind, pauses.process, strict=True))
        if name == kind and (processes is None or process in processes)
    ]
    if not mine:
        return EMPTY
    index = np.array(mine)
    return union(pauses.start[index], pauses.start[index] + pauses.dur[index])


def _counters(
    capture: Capture, assessment: Assessment, path: frozenset[str], engines: Mapping[int, Engine]
) -> dict[str, Counter]:
    samples = capture.samples
    rows: dict[str, list[int]] = {}
    for row, (name, process) in enumerate(zip(samples.name, samples.process, strict=True)):
        if (not process or process in path) and not name.startswith(STEP_THREAD):
            rows.setdefault(name, []).append(row)
    own = {name: counter(capture, np.array(found), engines) for name, found in rows.items()}
    return {name: replace(one, calm=near(assessment, counter_level(name), one.calm)) for name, one in own.items()}


def counter(
    capture: Capture, rows: "np.ndarray[tuple[int], np.dtype[np.int64]]", engines: Mapping[int, Engine]
) -> Counter:
    """One counter over time. Several processes are added: their intervals are cut at every reading of any of them."""
    samples = capture.samples
    start, stop, delta = samples.start[rows], samples.stop[rows], samples.delta[rows]
    if len({samples.process[row] for row in rows.tolist()}) > 1:
        start, stop, delta = _added(start, stop, delta)
    rate = delta / np.maximum(stop - start, 1) * 1e9
    return Counter(start, stop, delta, rate, quantile(rate, CALM, start, stop, engines))


def quantile(rate: Float64, share: float, start: Int64, stop: Int64, engines: Mapping[int, Engine]) -> float:
    """The rate that a counter had in the intervals of ``share`` of the steps, at most; of all intervals where none has a step."""
    ended = np.sort(np.concatenate([np.empty(0, np.int64), *(engine.stop for engine in engines.values())]))
    many = (np.searchsorted(ended, stop) - np.searchsorted(ended, start)).astype(np.float64)
    if not len(rate):
        return 0.0
    return weighted(rate, many if many.any() else np.ones(len(rate)), share)


def _added(start: Int64, stop: Int64, delta: Int64) -> tuple[Int64, Int64, Int64]:
    edges = np.unique(np.concatenate([start, stop]))
    change = np.zeros(len(edges))
    speed = delta / np.maximum(stop - start, 1)
    np.add.at(change, np.searchsorted(edges, start), speed)
    np.add.at(change, np.searchsorted(edges, stop), -speed)
    size = np.diff(edges)
    return edges[:-1], edges[1:], np.rint(np.cumsum(change)[:-1] * size).astype(np.int64)
