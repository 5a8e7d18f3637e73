"""Steps, requests, who took part in what, and the log lines beside them: small tables of one capture."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, LongText, Text, UInt8, check_columns


class Mapping(IntEnum):
    """How it is known which requests a step served."""

    UNKNOWN = 0
    INFERRED = 1
    RECORDED = 2


class Role(IntEnum):
    """What a request did in a step."""

    PREFILL = 0
    DECODE = 1


@dataclass(frozen=True)
class Steps:
    """One row an engine iteration, in the order of ``scheduled`` (or of whichever of its times is known).

    ``engine`` int32: the data-parallel engine. ``number`` int64: the engine's own iteration number, -1 where it gives none.
    Four times, int64 ns, UNKNOWN where not recorded: ``scheduled`` (the scheduler had decided), ``launched`` (a worker
    began), ``finished`` (the last device or CPU work ended), ``delivered`` (its tokens left the engine: an iteration line
    bounds it from above). Counts int32, -1 where not known. ``kv_usage`` float64, 0 to 1, NaN where not known.
    ``mapping`` uint8, a :class:`Mapping`. ``confidence`` float64 of an inferred mapping, 1 for recorded. ``elapsed`` int64 ns:
    how long its line says that it took, where nothing but that line times it, else UNKNOWN; ``launched`` and ``finished`` are
    then placed by it, where the stamps allow.
    """

    engine: Int32
    number: Int64
    scheduled: Int64
    launched: Int64
    finished: Int64
    delivered: Int64
    context_requests: Int32
    context_tokens: Int32
    generation_requests: Int32
    generation_tokens: Int32
    kv_tokens: Int64
    """Tokens attended to, summed over the step's requests; -1 where not known."""
    kv_usage: Float64
    preempted: Int32
    """Requests evicted when this step was scheduled."""
    mapping: UInt8
    confidence: Float64
    elapsed: Int64

    def check(self) -> None:
        """Raise ValueError where columns differ in length or a step's times run backwards."""
        check_columns(self)
        for early, late in (("scheduled", "launched"), ("launched", "finished")):
            a, b = getattr(self, early), getattr(self, late)
            if np.any((a != UNKNOWN) & (b != UNKNOWN) & (a > b)):
                raise ValueError(f"a step is {late} before it is {early}")

    def phases(self) -> Text:
        """``prefill``, ``decode`` or ``mixed`` a step, empty where its counts are not known or it served nobody."""
        counts = zip(self.context_tokens.tolist(), self.generation_requests.tolist(), strict=True)
        return [
            "" if min(c, g) < 0 or max(c, g) == 0 else "decode" if c == 0 else "mixed" if g else "prefill"
            for c, g in counts
        ]

    def begin(self) -> Int64:
        """int64 ns: when each step is first heard of on the way to the device: launched, else scheduled."""
        return np.where(self.launched != UNKNOWN, self.launched, self.scheduled)

    def end(self) -> Int64:
        """int64 ns: finished, else delivered (a bound from above)."""
        return np.where(self.finished != UNKNOWN, self.finished, self.delivered)


@dataclass(frozen=True)
class StepWork:
    """Where a step ran: one row a step and rank.

    ``rank`` int32 into ``Capture.ranks``; ``start``, ``stop`` int64 ns; ``row`` int32: the root of its spans in that rank's
    tree, -1 where no profile overlaps it (``row_stop``: the end of its range of rows). Several roots are joined by being
    neighbours: the step's rows are ``range(row, row_stop)``.
    """

    step: Int32
    rank: Int32
    start: Int64
    stop: Int64
    row: Int32
    row_stop: Int32

    def check(self) -> None:
        """Raise ValueError where columns differ in length or a stop comes before its start."""
        check_columns(self)
        if np.any(self.stop < self.start):
            raise ValueError("work stops before it starts")


@dataclass(frozen=True)
class Requests:
    """One row a request, by first time of appearance; ``number`` int32 from 1 is how people call it.

    Times int64 ns, UNKNOWN where nobody recorded them: ``client_start`` (sent), ``received`` (front end has it),
    ``tokenized`` (its prompt is tokens now), ``queued``
    (the engine has it), ``scheduled`` (first step chosen), ``first_token`` and ``last_token`` (leave the server),
    ``finished`` (server done), ``client_first``, ``client_end`` (caller). ``itl_max`` int64 ns: the longest gap between
    two tokens, by the caller where it measured them, else by the server. Token counts int32, -1 where not known.
    """

    number: Int32
    engine_id: Text
    """The id inside the engine, empty where none is known."""
    client_id: Text
    trace_id: Text
    client_start: Int64
    received: Int64
    queued: Int64
    scheduled: Int64
    first_token: Int64
    last_token: Int64
    finished: Int64
    client_first: Int64
    client_end: Int64
    itl_max: Int64
    itl_max_at: Int64
    """When the longest gap ended."""
    queue_ns: Int64
    """Waiting time the engine itself reported, UNKNOWN where it did not."""
    prompt_tokens: Int32
    output_tokens: Int32
    cached_tokens: Int32
    preemptions: Int32
    engine: Int32
    failed: UInt8
    tokenized: Int64
    finish_reason: Text
    """Why its answer ended, by the engine's word: stop, length, abort ...; empty where nobody says."""

    def check(self) -> None:
        """Raise ValueError where columns differ in length or numbers do not count from 1."""
        check_columns(self)
        if not np.array_equal(self.number, np.arange(1, len(self.number) + 1, dtype=np.int32)):
            raise ValueError("requests must be numbered from 1")

    def begin(self) -> Int64:
        """int64 ns: the earliest time known of each request."""
        return _first_known(self.client_start, self.received, self.queued, self.scheduled, self.first_token)

    def queue(self) -> Int64:
        """int64 ns: from the engine's receipt to the first scheduling, where both were recorded by a clock finer than whole
        seconds; else what the engine itself counted, which may begin later: when it took the request in. UNKNOWN for neither.
        """
        both = (self.queued != UNKNOWN) & (self.scheduled != UNKNOWN) & (self.scheduled >= self.queued)
        both &= (self.queued % _SECOND != 0) & (self.scheduled % _SECOND != 0)
        return np.where(both, self.scheduled - self.queued, self.queue_ns)

    def end(self) -> Int64:
        """int64 ns: the latest outcome known: the caller's end, else the server's, else its last token."""
        return _first_known(self.client_end, self.finished, self.last_token, self.first_token)


@dataclass(frozen=True)
class Participation:
    """Which requests a step served: one row a pair, ordered by step.

    ``step`` int32 into Steps, ``request`` int32 into Requests (positions), ``tokens`` int32 (-1 not known), ``role`` uint8
    :class:`Role`, ``recomputed`` int32: those of ``tokens`` that had been computed before a preemption, ``mapping`` uint8
    :class:`Mapping`, ``confidence`` float64.
    """

    step: Int32
    request: Int32
    tokens: Int32
    recomputed: Int32
    role: UInt8
    mapping: UInt8
    confidence: Float64

    def check(self) -> None:
        """Raise ValueError where columns differ in length or rows are not ordered by step."""
        check_columns(self)
        if np.any(np.diff(self.step) < 0):
            raise ValueError("participation must be ordered by step")


@dataclass(frozen=True)
class TokenTimes:
    """When each request's tokens arrived: flat int64 ns with one offset a request and a last one."""

    offset: Int64
    time: Int64

    def of(self, request: int) -> Int64:
        """int64 ns: the token times of the request at position ``request``."""
        return self.time[int(self.offset[request]) : int(self.offset[request + 1])]


@dataclass(frozen=True)
class Transfers:
    """When KV moved from one engine to another for a request, ordered by it: ``request`` int32 position, ``start`` and
    ``stop`` int64 ns.
    """

    request: Int32
    start: Int64
    stop: Int64

    def check(self) -> None:
        """Raise ValueError where columns differ in length or a transfer ends before it begins."""
        check_columns(self)
        if np.any(self.stop < self.start):
            raise ValueError("a transfer stops before it starts")


def no_transfers() -> Transfers:
    """A table without rows."""
    return Transfers(np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))


@dataclass(frozen=True)
class Lines:
    """Log lines, ordered by time, those without one last. ``step`` and ``request`` int32 positions, -1 for none.

    ``time`` int64 ns as written; the event lies in ``[time - before, time + after]``: ``after`` is the clock's resolution,
    ``before`` how long the process may have taken to write it.
    """

    time: Int64
    before: Int64
    after: Int64
    level: Text
    rule: Text
    fields: LongText
    """JSON objects of the fields that the rule knows."""
    untrusted_text: LongText
    process: Text
    file: Int32
    number: Int32
    step: Int32
    request: Int32

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


_SECOND = 1_000_000_000
"""A time that is a multiple of this was stamped by a clock of whole seconds."""


def _first_known(*times: Int64) -> Int64:
    """The first of ``times`` that is known, row by row."""
    best = times[-1].copy()
    for column in reversed(times[:-1]):
        best = np.where(column != UNKNOWN, column, best)
    return best
