"""One capture, rebuilt: what judging works on and what the store keeps."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from teller_core.data.readings import Buckets, Readings, no_buckets, no_readings
from teller_core.data.records import FileRead
from teller_core.data.steps import Lines, Participation, Requests, Steps, StepWork, TokenTimes, Transfers, no_transfers
from teller_core.data.table import Int32, Int64, Text, UInt8, check_columns
from teller_core.data.tree import Tree

GRAPH_CAPTURE = "graph_capture"
"""The role of a rank whose trace recorded how graphs were captured, before any request: no time in which work was done."""


@dataclass(frozen=True)
class Rank:
    """One process of the service. ``tree`` is None where no trace of it was recorded.

    ``shift`` int ns was added to its own clock to put it on the capture's; ``clock_error`` int ns bounds the mistake,
    UNKNOWN where nothing bounds it.
    """

    rank: int
    host: str
    pid: int
    role: str
    tree: Tree | None
    file: int
    """Position in ``Capture.files``, -1 for none."""
    shift: int = 0
    clock_error: int = 0
    kernels: int = 0
    kernel_time: int = 0
    problems: Mapping[str, int] = field(default_factory=dict[str, int])


def processes(ranks: Sequence[Rank]) -> Int32:
    """int32 a rank: the first position of a recording of the same process. Two recorders of one process are no two ranks; and
    where nobody knows the pid, which is 0 then, each recording is a process of its own.
    """
    first: dict[tuple[str, int], int] = {}
    found = [first.setdefault((rank.host, rank.pid), at) if rank.pid > 0 else at for at, rank in enumerate(ranks)]
    return np.array(found, np.int32)


def process_name(host: str, pid: int, rank: int | None) -> str:
    """How the text columns of a capture call a process: by its pid; where nobody knows that, by its rank, if it has one."""
    return f"{host}/{pid}" if pid > 0 or rank is None or rank < 0 else f"{host}/rank-{rank}"


def names_of(ranks: Sequence[Rank]) -> list[tuple[str, ...]]:
    """What the text columns call the process of each of ``ranks``. A name without pid and rank is that of the only rank of its
    host that has no pid, and of none where there are several: whose it is, nobody knows.
    """
    bare: dict[str, set[int]] = {}
    for at, rank in enumerate(ranks):
        if rank.pid <= 0:
            bare.setdefault(rank.host, set()).add(rank.rank if rank.rank >= 0 else -1 - at)
    found: list[tuple[str, ...]] = []
    for rank in ranks:
        named, alone = rank.pid > 0 or rank.rank >= 0, rank.pid <= 0 and len(bare[rank.host]) == 1
        own = [process_name(rank.host, rank.pid, rank.rank)] if named else []
        found.append((*own, process_name(rank.host, rank.pid, None)) if alone else tuple(own))
    return found


class Joined(NamedTuple):
    """How much of what one recording says was found again in another one of the same process.

    ``kind``: ``graph`` (kernels of ``launches`` replays, ``matched`` of them under the operators that the graph was captured
    with) or ``execution_trace`` (its operators, ``matched`` of them found among the spans, ``used`` of which had no shapes of
    their own). ``name``: the capture's annotation, or the file; untrusted text, cleaned.
    """

    kind: str
    name: str
    rank: int
    """Position in ``Capture.ranks``, -1 for a process that has none."""
    matched: int
    total: int
    used: int = 0
    launches: int = 0
    by_name: bool = True
    """Names agreed; else the order alone told which is which."""


class Balance(NamedTuple):
    """Of how many requests it was asked whether what was scheduled for them adds up, and of how many it does.

    ``terms``: their sums over the requests that were asked about, in tokens. ``unchecked``: how many could not be, by why.
    """

    checked: int = 0
    holds: int = 0
    terms: Mapping[str, int] = {}
    unchecked: Mapping[str, int] = {}


@dataclass(frozen=True)
class Pauses:
    """Times in which a process or a thread stood still, ordered by start. ``dur`` int64 ns."""

    start: Int64
    dur: Int64
    thread: Int64
    process: Text
    """See :func:`process_name`."""
    role: Text
    kind: Text

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


STEP_THREAD = "step_thread_"
"""How the counters begin of the one thread of a process that runs its steps, or decides on them where it runs none."""


@dataclass(frozen=True)
class Samples:
    """Counters over time, one row an interval between two readings, ordered by start.

    ``delta`` int64: the growth of a counter in the interval, in the unit its name ends with. ``name``: see also STEP_THREAD.
    """

    start: Int64
    stop: Int64
    name: Text
    process: Text
    """See :func:`process_name`; empty for the whole machine."""
    role: Text
    delta: Int64

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Collectives:
    """One row a collective and rank. ``group`` int32 and ``sequence`` int64 tell which collective; ranks with the same pair met.

    ``step`` int32 (-1 unknown), ``rank`` int32 into ``Capture.ranks``, ``row`` int32 of the rank's tree (-1), ``start``,
    ``dur`` int64 ns on the capture's clock; ``wait`` int64 ns: the part spent waiting for the last rank to arrive, UNKNOWN
    where the clocks do not allow to tell; ``late`` int32: the rank that came last, -1 where nobody may be named.
    """

    group: Int32
    sequence: Int64
    step: Int32
    rank: Int32
    row: Int32
    start: Int64
    dur: Int64
    wait: Int64
    late: Int32

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Meetings:
    """One row a collective that ranks were told to have met in: the row that ``Collectives.sequence`` of its calls names.

    ``group`` and ``kind`` say which (untrusted text, cleaned), ``how`` why it is believed: ``sequence`` (PyTorch's number),
    ``recorder``, ``step`` or ``order``. ``came`` int32 ranks were seen, ``size`` int32 must come (0 not known). int64 ns, UNKNOWN
    where the clocks do not allow to tell: ``arrived`` (the last call, on the capture's clock), ``by`` (how long after the one
    before it, where somebody may be named), ``waited`` (all waits together), ``transfer`` (the shortest time without a wait).
    ``late`` int32 into ``Capture.ranks``, -1 where nobody may be named; ``kept`` int32: the row of its tree that took most of the
    time in which the others waited, -1 for none. ``root`` int32 into ``Capture.ranks``: the rank from which all others get
    (broadcast, scatter, a send) or to which all give (reduce, gather), -1 for none and where it was not recorded.
    """

    group: Text
    kind: Text
    how: Text
    came: Int32
    size: Int32
    arrived: Int64
    late: Int32
    by: Int64
    waited: Int64
    transfer: Int64
    kept: Int32
    root: Int32

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


def no_meetings() -> Meetings:
    """A table without rows."""
    few, many = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    return Meetings([], [], [], few, few, many, few, many, many, many, few, few)


@dataclass(frozen=True)
class Absences:
    """One row for each rank that did not come to a collective in which others were waiting when they were last heard of.

    Which one: ``group`` and its ``description`` (untrusted text, cleaned), ``sequence`` int64, ``name`` (the producer's
    word), ``elements`` int64 (-1 not known), ``dtype``, ``point_to_point`` uint8. ``rank`` int32: the NUMBER of the missing
    rank, ``waiters`` those of the ranks that waited, as ``0-3,5``, ``waiting`` int32 how many they are. int64 Unix ns:
    ``since``, the first other rank's call; ``last_seen``, the missing rank's last recorded call anywhere; UNKNOWN.
    ``certain`` uint8: 0 where the missing rank has no dump, or may have called and forgotten it.
    """

    group: Text
    description: Text
    sequence: Int64
    name: Text
    elements: Int64
    dtype: Text
    rank: Int32
    since: Int64
    waiting: Int32
    waiters: Text
    last_seen: Int64
    point_to_point: UInt8
    certain: UInt8

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


def no_absences() -> Absences:
    """A table without rows."""
    few, many, flags = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint8)
    return Absences([], [], many, [], many, [], few, many, few, [], many, flags, flags)


@dataclass(frozen=True)
class Disagreements:
    """One row for what a rank recorded of a collective that does not fit what the others recorded of it.

    ``kind``: ``other_call``, it called something else than they under this number, or ``not_ended``: it called it, and never
    recorded its end, nor that of any later one, though they recorded theirs up to the number ``until``. ``group``,
    ``description``, ``sequence`` int64, ``name``, ``elements`` int64 (-1 not known), ``dtype``, ``rank`` int32 as in
    :class:`Absences`; ``time`` int64 Unix ns: its call, UNKNOWN. ``other_name``, ``other_elements``, ``other_dtype``: what
    ``others`` int32 ranks called; ``until`` int64, -1 for ``other_call``; ``caller``: the code that called it, where known.
    """

    kind: Text
    group: Text
    description: Text
    sequence: Int64
    rank: Int32
    name: Text
    elements: Int64
    dtype: Text
    time: Int64
    other_name: Text
    other_elements: Int64
    other_dtype: Text
    others: Int32
    until: Int64
    caller: Text

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


def no_disagreements() -> Disagreements:
    """A table without rows."""
    few, many = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
    return Disagreements([], [], [], many, few, [], many, [], many, [], many, [], few, many, [])


@dataclass(frozen=True)
class Capture:
    """What was recorded together, rebuilt. ``id`` is the content hash of its files."""

    id: str
    name: str
    engine: str
    files: Sequence[FileRead]
    ranks: Sequence[Rank]
    steps: Steps
    work: StepWork
    requests: Requests
    participation: Participation
    tokens: TokenTimes
    lines: Lines
    pauses: Pauses
    samples: Samples
    collectives: Collectives
    meetings: Meetings = field(default_factory=no_meetings)
    absences: Absences = field(default_factory=no_absences)
    disagreements: Disagreements = field(default_factory=no_disagreements)
    transfers: Transfers = field(default_factory=no_transfers)
    readings: Readings = field(default_factory=no_readings)
    buckets: Buckets = field(default_factory=no_buckets)
    problems: Mapping[str, int] = field(default_factory=dict[str, int])
    """Losses of joining the files, by name. Those of reading stand with the files."""
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    """Series of a /metrics page that judging uses, summed over labels, by name."""
    redactions: int = 0
    joined: Sequence[Joined] = ()
    """What execution traces and traces of graph capture gave to the spans of others."""
    balance: Balance = field(default_factory=Balance)
    tier: int = 0
    """The best tier (0 to 4) of what was recorded."""

    def check(self) -> None:
        """Raise ValueError where a table contradicts itself."""
        for table in (
            self.steps,
            self.work,
            self.requests,
            self.participation,
            self.lines,
            self.pauses,
            self.samples,
            self.collectives,
            self.meetings,
            self.absences,
            self.disagreements,
            self.transfers,
            self.readings,
            self.buckets,
        ):
            table.check()
        for rank in self.ranks:
            if rank.tree is not None:
                rank.tree.check()
