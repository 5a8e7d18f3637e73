"""One request's life in one capture: its boundaries, the steps that served it and the engine around it."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.steps import Mapping, Role
from teller_core.data.table import UNKNOWN, Int32, Int64, UInt8
from teller_core.judge.expectations import SECOND
from teller_core.judge.intervals import EMPTY, Spans, union
from teller_core.judge.prepare import Case, Engine


@dataclass(frozen=True)
class OwnSteps:
    """The steps that served a request and whose times are known, by begin: ``rows`` into the participation and, beside them,
    ``step`` positions, ``start`` and ``stop`` int64 ns, ``role``, ``tokens``, ``recomputed``.
    """

    rows: Int64
    step: Int32
    start: Int64
    stop: Int64
    role: UInt8
    tokens: Int32
    recomputed: Int32
    mapping: Mapping
    """Of these steps."""
    confidence: float
    """Of the mapping: the mean over the steps, 1 where recorded, 0 where there is none."""


@dataclass(frozen=True)
class Life(OwnSteps):
    """The boundaries (int64 ns on the capture's clock, UNKNOWN where nobody recorded them) and the request's own steps.

    ``begin``: its earliest time; ``received``; ``queued``; ``chosen``: it was first scheduled; ``launched``: its first step runs,
    or was chosen where only that is known; ``first``: the step of its first token ended; ``last``: its last step ended; ``end``.
    """

    request: int
    begin: int
    received: int
    queued: int
    chosen: int
    launched: int
    first: int
    last: int
    end: int
    taken: int
    """Steps it took part in, timed or not."""
    known: Mapping
    """Of all of these."""
    engine: Engine | None
    evicted: Spans
    """From the last step before each preemption to the first step after it."""

    @property
    def coarse(self) -> bool:
        """Whether its begin and its end are known to the second only."""
        return UNKNOWN not in (self.begin, self.end) and self.begin % SECOND == 0 and self.end % SECOND == 0

    @property
    def dark(self) -> str:
        """What is not known of the steps that served it, where none of them can be placed in time."""
        return "when the steps that served it ran" if self.taken else "which steps served it"

    @property
    def recompute(self) -> Spans:
        """The steps that computed again what a preemption threw away."""
        again = self.recomputed > 0
        return union(self.start[again], self.stop[again])


def life(case: Case, request: int) -> Life:
    """The life of the request at position ``request``."""
    rows = case.rows[int(case.first[request]) : int(case.first[request + 1])]
    own = _own(case, rows) if len(rows) else _NONE
    queued, chosen = _queue(case, request)
    end = int(case.ends[request])
    launched = int(own.start[0]) if len(own.start) else chosen
    return Life(
        request=request,
        begin=int(case.starts[request]),
        received=_fine(int(case.capture.requests.received[request])),
        queued=queued,
        chosen=launched if chosen == UNKNOWN else min(chosen, launched),
        launched=launched,
        first=_first(case, request, own.role, own.stop),
        last=_last(case, request, own.stop, end),
        end=end,
        **vars(own),
        taken=len(rows),
        known=Mapping(int(case.capture.participation.mapping[rows].min())) if len(rows) else Mapping.UNKNOWN,
        engine=_engine(case, request, own.step),
        evicted=_evicted(case, request, Spans(own.start, own.stop), own.step, own.recomputed),
    )


def _own(case: Case, rows: Int64) -> OwnSteps:
    """The steps at ``rows`` of the participation whose times are known, by begin."""
    part = case.capture.participation
    step = part.step[rows]
    timed = (case.begin[step] != UNKNOWN) & (case.stop[step] != UNKNOWN)
    rows, step = rows[timed], step[timed]
    order = np.argsort(case.begin[step], kind="stable")
    rows, step = rows[order], step[order]
    return OwnSteps(
        rows=rows,
        step=step,
        start=case.begin[step],
        stop=case.stop[step],
        role=part.role[rows],
        tokens=part.tokens[rows],
        recomputed=part.recomputed[rows],
        mapping=Mapping(int(part.mapping[rows].min())) if len(rows) else Mapping.UNKNOWN,
        confidence=float(part.confidence[rows].mean()) if len(rows) else 0.0,
    )


_NO_TIMES, _NO_NUMBERS = np.empty(0, np.int64), np.empty(0, np.int32)
_NONE = OwnSteps(
    rows=_NO_TIMES,
    step=_NO_NUMBERS,
    start=_NO_TIMES,
    stop=_NO_TIMES,
    role=np.empty(0, np.uint8),
    tokens=_NO_NUMBERS,
    recomputed=_NO_NUMBERS,
    mapping=Mapping.UNKNOWN,
    confidence=0.0,
)
"""Of a request of which no step is known: the usual one where nothing but callers' records is at hand."""


def _evicted(case: Case, request: int, own: Spans, step: Int32, recomputed: Int32) -> Spans:
    """The gaps before steps that compute its tokens again. Where its blocks were still cached it comes back without: then the
    gap of a request that was preempted in which the scheduler evicted somebody, the longest ones first.
    """
    if len(step) < 2:
        return EMPTY
    back = (recomputed[1:] > 0) & (recomputed[:-1] <= 0)
    missing = int(case.capture.requests.preemptions[request]) - int(back.sum())
    if missing > 0:
        evictions = case.once("evictions", lambda case: np.append(0, np.cumsum(case.capture.steps.preempted.clip(0))))
        between = evictions[step[1:]] - evictions[np.minimum(step[:-1] + 1, step[1:])]
        gap = np.where((between > 0) & ~back, own.start[1:] - own.stop[:-1], 0)
        longest = np.argsort(gap)[-missing:]
        back[longest[gap[longest] > 0]] = True
    return union(own.stop[:-1][back], own.start[1:][back])


def _queue(case: Case, request: int) -> tuple[int, int]:
    """When the engine got it and when it was first chosen; one gives the other where the engine said how long it waited."""
    table = case.capture.requests
    queued, chosen = _fine(int(table.queued[request])), _fine(int(table.scheduled[request]))
    waited = int(table.queue_ns[request])
    if waited != UNKNOWN:
        if queued == UNKNOWN and chosen != UNKNOWN:
            queued = chosen - waited
        elif chosen == UNKNOWN and queued != UNKNOWN:
            chosen = queued + waited
    return queued, chosen


def _fine(time: int) -> int:
    """A time that may divide a request's life, UNKNOWN for the whole second of a coarse log: its phases would be noise."""
    return UNKNOWN if time % SECOND == 0 else time


def _first(case: Case, request: int, role: UInt8, stop: Int64) -> int:
    """The end of its last step before the first decode, else what the server says of its first token."""
    if not len(stop):
        return int(case.capture.requests.first_token[request])
    decode = np.flatnonzero(role == Role.DECODE)
    before = int(decode[0]) if len(decode) else len(role)
    return int(stop[before - 1]) if before > 0 else int(case.capture.requests.first_token[request])


def _last(case: Case, request: int, stop: Int64, end: int) -> int:
    """The end of its last step, else what the server says of its last token or its end; never after its end."""
    table = case.capture.requests
    said = int(table.last_token[request]) if table.last_token[request] != UNKNOWN else int(table.finished[request])
    last = int(stop.max()) if len(stop) else said
    return min(last, end) if UNKNOWN not in (last, end) else last


def _engine(case: Case, request: int, step: Int32) -> Engine | None:
    number = int(case.capture.steps.engine[step[0]]) if len(step) else int(case.capture.requests.engine[request])
    if number in case.engines:
        return case.engines[number]
    return next(iter(case.engines.values())) if len(case.engines) == 1 else None
