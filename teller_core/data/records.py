"""What files say about a service besides traces: decisions, executions, requests, pauses, samples and log lines.

Readers make these rows; rebuilding joins them into steps and requests. A row keeps what its file said and invents
nothing: an absent number is None, an absent time UNKNOWN. Times are int64 ns on the clock named by ``FileRead.clock``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from teller_core.data.log_lines import LogLines
from teller_core.data.process import Process
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Trace


class FileRead(NamedTuple):
    """How one file was read. Every record of the file is kept, other, or a problem."""

    name: str
    format: str
    bytes: int
    clock: str = "unix"
    """``unix``: ns since 1970. ``wall``: a clock of unknown zone, read as UTC. ``local``: an unknown zero. ``name`` and
    ``date``: unix ns that the file's name, or its date, told: its content has no time."""
    events_in_file: int = 0
    events_kept: int = 0
    events_other: Mapping[str, int] = {}
    problems: Mapping[str, int] = {}


class Decision(NamedTuple):
    """A scheduler chose what runs in the next step."""

    process: Process
    start: int
    dur: int
    tokens: Mapping[str, int]
    """Tokens to compute, by the engine's request id; -1 where only the ids were recorded."""
    preempted: Sequence[str] = ()
    finished: Sequence[str] = ()
    prompt: Mapping[str, int] = {}
    """Prompt length of requests scheduled for the first time."""
    computed: Mapping[str, int] = {}
    """Tokens already in the KV cache before this step (cached prefix included)."""
    cached: Mapping[str, int] = {}
    """Prefix-cache hits of requests scheduled for the first time."""
    resumed: Sequence[str] = ()
    """Requests scheduled again after a preemption."""
    output: Sequence[str] | None = None
    """Requests that get a token out of this step; None where that was not recorded."""
    waiting: int | None = None
    """Requests left in the queue."""
    number: int | None = None
    """Counts the decisions of a process, where it was recorded: its Execution and its Outcome carry the same number."""
    remote: Mapping[str, int] = {}
    """Tokens whose KV another engine sent, of requests scheduled for the first time; ``cached`` are the others then."""
    drafted: Mapping[str, int] = {}
    """Of ``tokens``, those that were guessed (speculation)."""
    running: int | None = None
    """Requests admitted, in this step or not."""
    kv_usage: float | None = None
    """0 to 1."""
    thread: int | None = None
    """The one that chose."""


class Outcome(NamedTuple):
    """What came out of one step, as the scheduler took it in. Tokens by the engine's request id."""

    process: Process
    start: int
    dur: int
    number: int | None
    """That of its Decision."""
    got: Mapping[str, int]
    """Tokens of the answer that each request got."""
    rejected: Mapping[str, int] = {}
    """Guessed tokens that the model did not confirm."""
    surplus: Mapping[str, int] = {}
    """Confirmed tokens beyond the end of the answer."""
    unused: Mapping[str, int] = {}
    """Scheduled tokens whose outcome nobody wanted any more: the request had ended, or had been evicted."""
    done: Mapping[str, str] = {}
    """Why the engine ended each request that ended with the step: stop, length, abort, error, repetition."""


class Execution(NamedTuple):
    """A worker ran one step."""

    process: Process
    start: int
    dur: int
    tokens: Mapping[str, int] | None = None
    """Tokens by request id, where the worker saw them."""
    number: int | None = None
    """That of its Decision, where it was recorded."""
    thread: int | None = None
    """The one that ran it."""


class Iteration(NamedTuple):
    """Counts of one step without request ids, from a log line or an annotation."""

    process: Process
    time: int
    """When the line was written, or when the annotated range ended: an upper bound of the step's end."""
    resolution: int
    """ns: the line may have been written up to this much later than ``time`` says."""
    engine: int
    number: int | None
    context_requests: int
    context_tokens: int
    generation_requests: int
    generation_tokens: int
    elapsed: int | None = None
    """ns, as the engine measured it."""
    kv_usage: float | None = None
    """0 to 1."""
    line: int | None = None
    """Position in ``Recording.lines`` of the line it came from."""
    before: bool = False
    """The line was written when the step was chosen: ``time`` bounds its end from below, not from above."""


class RequestFact(NamedTuple):
    """One thing a service said about a request at a time.

    ``kind``: received (front end has it), tokenized (and its prompt is tokens now), added (handed to the engine), queued,
    scheduled, first_token, finished, preempted (``value``: tokens computed so far), aborted, ended (the engine was told to
    stop), prompt_tokens, output_tokens, cached_tokens, or a duration named as its producer names it.
    """

    process: Process
    time: int
    resolution: int
    request: str
    kind: str
    value: int | None = None
    """Tokens, or ns for durations."""
    line: int | None = None
    word: str = ""
    """Of finished and ended: why, in the producer's word."""


class ClientRecord(NamedTuple):
    """What the caller measured of one request."""

    request: str
    start: int
    end: int
    """UNKNOWN where nobody measured it: a table of arrivals, a request that failed."""
    token_times: Sequence[int] = ()
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    durations: Mapping[str, int] = {}
    """ns, from the server's own response, by the producer's names (their origins differ: see the reader)."""
    error: bool = False
    response_id: str | None = None
    clock: str = "unix"
    """As ``FileRead.clock``. ``own``: nobody noted when it was sent, so that it begins at 0, beside no other."""
    ends_only: bool = False
    """``token_times`` are the first and the last one: the gap between them is none between two tokens."""


class Interval(NamedTuple):
    """A duration of a request that knows where it began: ns between two moments on one clock of its producer."""

    begin: str
    """received, dispatched, queued, scheduled, engine_first, engine_last, first_token, finished; of a caller sent, client_first.
    """
    end: str
    ns: int
    clock: str
    """front_end, engine or caller: moments on one clock may be subtracted from one another."""


class RequestSpan(NamedTuple):
    """One OpenTelemetry span of a request, or a proxy's record of it."""

    name: str
    request: str
    trace_id: str
    start: int
    end: int
    durations: Mapping[str, int]
    """ns, by attribute name."""
    tokens: Mapping[str, int]
    producer: str
    proxy: bool = False
    """It was measured on the way to the server, from the proxy's receipt to its last byte sent."""
    error: bool = False
    resolution: int = 1
    """ns: ``start`` and ``end`` may each be late or early by this much, together; their distance is exact."""
    span_id: str = ""
    parent: str = ""
    """The span above it, of those that were kept."""
    leg: str = "engine"
    """What it is of the request: engine (one that served it), server or client (a side of the HTTP request), gateway (what
    passed it on), caller (what sent it) or http (a side of another request, which led to it). One with ``proxy`` is a
    gateway's, whatever stands here."""
    service: str = ""
    """What the producer's process calls itself: legs of one service are of one machine's clock."""
    intervals: Sequence[Interval] = ()
    points: Mapping[str, int] = {}
    """Moments (see Interval, and transfer_from, transfer_until) of which the time itself was recorded, unix ns."""


class Pause(NamedTuple):
    """A process, or one thread of it, stood still or was delayed.

    ``kind``: gc, thread_lag (a thread got the processor or the interpreter lock late), loop_lag (an event loop ran late what
    was due), profiler_stop, stop_signal.
    """

    process: Process
    thread: int
    start: int
    dur: int
    kind: str
    value: int | None = None
    """gc: the generation."""


class Window(NamedTuple):
    """A stretch in which a profiler ran in a process. ``kind``: torch, cupti. ``stop``: UNKNOWN where its end was not seen."""

    process: Process
    start: int
    stop: int
    kind: str


class Sample(NamedTuple):
    """A counter read at a time. ``process`` is None for the whole machine."""

    process: Process | None
    time: int
    name: str
    """With its unit: run_ns, run_queue_wait_ns, write_bytes, pressure_cpu_some_us, ... Those of one thread begin with thread_."""
    value: int
    thread: int | None = None


class CollectiveFact(NamedTuple):
    """One collective of one rank, from a recorder of calls: which one it was, seldom how long it took."""

    process: Process
    time: int
    """When the rank called it."""
    group: str
    """The process group's id; ``members`` are its ranks where the file lists them."""
    members: Sequence[int]
    sequence: int
    """Ranks that call the same sequence number of the same group meet. Point-to-point calls count apart."""
    name: str
    """The producer's word: ``gloo:all_reduce``, ``nccl:send 0->1``."""
    point_to_point: bool = False
    elements: int | None = None
    """Numbers of the input tensors together."""
    dtype: str = ""
    state: str = ""
    started: int = UNKNOWN
    finished: int = UNKNOWN
    description: str = ""
    """What the service calls the group, where it has a name besides its id."""
    done: bool = False
    """The recorder saw it end, whatever its state says and whether or not it noted when."""
    duration: int = UNKNOWN
    """ns that it ran, where the recorder measured that by itself."""
    caller: str = ""
    """The code that called it, where frames were kept."""
    size: int = 0
    """How many ranks must meet, where a file tells it without listing them; 0 not known."""
    bytes: int | None = None
    """Size of the message, where a file tells it instead of ``elements``."""
    timed: bool = False
    """``started`` and ``finished`` are when it ran, not when somebody noticed."""
    root: int = -1
    """Number in the job of the rank that gives to all, or to which all give; -1 for none and where the file does not tell."""


class HostClock(NamedTuple):
    """What a machine says of its clock. Machines of one ``machine`` id (of one boot of one kernel) read one clock."""

    host: str
    machine: str
    max_error: int
    """ns that it may be off true time; UNKNOWN where nothing disciplines it."""


class Zone(NamedTuple):
    """What a process says of its local time, in which text logs are stamped."""

    process: Process
    ahead: int
    """ns that it is ahead of UTC."""


class GroupStatus(NamedTuple):
    """How far a rank had come in a process group when its flight recorder was dumped, kept entries or not."""

    process: Process
    group: str
    description: str
    members: Sequence[int]
    called: int | None
    """The last sequence number that was called, point-to-point calls included; None where the dump does not say."""
    ended: int | None


class OperatorNode(NamedTuple):
    """One operator of an execution trace: what it computed on and what called it, rarely when."""

    process: Process
    id: int
    """Its number in the file."""
    parent: int
    """The number of the node that called it, -1 where not known."""
    name: str
    record: int
    """Counts the operators of a process in the order in which they began, -1 where not known."""
    thread: int
    """A number of its thread, or stream, that means nothing outside the file."""
    arguments: str = ""
    """JSON object text as a profiler writes it beside an operator: ``Input Dims``, ``Input type``, a collective's name."""
    start: int = UNKNOWN
    dur: int = UNKNOWN
    collective: str = ""
    """all_reduce, all_to_allv and so on, by the producer's word."""
    size: int | None = None
    """Bytes that the collective is called with."""
    group: str = ""


class Metric(NamedTuple):
    """One reading of one series of a /metrics page, or of a monitoring system that keeps such."""

    time: int
    name: str
    labels: Mapping[str, str]
    value: float
    means: str = ""
    """What the series is, whoever exposes it: waiting, kv_usage, ttft ... (see the reader's table); empty where nobody knows."""
    kind: str = ""
    """gauge, counter or bucket (of a histogram, bounded by the label ``le``) where ``means`` is known."""
    scale: float = 1.0
    """By what ``value`` is multiplied for the unit of ``means``: seconds, tokens, a share of 1."""
    source: str = ""
    """Tells apart processes that expose the same series."""


@dataclass
class Records:
    """The rows of every kind, of one file or of a whole capture. A new kind of row is one line here."""

    decisions: list[Decision] = field(default_factory=list[Decision])
    executions: list[Execution] = field(default_factory=list[Execution])
    outcomes: list[Outcome] = field(default_factory=list[Outcome])
    iterations: list[Iteration] = field(default_factory=list[Iteration])
    requests: list[RequestFact] = field(default_factory=list[RequestFact])
    clients: list[ClientRecord] = field(default_factory=list[ClientRecord])
    spans: list[RequestSpan] = field(default_factory=list[RequestSpan])
    pauses: list[Pause] = field(default_factory=list[Pause])
    windows: list[Window] = field(default_factory=list[Window])
    samples: list[Sample] = field(default_factory=list[Sample])
    metrics: list[Metric] = field(default_factory=list[Metric])
    lines: LogLines = field(default_factory=LogLines)
    collectives: list[CollectiveFact] = field(default_factory=list[CollectiveFact])
    groups: list[GroupStatus] = field(default_factory=list[GroupStatus])
    operators: list[OperatorNode] = field(default_factory=list[OperatorNode])
    clocks: list[HostClock] = field(default_factory=list[HostClock])
    zones: list[Zone] = field(default_factory=list[Zone])
    engine: str = ""
    """vllm, sglang, transformers, or empty where nothing says."""
    redactions: int = 0


@dataclass
class Recording(Records):
    """Everything that was read of one capture."""

    files: list[FileRead] = field(default_factory=list[FileRead])
    traces: list[tuple[int, Trace]] = field(default_factory=list[tuple[int, Trace]])
    """Each with the position of its file in ``files``; a file may hold traces of several processes."""
    root: Path = Path()


def known(time: int) -> bool:
    """Whether ``time`` was recorded."""
    return time != UNKNOWN
