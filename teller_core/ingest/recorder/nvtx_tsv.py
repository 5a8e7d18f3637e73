"""``nvtx-PID.tsv``: NVTX events as the injection library writes them, tab-separated.

``B``, ``E`` push and pop of a thread in a domain; ``S``, ``F`` start and end of a range with an id; ``I`` a mark: each with
monotonic ns, thread, domain, name, category, payload, id. ``T`` thread and ``K`` category names. ``A`` an anchor: monotonic
ns, Unix ns, pid; five a second while there is something to write, so that the steering of the system's clock is followed.
``L`` what the library had to let go: monotonic ns, what, how many. A process may have several files, ``nvtx-PID-NNNN.tsv``, each
with its own anchors and names; a range may begin in one and end in the next.
"""

import json
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from teller_core.data.records import Process
from teller_core.data.table import Float64, Int64
from teller_core.data.trace import Lane, Layer, Origin
from teller_core.errors import FormatError
from teller_core.ingest.decimals import LARGEST, whole
from teller_core.ingest.files.file_names import pid_of
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import file_lines, text_of
from teller_core.ingest.nvtx_pieces import MOST, Loose, Piece, piece_of
from teller_core.ingest.row_arrays import RowArrays

NAME = "nvtx_tsv"
COLUMNS = {"A": 4, "B": 8, "E": 8, "S": 8, "F": 8, "I": 8, "T": 3, "K": 4, "L": 4}
STEP_NS = 50_000_000
"""Between two anchors a fifth of a second apart the system's clock is steered by microseconds. More is a jump."""


class Range(NamedTuple):
    """Monotonic ns, still without the domain's and category's words."""

    start: int
    stop: int
    thread: int
    domain: str
    name: str
    category: str
    payload: str
    kind: str


def sniff(head: bytes) -> bool:
    """Whether the first line is an anchor or an event with as many columns as it must have."""
    fields = head.split(b"\n", 1)[0].decode("utf-8", "replace").split("\t")
    return COLUMNS.get(fields[0]) == len(fields) and len(fields) > 2 and fields[1].isdigit()


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """A trace of ranges and marks on the Unix clock.

    Problems: ``bad_line``, ``unmatched_pop``, ``unmatched_push`` (still open at the end), ``unmatched_range``,
    ``clock_jump`` (anchors that disagree), ``time_over_int64``, ``recorder_lost``. Errors: FormatError without any anchor.
    What is unmatched in one of several files of a process is handed on as well, to be joined with that of the others.
    """
    found = Found()
    anchors: list[tuple[int, int]] = []
    names: dict[int, str] = {}
    pid = pid_of(path) or 0
    ranges = _Ranges(found)
    for line, skipped in file_lines(path):
        found.events += 1
        fields = line.rstrip(b"\r").decode("utf-8", "replace").split("\t")
        numbers = None if skipped or COLUMNS.get(fields[0]) != len(fields) else _numbers(fields)
        if numbers is None:
            found.problems["bad_line"] += 1
        elif fields[0] == "A":
            anchors.append(numbers[:2])
            pid = pid or numbers[2]
            found.other["anchor"] += 1
        elif fields[0] == "T":
            names[numbers[0]] = text_of(fields[2], 64)
            found.other["name"] += 1
        elif fields[0] == "K":
            ranges.categories[fields[1], fields[2]] = text_of(fields[3], 64)
            found.other["name"] += 1
        elif fields[0] == "L":
            found.problems["recorder_lost"] += numbers[1]
            found.other["loss"] += 1
        else:
            ranges.add(fields, numbers[0], numbers[1])
    ranges.close()
    if not anchors:
        raise FormatError(
            path.name, "it holds no clock anchor", "Record it again: it was cut before its first line ended"
        )
    found.processes.append(Process(place.host, pid))
    origin = Origin("nvtx", "unix", host=place.host or None, pid=pid)
    _trace(found, ranges, anchors, names, origin)
    if (number := piece_of(path)) is not None:
        found.piece = _piece(number, ranges, anchors, names, origin)
    return found


def _numbers(fields: list[str]) -> tuple[int, int, int] | None:
    """The numbers that a line of its kind must hold, 0 for those it has not; None where one is no number."""
    wanted = {"A": fields[1:4], "T": fields[1:2], "K": fields[2:3], "L": [fields[1], fields[-1]]}.get(
        fields[0], fields[1:3]
    )
    if not all(text.isascii() and text.isdigit() and len(text) < 20 for text in wanted):
        return None
    numbers = [whole(int(text)) for text in wanted]
    if any(number is None for number in numbers):
        return None
    first, second, third = ([number or 0 for number in numbers] + [0, 0])[:3]
    return first, second, third


class _Ranges:
    """Pushes and starts waiting for their ends."""

    def __init__(self, found: Found) -> None:
        self.found = found
        self.pushed: dict[tuple[int, str], list[tuple[int, list[str]]]] = {}
        self.started: dict[tuple[str, str], tuple[int, int, list[str]]] = {}
        self.categories: dict[tuple[str, str], str] = {}
        self.done: list[Range] = []
        self.ends: list[tuple[str, int, int, list[str]]] = []
        """Without a beginning, in their order: kind, monotonic ns, thread, fields. MOST of them at most."""

    def add(self, fields: list[str], time: int, thread: int) -> None:
        kind, domain = fields[0], fields[3]
        if kind == "B":
            self.pushed.setdefault((thread, domain), []).append((time, fields))
        elif kind == "E":
            stack = self.pushed.get((thread, domain))
            if not stack:
                self._loose("push_pop", time, thread, fields)
            self._end(stack.pop() if stack else None, time, thread, "push_pop", "unmatched_pop")
        elif kind == "S":
            if (domain, fields[7]) in self.started:
                self.found.problems["unmatched_range"] += 1
            self.started[domain, fields[7]] = (time, thread, fields)
        elif kind == "F":
            began = self.started.pop((domain, fields[7]), None)
            if began is None:
                self._loose("start_end", time, thread, fields)
            entry = None if began is None else (began[0], began[2])
            self._end(entry, time, thread if began is None else began[1], "start_end", "unmatched_range")
        else:
            self._keep(fields, time, time, thread, "mark")

    def _end(self, entry: tuple[int, list[str]] | None, time: int, thread: int, kind: str, problem: str) -> None:
        if entry is None or time < entry[0]:
            self.found.problems[problem] += 1 if entry is None else 2  # its beginning has no end either
            return
        self.found.other["range_end"] += 1
        self._keep(entry[1], entry[0], time, thread, kind)

    def _keep(self, fields: list[str], start: int, stop: int, thread: int, kind: str) -> None:
        self.found.kept += 1
        self.done.append(Range(start, stop, thread, fields[3], fields[4], fields[5], fields[6], kind))

    def _loose(self, kind: str, time: int, thread: int, fields: list[str]) -> None:
        if len(self.ends) < MOST:
            self.ends.append((kind, time, thread, fields))

    def begins(self) -> list[tuple[str, int, int, list[str]]]:
        """What never ended, as ``ends``; those of one thread in their order."""
        pushed = [
            ("push_pop", time, thread, fields) for (thread, _), stack in self.pushed.items() for time, fields in stack
        ]
        return [*pushed, *(("start_end", *told) for told in self.started.values())][:MOST]

    def close(self) -> None:
        """Count what never ended."""
        open_pushes = sum(len(stack) for stack in self.pushed.values())
        for problem, number in (("unmatched_push", open_pushes), ("unmatched_range", len(self.started))):
            if number:
                self.found.problems[problem] += number


def _trace(
    found: Found, ranges: _Ranges, anchors: list[tuple[int, int]], names: dict[int, str], origin: Origin
) -> None:
    rows = RowArrays()
    start = unix(np.array([r.start for r in ranges.done], dtype=np.int64), anchors)
    stop = unix(np.array([r.stop for r in ranges.done], dtype=np.int64), anchors)
    offsets: list[int] = [real - mono for mono, real in anchors]
    if jumps := sum(abs(after - before) > STEP_NS for before, after in pairwise(offsets)):
        found.problems["clock_jump"] = jumps
    for item, begin, end in zip(ranges.done, start.tolist(), stop.tolist(), strict=True):
        if not -LARGEST < begin <= max(begin, end) < LARGEST:
            found.kept -= 1
            found.problems["time_over_int64"] += 1
            continue
        layer, argument = _said(item.domain, item.category, item.payload, names.get(item.thread, ""), ranges)
        lane = Lane(str(origin.pid), str(item.thread), False)
        rows.add(
            begin,
            max(0, end - begin),
            text_of(item.name, 256),
            lane,
            category=item.kind,
            layer=layer,
            argument=argument,
        )
    found.traces += rows.traces(origin, by_start=True)


def _said(domain: str, category: str, payload: str, thread: str, ranges: _Ranges) -> tuple[Layer, str]:
    """The layer of a range, and what is told besides its name as JSON."""
    said = {"domain": text_of(domain, 64), "category": ranges.categories.get((domain, category), "")}
    said |= {"payload": payload[:20] if payload != "0" else "", "thread": thread}
    kept = {key: value for key, value in said.items() if value}
    return (
        Layer.COMMUNICATION if domain == "NCCL" else Layer.ENGINE,
        json.dumps(kept, sort_keys=True) if kept else "",
    )


def _piece(
    number: int, ranges: _Ranges, anchors: list[tuple[int, int]], names: dict[int, str], origin: Origin
) -> Piece:
    """What the file holds one side of."""

    def loose(some: list[tuple[str, int, int, list[str]]]) -> list[Loose]:
        found: list[Loose] = []
        times = unix(np.array([time for _, time, _, _ in some], dtype=np.int64), anchors).tolist()
        for (kind, _, thread, fields), time in zip(some, times, strict=True):
            key = (fields[3], str(thread)) if kind == "push_pop" else (fields[3], fields[7])
            layer, said = _said(fields[3], fields[5], fields[6], names.get(thread, ""), ranges)
            if abs(time) < LARGEST:
                found.append(Loose(kind, key, time, text_of(fields[4], 256), str(thread), layer, said))
        return found

    return Piece(number, origin, loose(ranges.ends), loose(ranges.begins()))


def unix(times: Int64, anchors: list[tuple[int, int]]) -> Int64:
    """int64 Unix ns of monotonic ``times``: the clocks' difference, interpolated between ``anchors`` (monotonic, Unix).

    Before the first and after the last anchor the nearest difference holds.
    """
    ordered = sorted(anchors)
    zero, base = ordered[0][0], ordered[0][1] - ordered[0][0]
    drift = [float(real - mono - base) for mono, real in ordered]
    since = [float(mono - zero) for mono, _ in ordered]
    added: Float64 = np.interp((times - zero).astype(np.float64), since, drift)
    return times + base + np.rint(added).astype(np.int64)
