"""The zone of text logs, found from evidence.

A text log stamps wall time without a zone; its reader takes it for UTC (``FileRead.clock`` ``wall``). Zones differ by
quarters of an hour, so one event known on the Unix clock as well tells the zone: a request's lines lie inside its caller's
wait, near its decisions, a line about a step has the time that the engine counted, or it stands in a second file that has the
Unix time. Or a process that wrote lines says itself what its local time is. Without such evidence the lines stay on their own
clock and time nothing but themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from teller_core.data.log_lines import LogLines
from teller_core.data.records import Iteration, Recording, known
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.engines import place
from teller_core.rebuild.identity import outer_names

QUARTER_NS = 900 * 10**9
"""Zones are whole quarters of an hour apart (IANA time zone database)."""
NEAR_NS = 60 * 10**9
"""An event and its line on another clock lie closer than this, whatever the zone."""
AGREE = 0.9
"""Share of the pairs that must tell one zone."""
MANY = 50_000
"""Lines of wall-clock files, and of others, that are compared by their text."""
TWICE = -1
"""Stands for the position of a text that returns."""


class _Pair(NamedTuple):
    """The same event: written at ``wall``, and within [``low``, ``high``] of the Unix clock."""

    file: int
    wall: int
    low: int
    high: int


def on_unix_clock(recording: Recording, problems: Counter[str]) -> Recording:
    """The recording with its wall-clock lines, and the records read from them, on the Unix clock where evidence allows.

    Where a recording holds Unix times and a file's zone cannot be told, the records read from its lines lose their times.
    Problems: ``files_of_unknown_zone``, ``lines_of_unknown_zone``.
    """
    lines = recording.lines
    timed = {file for file in set(lines.file) if recording.files[file].clock in ("wall", "local")}
    timed &= _timed(lines)
    wall = {file for file in timed if recording.files[file].clock == "wall"}
    if not timed or not _has_unix(recording, timed):
        return recording
    shifts = _shifts(recording, wall)
    lost = timed - shifts.keys()
    problems["files_of_unknown_zone"] += len(lost)
    problems["lines_of_unknown_zone"] += sum(file in lost for file in lines.file)
    return _shifted(recording, shifts, lost)


def _timed(lines: LogLines) -> set[int]:
    """The files with lines that have a time of their own."""
    columns = zip(lines.file, lines.time, lines.resolution, strict=True)
    return {file for file, time, resolution in columns if known(time) and known(resolution)}


def _has_unix(recording: Recording, wall: set[int]) -> bool:
    """Whether anything besides the wall-clock files has a time."""
    tables: Sequence[Sequence[object]] = (
        recording.decisions,
        recording.executions,
        [client for client in recording.clients if client.clock == "unix"],
        recording.spans,
        recording.samples,
        recording.pauses,
    )
    return (
        any(tables)
        or any(trace.origin.clock == "unix" for _, trace in recording.traces)
        or any(file not in wall for file in recording.lines.file)
    )


def _shifts(recording: Recording, wall: set[int]) -> dict[int, int]:
    votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for pair in _pairs(recording, wall):
        middle = (pair.low + pair.high) // 2
        shift = round((middle - pair.wall) / QUARTER_NS) * QUARTER_NS
        near = pair.low - NEAR_NS <= pair.wall + shift <= pair.high + NEAR_NS
        votes[pair.file][shift if near else UNKNOWN] += 1
    for file, ahead in _said(recording, wall):
        votes[file][-ahead] += 1
    told: dict[int, int] = {}
    for file, counted in votes.items():
        shift, count = counted.most_common(1)[0]
        if known(shift) and count >= AGREE * counted.total():
            told[file] = shift
    return told


def _said(recording: Recording, wall: set[int]) -> set[tuple[int, int]]:
    """(file, ns ahead of UTC): the local times of processes that wrote lines of wall-clock files."""
    told = {(place(zone.process), zone.ahead) for zone in recording.zones if zone.process.pid > 0}
    if not told:
        return set()
    writers = {(file, place(process)) for file, process in recording.lines.writers() if file in wall}
    return {(file, ahead) for file, writer in writers for where, ahead in told if where == writer}


def _pairs(recording: Recording, wall: set[int]) -> Iterator[_Pair]:
    yield from _request_pairs(recording, wall)
    yield from _step_pairs(recording, wall)
    yield from _line_pairs(recording.lines, wall)


def _request_pairs(recording: Recording, wall: set[int]) -> Iterator[_Pair]:
    """A request's first line in a file against when its callers waited, or when it was first decided on."""
    first: dict[tuple[int, str], int] = {}
    for fact in recording.requests:
        file = recording.lines.file[fact.line] if fact.line is not None else -1
        if file in wall and known(fact.time):
            key = (file, fact.request)
            first[key] = min(first.get(key, fact.time), fact.time)
    begun = _first_known(recording)
    for (file, request), time in first.items():
        window = next((begun[name] for name in outer_names(request) if name in begun), None)
        if window is not None:
            yield _Pair(file, time, *window)


def _step_pairs(recording: Recording, wall: set[int]) -> Iterator[_Pair]:
    """Lines about steps whose time the engine's own counters tell."""
    for row in recording.iterations:
        if row.line is not None and recording.lines.file[row.line] in wall and _counted(recording, row):
            yield _Pair(recording.lines.file[row.line], recording.lines.time[row.line], row.time, row.time)


def _counted(recording: Recording, row: Iteration) -> bool:
    """Whether the time of a step with a line is not its line's, but that of the engine's counters, on the Unix clock."""
    return row.line is not None and known(row.time) and row.time != recording.lines.time[row.line]


def _first_known(recording: Recording) -> Mapping[str, tuple[int, int]]:
    """By name, the window of the Unix clock in which a request came. Names that came twice tell nothing."""
    windows: dict[str, tuple[int, int]] = {}
    twice: set[str] = set()
    for client in recording.clients:
        if client.clock != "unix" or not known(client.end):
            continue
        for name in {client.request, client.response_id or client.request}:
            twice |= {name} & windows.keys()
            windows[name] = (client.start, client.end)
    for span in recording.spans:
        windows.setdefault(span.request, (span.start, span.end))
    for decision in recording.decisions:
        for name in decision.tokens:
            windows.setdefault(name, (decision.start, decision.start))
    return {name: window for name, window in windows.items() if name not in twice}


def _line_pairs(lines: LogLines, wall: set[int]) -> Iterator[_Pair]:
    """Lines that stand once in a wall-clock file and once in another with the Unix time. The first MANY of each are plenty."""
    here, there = _once(lines, lambda file: file in wall), _once(lines, lambda file: file not in wall)
    for text, at in here.items():
        other = there.get(text, TWICE)
        if TWICE not in (at, other):
            yield _Pair(lines.file[at], lines.time[at], lines.time[other], lines.time[other])


def _once(lines: LogLines, wanted: Callable[[int], bool]) -> dict[str, int]:
    """The positions of the first MANY timed lines of ``wanted`` files by their text, TWICE for a text that returns."""
    found: dict[str, int] = {}
    for at, file in enumerate(lines.file):
        if wanted(file) and known(lines.time[at]) and len(text := lines.untrusted_text[at]) > 20:
            found[text] = TWICE if text in found else at
            if len(found) >= MANY:
                break
    return found


def _shifted(recording: Recording, shifts: Mapping[int, int], lost: set[int]) -> Recording:
    def moved(time: int, file: int) -> int:
        return time + shifts[file] if file in shifts and known(time) else time

    def of_line(time: int, line: int | None) -> int:
        file = recording.lines.file[line] if line is not None else -1
        return UNKNOWN if file in lost else moved(time, file)

    return replace(
        recording,
        iterations=[
            row if _counted(recording, row) else row._replace(time=of_line(row.time, row.line))
            for row in recording.iterations
        ],
        requests=[row._replace(time=of_line(row.time, row.line)) for row in recording.requests],
        lines=recording.lines.at(map(moved, recording.lines.time, recording.lines.file)),
    )
