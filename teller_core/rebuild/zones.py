"""The zone of text logs, found from evidence.

A text log stamps wall time without a zone; its reader takes it for UTC (``FileRead.clock`` ``wall``). Zones differ by
quarters of an hour, so one event known on the Unix clock as well tells the zone: a request's lines lie inside its caller's
wait, near its decisions, or a line stands in a second file that has the Unix time. Without such evidence the lines stay on
their own clock and time nothing but themselves.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from teller_core.data.records import LogLine, Recording, known
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.identity import outer_names

QUARTER_NS = 900 * 10**9
"""Zones are whole quarters of an hour apart (IANA time zone database)."""
NEAR_NS = 60 * 10**9
"""An event and its line on another clock lie closer than this, whatever the zone."""
AGREE = 0.9
"""Share of the pairs that must tell one zone."""


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
    wall = {i for i, file in enumerate(recording.files) if file.clock == "wall"}
    wall &= {line.file for line in recording.lines if known(line.time) and known(line.resolution)}
    if not wall or not _has_unix(recording, wall):
        return recording
    shifts = _shifts(recording, wall)
    lost = {file for file in wall if file not in shifts}
    problems["files_of_unknown_zone"] += len(lost)
    problems["lines_of_unknown_zone"] += sum(line.file in lost for line in recording.lines)
    return _shifted(recording, shifts, lost)


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
        or any(line.file not in wall for line in recording.lines)
    )


def _shifts(recording: Recording, wall: set[int]) -> dict[int, int]:
    votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
    for pair in _pairs(recording, wall):
        middle = (pair.low + pair.high) // 2
        shift = round((middle - pair.wall) / QUARTER_NS) * QUARTER_NS
        near = pair.low - NEAR_NS <= pair.wall + shift <= pair.high + NEAR_NS
        votes[pair.file][shift if near else UNKNOWN] += 1
    told: dict[int, int] = {}
    for file, counted in votes.items():
        shift, count = counted.most_common(1)[0]
        if known(shift) and count >= AGREE * counted.total():
            told[file] = shift
    return told


def _pairs(recording: Recording, wall: set[int]) -> Iterator[_Pair]:
    yield from _request_pairs(recording, wall)
    yield from _line_pairs(recording.lines, wall)


def _request_pairs(recording: Recording, wall: set[int]) -> Iterator[_Pair]:
    """A request's first line in a file against when its callers waited, or when it was first decided on."""
    first: dict[tuple[int, str], int] = {}
    for fact in recording.requests:
        file = recording.lines[fact.line].file if fact.line is not None else -1
        if file in wall and known(fact.time):
            key = (file, fact.request)
            first[key] = min(first.get(key, fact.time), fact.time)
    begun = _first_known(recording)
    for (file, request), time in first.items():
        window = next((begun[name] for name in outer_names(request) if name in begun), None)
        if window is not None:
            yield _Pair(file, time, *window)


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


def _line_pairs(lines: Sequence[LogLine], wall: set[int]) -> Iterator[_Pair]:
    """Lines that stand once in a wall-clock file and once in another with the Unix time."""
    here: defaultdict[str, list[LogLine]] = defaultdict(list)
    there: defaultdict[str, list[LogLine]] = defaultdict(list)
    for line in lines:
        if known(line.time) and len(line.untrusted_text) > 20:
            (here if line.file in wall else there)[line.untrusted_text].append(line)
    for text, own in here.items():
        other = there.get(text, ())
        if len(own) == 1 and len(other) == 1:
            yield _Pair(own[0].file, own[0].time, other[0].time, other[0].time)


def _shifted(recording: Recording, shifts: Mapping[int, int], lost: set[int]) -> Recording:
    def moved(time: int, file: int) -> int:
        return time + shifts[file] if file in shifts and known(time) else time

    def of_line(time: int, line: int | None) -> int:
        file = recording.lines[line].file if line is not None else -1
        return UNKNOWN if file in lost else moved(time, file)

    return replace(
        recording,
        iterations=[row._replace(time=of_line(row.time, row.line)) for row in recording.iterations],
        requests=[row._replace(time=of_line(row.time, row.line)) for row in recording.requests],
        lines=[line._replace(time=moved(line.time, line.file)) for line in recording.lines],
    )
