"""Ranges that begin in one piece of a process' NVTX recording and end in a later one: joined once each piece has been read."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from teller_core.data.records import FileRead
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.ingest.row_arrays import RowArrays

_PIECE = re.compile(r"nvtx-\d{1,9}-(?P<piece>\d{1,9})\.tsv", re.ASCII)
MOST = 100_000
"""Loose ends of one piece. A program has as many ranges open as its threads are deep."""
ENDS = {"push_pop": ("unmatched_pop", "unmatched_push"), "start_end": ("unmatched_range", "unmatched_range")}
"""By kind, as what the end and the beginning are counted while they are apart."""


class Loose(NamedTuple):
    """A beginning or an end whose other side the piece does not hold. ``key``: what both have in common, in one process."""

    kind: str
    key: tuple[str, ...]
    time: int
    """Unix ns."""
    name: str = ""
    thread: str = ""
    layer: Layer = Layer.ENGINE
    argument: str = ""


@dataclass(frozen=True)
class Piece:
    """One piece of a recording: its place among the others, whose it is, its loose ends and beginnings, each in their order."""

    number: int
    origin: Origin
    ends: Sequence[Loose] = ()
    begins: Sequence[Loose] = ()


@dataclass
class Open:
    """Ranges of a process that no piece so far has ended: the position of the file and the beginning."""

    piece: int = -1
    of: defaultdict[tuple[str, tuple[str, ...]], list[tuple[int, Loose]]] = field(
        default_factory=lambda: defaultdict(list)
    )


def piece_of(path: Path) -> int | None:
    """The place of the file among those of its process, None where it is the only one."""
    found = _PIECE.fullmatch(path.name)
    return int(found["piece"]) if found else None


def joined(pieces: Sequence[tuple[int, Piece]], files: list[FileRead]) -> list[tuple[int, Trace]]:
    """A trace for each process with ranges that cross, each with the position of the file where the last one ends.

    ``pieces``: each with its position in ``files``, in which what was counted as unmatched and is not is counted anew.
    """
    processes: defaultdict[tuple[str | None, int | None], list[tuple[int, Piece]]] = defaultdict(list)
    for position, piece in pieces:
        processes[piece.origin.host, piece.origin.pid].append((position, piece))
    found: list[tuple[int, Trace]] = []
    for of in processes.values():
        rows, last = RowArrays(), -1
        for first, begin, position, end in _crossing(sorted(of, key=lambda one: one[1].number)):
            files[first] = _matched(files[first], begin.kind, begins=True)
            files[position] = _matched(files[position], begin.kind, begins=False)
            lane = Lane(str(of[0][1].origin.pid), begin.thread, False)
            rows.add(
                begin.time,
                end.time - begin.time,
                begin.name,
                lane,
                category=begin.kind,
                layer=begin.layer,
                argument=begin.argument,
            )
            last = position
        found += [(last, trace) for trace in rows.traces(of[0][1].origin, by_start=True)]
    return found


def _crossing(pieces: Sequence[tuple[int, Piece]]) -> Iterator[tuple[int, Loose, int, Loose]]:
    """(file of the beginning, beginning, file of the end, end) of each range. What lies before a lost piece is let go."""
    waiting = Open()
    for position, piece in pieces:
        if piece.number != waiting.piece + 1:
            waiting.of.clear()
        waiting.piece = piece.number
        for end in piece.ends:
            stack = waiting.of[end.kind, end.key]
            if stack and stack[-1][1].time <= end.time:
                yield (*stack.pop(), position, end)
        for begin in piece.begins:
            waiting.of[begin.kind, begin.key].append((position, begin))


def _matched(file: FileRead, kind: str, *, begins: bool) -> FileRead:
    problems, other = Counter(file.problems), Counter(file.events_other)
    problems[ENDS[kind][begins]] -= 1
    other["range_end"] += not begins
    return file._replace(events_kept=file.events_kept + begins, problems=dict(+problems), events_other=dict(+other))
