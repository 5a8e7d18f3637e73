"""One log in several files: rotated parts that go on one after another, parts that overlap, and copies.

A line that two files hold at one time with one text is the same line where a whole run of them is the same: the end of the
file that begins first is the beginning of the other, or all of the other lies in it. Single lines that are alike prove
nothing: services write some of them all the time.
"""

import re
from array import array
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TypeVar

from teller_core.data.log_lines import LogLines
from teller_core.data.process import Process
from teller_core.data.records import Iteration, RequestFact
from teller_core.data.table import UNKNOWN
from teller_core.ingest.found import Found

REPEATED = "line of another file"
"""What lines are called that another file of the capture holds as well."""
LEAST_RUN = 3
"""Fewer lines than this that end one file and begin another may be alike by chance."""
_PACKED = re.compile(r"\.(?:gz|zst|xz|bz2|lz4)$")
_TURN = re.compile(r"\.\d{1,4}$|[.-]\d{8}(?:-\d{1,10})?(?=\.|$)|[.-]\d{4}-\d\d-\d\d(?:[T_-][\d:_-]{1,30})?(?=\.|$)")
"""What logrotate, Docker, the kubelet, loguru and Python's handlers add to the name of a part."""

Fact = TypeVar("Fact", Iteration, RequestFact)


def log_of(name: str) -> str:
    """The name of the log that the file called ``name`` is a part of: its own where it is none."""
    return _TURN.sub("", _PACKED.sub("", name), count=1)


def age(name: str) -> int:
    """How many parts of its log came after the file called ``name``, as far as that tells it."""
    name = _PACKED.sub("", name)
    number = name.rpartition(".")[2]
    return int(number) if len(number) < 5 and number.isdecimal() else int(log_of(name) != name)


@dataclass
class _Log:
    """A file that was read: where its lines stand in the recording, the hosts that wrote them, when it ended, and the pid of the
    process whose lines do not tell it. ``marks`` are made when another log comes: most captures have one.
    """

    number: int
    name: str
    lines: slice
    hosts: frozenset[str]
    end: int
    pid: int
    marks: "array[int] | None" = None


@dataclass
class Logs:
    """The logs of a capture, in the order of their begin. ``lines``: those that were kept of all of them."""

    lines: LogLines
    read: list[_Log] = field(default_factory=list[_Log])
    whole: dict[int, int] = field(default_factory=dict[int, int])
    """By the position of a file: that of the first part of its log."""

    def new(self, found: Found, name: str, position: int) -> Found:
        """``found``, the log called ``name``, without lines that an earlier file holds, these counted as REPEATED; its unnamed
        process is that of the part before it. Facts of one log are told apart by ``whole``, not by file. What is returned is to
        be added to ``lines`` next.
        """
        hosts = frozenset(process.host for process in found.lines.processes())
        earlier = [log for log in self.read if log.hosts == hosts]
        marks = _marks(found.lines, slice(None)) if earlier else None
        runs = ((_run(self._marks_of(log), marks), log) for log in earlier if marks)
        repeated, before = max(runs, key=lambda one: one[0], default=(0, None))
        begin = next((time for time in found.lines.time if time != UNKNOWN), UNKNOWN)
        if before is None or not repeated:
            before = next((log for log in reversed(earlier) if _goes_on(log, log_of(name), begin)), None)
        pid, end = _pid(found), max(found.lines.time, default=UNKNOWN)
        if before is not None:
            self.whole[position] = self.whole.get(before.number, before.number)
            found = _same_writer(found, before.pid) if before.pid and not pid else found
            pid = pid or before.pid
        found = _without(found, repeated) if repeated else found
        at = slice(len(self.lines), len(self.lines) + len(found.lines))
        self.read.append(_Log(position, log_of(name), at, hosts, end, pid, marks))
        return found

    def _marks_of(self, log: _Log) -> "array[int]":
        if log.marks is None:
            log.marks = _marks(self.lines, log.lines)
        return log.marks


def _goes_on(log: _Log, name: str, begin: int) -> bool:
    return log.name == name and UNKNOWN not in (begin, log.end) and begin >= log.end


def _marks(lines: LogLines, some: slice) -> "array[int]":
    """A number for each of ``some`` lines: equal for lines of one time, rule and text."""
    first, last, _ = some.indices(len(lines))
    texts = (islice(column, first, last) for column in (lines.untrusted_text, lines.fields))
    return array("q", map(hash, zip(lines.time[first:last], *texts, strict=True)))


def _run(first: "array[int]", second: "array[int]") -> int:
    """How many lines of ``second``, from its first on, ``first`` holds as well: up to the end of one of them, else 0."""
    if not second:
        return 0
    at = -1
    for _ in range(first.count(second[0])):
        at = first.index(second[0], at + 1)
        length = min(len(first) - at, len(second))
        if first[at : at + length] == second[:length] and length >= min(LEAST_RUN, len(second)):
            return length
    return 0


def _pid(found: Found) -> int:
    """Of the process whose lines do not name it, where the log tells its pid elsewhere."""
    pids = {process.pid for process in found.lines.processes() if process.role == "unknown" and process.rank is None}
    pids.discard(0)
    return pids.pop() if len(pids) == 1 else 0


def _same_writer(found: Found, pid: int) -> Found:
    def better(process: Process) -> Process:
        return process._replace(pid=pid) if process[1:] == (0, "unknown", None) else process

    found.lines.rewrite(better)
    return replace(
        found,
        iterations=[fact._replace(process=better(fact.process)) for fact in found.iterations],
        requests=[fact._replace(process=better(fact.process)) for fact in found.requests],
        pauses=[pause._replace(process=better(pause.process)) for pause in found.pauses],
    )


def _without(found: Found, repeated: int) -> Found:
    """``found`` without its first lines and what they tell."""

    def left(facts: list[Fact]) -> list[Fact]:
        kept = [fact for fact in facts if fact.line is None or fact.line >= repeated]
        return [fact if fact.line is None else fact._replace(line=fact.line - repeated) for fact in kept]

    found.other[REPEATED] += repeated
    return replace(
        found,
        lines=found.lines.since(repeated),
        iterations=left(found.iterations),
        requests=left(found.requests),
        kept=found.kept - repeated,
    )
