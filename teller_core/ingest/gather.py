"""What the files of one capture hold, gathered into one :class:`Recording`."""

from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Protocol, TypeVar

from teller_core.data.records import FileRead, Iteration, Process, Recording, Records, RequestFact
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import LARGEST
from teller_core.ingest.found import Found
from teller_core.ingest.nvtx_pieces import Piece, joined
from teller_core.ingest.recorder import engine_stats
from teller_core.ingest.roles import with_roles
from teller_core.ingest.rotation import Logs
from teller_core.ingest.told_twice import iterations_joined, spans_joined

ROWS = tuple(each.name for each in fields(Records) if each.name not in ("engine", "redactions"))
"""The tables that every file may add to."""


@dataclass
class Gathered:
    """A recording to be, and what its files tell besides records."""

    recording: Recording
    processes: list[Process] = field(default_factory=list[Process])
    engines: Counter[str] = field(default_factory=Counter[str])
    redactions: int = 0
    times: list[int] = field(default_factory=list[int])
    """Unix ns: one of each file that has any."""
    logs: Logs = field(init=False)
    pieces: list[tuple[int, Piece]] = field(default_factory=list[tuple[int, Piece]])

    def __post_init__(self) -> None:
        self.logs = Logs(self.recording.lines)

    def add(self, file: FileRead, found: Found) -> None:
        """Append ``found``, which was read from ``file``. Positions of lines move by those of the files before."""
        recording, first_line = self.recording, len(self.recording.lines)
        position = len(recording.files)
        if len(found.lines):
            found = self.logs.new(found, file.name, position)
            file = file._replace(events_kept=found.kept, events_other=dict(found.other))
        recording.files.append(file)
        recording.traces.extend((position, trace) for trace in found.traces)
        moved = replace(
            found,
            iterations=[_moved(fact, first_line) for fact in found.iterations],
            requests=[_moved(fact, first_line) for fact in found.requests],
        )
        for kind in ROWS:
            getattr(recording, kind).extend(getattr(moved, kind))
        self.processes += found.processes
        self.pieces += [(position, found.piece)] if found.piece else []
        self.redactions += found.redactions
        if found.engine:
            self.engines[found.engine] += 1
        self.note_time(found)

    def middle(self) -> int:
        """Unix ns in the middle of what was read so far by that clock; 0 where nothing was."""
        return sorted(self.times)[len(self.times) // 2] if self.times else 0

    def finish(self) -> Recording:
        """The recording, with one role for every process and nothing told twice. Ranges that lie in several files are traces
        behind all others.
        """
        recording = self.recording
        recording.traces += joined(self.pieces, recording.files)
        with_roles(recording, self.processes)
        whole = self.logs.whole
        file_of = (
            array("i", (whole.get(file, file) for file in recording.lines.file)) if whole else recording.lines.file
        )
        recording.iterations[:] = iterations_joined(told_once(recording.iterations, file_of, _step))
        recording.spans[:] = spans_joined(recording.spans, engine_stats.PRODUCER)
        recording.requests[:] = told_once(recording.requests, file_of, _request)
        engine = self.engines.most_common(1)[0][0] if self.engines else ""
        return replace(recording, engine=engine, redactions=self.redactions)

    def note_time(self, found: Found) -> None:
        """Take down a time of ``found``, where it tells one by the clock of the world."""
        if found.clock != "unix":
            return
        starts = [record.start for record in (*found.decisions[:1], *found.clients[:1], *found.pauses[:1])]
        starts += [span.start for span in found.spans[:1]]
        starts += [record.time for record in (*found.samples[:1], *found.collectives[:1])]
        starts += found.lines.time[:1]
        starts += [int(trace.start[0]) for trace in found.traces if trace.origin.clock == "unix" and len(trace)]
        known = [start for start in starts if start != UNKNOWN]
        self.times += known[:1]


class _OfLine(Protocol):
    @property
    def line(self) -> int | None: ...
    @property
    def resolution(self) -> int: ...


T = TypeVar("T", bound=_OfLine)
Fact = TypeVar("Fact", Iteration, RequestFact)


def _moved(fact: Fact, lines: int) -> Fact:
    """``fact`` with the position of its line in the capture, before which other files have ``lines``."""
    return fact if fact.line is None else fact._replace(line=fact.line + lines)


def told_once(facts: Sequence[T], file_of: Sequence[int], key: Callable[[T], object]) -> list[T]:
    """``facts`` without those that another file tells with a finer clock: services log to the console and to a file.

    ``file_of[line]`` is the file of each line, one number for all parts of a log. Facts of one ``key`` in one file are all kept:
    a server that was started again counts its steps again.
    """
    best: dict[object, tuple[int, int]] = {}
    for fact in facts:
        if fact.line is not None:
            rank = (fact.resolution if fact.resolution != UNKNOWN else LARGEST, file_of[fact.line])
            best[key(fact)] = min(best.get(key(fact), rank), rank)
    return [fact for fact in facts if fact.line is None or best[key(fact)][1] == file_of[fact.line]]


def _step(fact: Iteration) -> object:
    """What two lines about one step have in common, whoever wrote them."""
    counts = fact.context_requests, fact.context_tokens, fact.generation_requests, fact.generation_tokens
    return (fact.process.host, fact.engine, fact.number, counts, fact.elapsed) if fact.number is not None else id(fact)


def _request(fact: RequestFact) -> object:
    return fact.process.host, fact.request, fact.kind, fact.value
