"""One request's life in one capture: its boundaries, the steps that served it and the engine around it."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.steps import Mapping, Role
from teller_core.data.table import UNKNOWN, Int32, Int64, UInt8
from teller_core.judge.intervals import EMPTY, Spans, union
from teller_core.judge.prepare import Case, Engine


@dataclass(frozen=True)
class Life:
    """The boundaries (int64 ns on the capture's clock, UNKNOWN where nobody recorded them) and the request's own steps.

    ``begin``: its earliest time; ``received``; ``queued``; ``launched``: its first step runs, or was chosen where only that is
    known; ``first``: the step of its first token ended; ``last``: its last step ended; ``end``. ``rows`` into the
    participation and, beside them by begin, ``step`` positions, ``start``, ``stop``, ``role``, ``tokens``, ``recomputed``.
    """

    request: int
    begin: int
    received: int
    queued: int
    launched: int
    first: int
    last: int
    end: int
    rows: Int64
    step: Int32
    start: Int64
    stop: Int64
    role: UInt8
    tokens: Int32
    recomputed: Int32
    mapping: Mapping
    confidence: float
    """Of the mapping: the mean over its steps, 1 where recorded, 0 where there is none."""
    taken: int
    """Steps it took part in, timed or not."""
    engine: Engine | None

    @property
    def recompute(self) -> Spans:
        """The steps that computed again what a preemption threw away."""
        again = self.recomputed > 0
        return union(self.start[again], self.stop[again])

    @property
    def evicted(self) -> Spans:
        """From the last step before each preemption to the first step after it."""
        if len(self.step) < 2:
            return EMPTY
        back = np.flatnonzero((self.recomputed[1:] > 0) & (self.recomputed[:-1] <= 0))
        return union(self.stop[back], self.start[back + 1])


def life(case: Case, request: int) -> Life:
    """The life of the request at position ``request``."""
    table, part = case.capture.requests, case.capture.participation
    rows = case.rows[int(case.first[request]) : int(case.first[request + 1])]
    taken = len(rows)
    step = part.step[rows]
    timed = (case.begin[step] != UNKNOWN) & (case.stop[step] != UNKNOWN)
    rows, step = rows[timed], step[timed]
    order = np.argsort(case.begin[step], kind="stable")
    rows, step = rows[order], step[order]
    start, stop, role = case.begin[step], case.stop[step], part.role[rows]
    queued, chosen = _queue(case, request)
    launched = int(start[0]) if len(start) else chosen
    end = int(case.ends[request])
    return Life(
        request=request,
        begin=int(case.starts[request]),
        received=int(table.received[request]),
        queued=queued,
        launched=launched,
        first=_first(case, request, role, stop),
        last=_last(case, request, stop, end),
        end=end,
        rows=rows,
        step=step,
        start=start,
        stop=stop,
        role=role,
        tokens=part.tokens[rows],
        recomputed=part.recomputed[rows],
        mapping=Mapping(int(part.mapping[rows].min())) if len(rows) else Mapping.UNKNOWN,
        confidence=float(part.confidence[rows].mean()) if len(rows) else 0.0,
        taken=taken,
        engine=_engine(case, request, step),
    )


def _queue(case: Case, request: int) -> tuple[int, int]:
    """When the engine got it and when it was first chosen; one gives the other where the engine said how long it waited."""
    table = case.capture.requests
    queued, chosen, waited = int(table.queued[request]), int(table.scheduled[request]), int(table.queue_ns[request])
    if waited != UNKNOWN:
        if queued == UNKNOWN and chosen != UNKNOWN:
            queued = chosen - waited
        elif chosen == UNKNOWN and queued != UNKNOWN:
            chosen = queued + waited
    return queued, chosen


def _first(case: Case, request: int, role: UInt8, stop: Int64) -> int:
    """The end of its last step before the first decode, else what the server says of its first token."""
    decode = np.flatnonzero(role == Role.DECODE)
    before = int(decode[0]) if len(decode) else len(role)
    return int(stop[before - 1]) if before > 0 and len(stop) else int(case.capture.requests.first_token[request])


def _last(case: Case, request: int, stop: Int64, end: int) -> int:
    """The end of its last step, else what the server says of its last token; never after its end."""
    said = int(case.capture.requests.last_token[request])
    last = int(stop.max()) if len(stop) else said
    return min(last, end) if UNKNOWN not in (last, end) else last


def _engine(case: Case, request: int, step: Int32) -> Engine | None:
    number = int(case.capture.steps.engine[step[0]]) if len(step) else int(case.capture.requests.engine[request])
    if number in case.engines:
        return case.engines[number]
    return next(iter(case.engines.values())) if len(case.engines) == 1 else None
