"""What a capture keeps on disk, bounded in bytes and time: the oldest goes first, and what went is said in ``bundle.json``.

Every writer bounds itself, so that the bounds hold without the recording process. This one bounds their sum, and what no
writer can drop itself: the service's own output, of which the beginning is given back to the disk while it is written.
"""

import ctypes
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.collect.output import Shown

MOST_MB = 512
"""About an hour of a busy engine: three processes write some 2 KB a step, a hundred steps a second."""
MOST_MINUTES = 60
WRITERS = 8
"""Writers that share the bytes: two or three in each of three processes. More are held by the bound on the sum."""
RESERVE = 16 << 20
"""Room that is kept on the disk for the service's output: where the disk is full, it is not the service that fails."""
KEEP_SIZE, PUNCH_HOLE = 1, 2
BLOCK = 4096
MARK_EVERY_S = 15.0
SETTLED_S = 10.0
"""A file that was not written for so long, and is no piece of a running process, is whole."""
GONE_S = 600.0
_PIECE = re.compile(
    r"(?P<family>(?:host|stats|nvtx)-(?P<pid>\d+)|samples)(?:-(?P<number>\d{4,}))?\.(?:jsonl|tsv)", re.ASCII
)
_WINDOW = re.compile(r"(?:torch|fr|cupti)-\d+[-.]", re.ASCII)


class Bounds(NamedTuple):
    """Most bytes on disk, and the most seconds that what is kept goes back."""

    most_bytes: int = MOST_MB << 20
    most_seconds: int = MOST_MINUTES * 60

    def of_writer(self) -> tuple[int, int]:
        """The bounds of one writer in one process."""
        return self.most_bytes // WRITERS, self.most_seconds


@dataclass
class Dropped:
    """Of one file in pieces: how many pieces and bytes went, and until when they had been written (Unix ns)."""

    pieces: int = 0
    bytes: int = 0
    until_ns: int = 0


@dataclass(frozen=True)
class _Piece:
    path: Path
    family: str
    size: int
    written: int
    droppable: bool


@dataclass
class _Output:
    """A file that the service writes itself: what was given back, and how long it was at which time (monotonic s)."""

    shown: Shown | None = None
    size: int = 0
    hole: int = 0
    reserved: int = 0
    marks: list[tuple[float, int]] = field(default_factory=list[tuple[float, int]])


class Ring:
    """Keeps the capture in ``folder`` within ``bounds``. ``shown``: how far each of the ``outputs`` is shown, if at all."""

    def __init__(self, folder: Path, bounds: Bounds, outputs: Sequence[Path], shown: Sequence[Shown] = ()) -> None:
        self.dropped: dict[str, Dropped] = {}
        self._folder = folder
        self._bounds = bounds
        self._outputs = {path: _Output(so_far) for path, so_far in zip_longest(outputs, shown)}
        self._known: dict[Path, _Piece] = {}

    def sweep(self) -> None:
        """Drop what is too old or too much. Called about once a second."""
        outputs = sum(self._bound_output(path, state) for path, state in self._outputs.items())
        pieces = list(self._pieces())
        self._note_vanished(pieces)
        total = outputs + sum(piece.size for piece in pieces)
        oldest = time.time_ns() - self._bounds.most_seconds * 1_000_000_000
        full = self._disk_is_full()
        for piece in sorted(pieces, key=lambda piece: piece.written):
            if not (piece.written < oldest or total > self._bounds.most_bytes or full):
                break
            if piece.droppable and self._drop(piece):
                total -= piece.size
                full = False

    def close(self) -> None:
        """Give back reserved room, and cut away the beginnings that were dropped of what the service wrote."""
        for path, state in self._outputs.items():
            if state.reserved:
                _give_back(path)
            if state.hole:
                _cut(path, state.hole)

    def report(self) -> dict[str, Any]:
        """What ``bundle.json`` says: the bounds, and what was dropped by file."""
        return {
            **self._bounds._asdict(),
            "dropped": {name: asdict(gone) for name, gone in sorted(self.dropped.items())},
        }

    def _disk_is_full(self) -> bool:
        """Whether others are about to get no room: then what was recorded first makes some."""
        try:
            about = os.statvfs(self._folder)
        except OSError:
            return False
        return about.f_bavail * about.f_frsize < RESERVE

    def _pieces(self) -> Iterator[_Piece]:
        found: list[tuple[Path, str, int, int, int, int]] = []
        newest: dict[str, int] = {}
        for prefix, folder in (("", self._folder), ("cap/", self._folder / "cap")):
            for path, size, written in _files(folder):
                if match := _PIECE.fullmatch(path.name):
                    family, number = f"{prefix}{match['family']}{path.suffix}", int(match["number"] or 0)
                    newest[family] = max(newest.get(family, 0), number)
                    found.append((path, family, size, written, number, int(match["pid"] or 0)))
                elif _WINDOW.match(path.name):
                    found.append((path, f"cap/{path.name}", size, written, -1, 0))
        now = time.time_ns()
        for path, family, size, written, number, pid in found:
            rested = (now - written) / 1e9
            if number < 0:
                droppable = rested > SETTLED_S
            elif number < newest[family]:
                droppable = True
            else:  # the one that is being written, unless its process is gone
                droppable = bool(pid) and rested > GONE_S and not Path(f"/proc/{pid}").exists()
            yield _Piece(path, family, size, written, droppable)

    def _note_vanished(self, pieces: list[_Piece]) -> None:
        """Count the pieces that their own writers dropped."""
        here = {piece.path: piece for piece in pieces}
        for path, piece in self._known.items():
            if path not in here and _PIECE.fullmatch(path.name):
                self._count(piece.family, piece.size, piece.written)
        self._known = here

    def _drop(self, piece: _Piece) -> bool:
        try:
            piece.path.unlink()
        except OSError:
            return False
        self._known.pop(piece.path, None)
        self._count(piece.family, piece.size, piece.written)
        return True

    def _count(self, family: str, size: int, written: int, pieces: int = 1) -> None:
        gone = self.dropped.setdefault(family, Dropped())
        gone.pieces += pieces
        gone.bytes += size
        gone.until_ns = max(gone.until_ns, written)

    def _bound_output(self, path: Path, state: _Output) -> int:
        """Give the beginning of an output back to the disk, and keep room for what comes. Returns the bytes it takes."""
        try:
            size = path.stat().st_size
        except OSError:
            return 0
        if size < state.size:  # a program opened /dev/stdout anew: what was there is gone
            self._count(path.name, state.size - state.hole, time.time_ns(), pieces=0)
            state.hole = state.reserved = 0
            state.marks.clear()
        state.size = size
        now = time.monotonic()
        if not state.marks or now - state.marks[-1][0] >= MARK_EVERY_S:
            state.marks.append((now, size))
        most = self._bounds.most_bytes // WRITERS
        until = max(0, size - most) if size - state.hole > most + most // 8 else state.hole
        while len(state.marks) > 1 and now - state.marks[1][0] > self._bounds.most_seconds:
            until = max(until, state.marks.pop(0)[1])
        if state.shown is not None:
            until = min(until, state.shown.keeps(self._bounds.most_bytes, size))
        until -= until % BLOCK
        if state.shown is not None and until > state.hole:
            state.shown.hole = until
        if until > state.hole and _allocate(path, KEEP_SIZE | PUNCH_HOLE, state.hole, until - state.hole):
            self._count(path.name, until - state.hole, time.time_ns(), pieces=0)
            state.hole = until
        if size + RESERVE // 2 > state.reserved and _allocate(path, KEEP_SIZE, size, RESERVE):
            state.reserved = size + RESERVE
        return size - state.hole


def _files(folder: Path) -> Iterator[tuple[Path, int, int]]:
    """(path, size, Unix ns of the last write) of every file that is not hidden."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            if not entry.name.startswith(".") and entry.is_file(follow_symlinks=False):
                about = entry.stat()
                yield Path(entry.path), about.st_size, about.st_mtime_ns
        except OSError:  # its writer dropped it just now
            continue


def _allocate(path: Path, mode: int, begin: int, length: int) -> bool:
    """Change what the disk keeps of ``path``, not what it holds; False where the file system cannot, or has no room."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if call is None:
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    try:
        with path.open("rb+") as file:
            return call(file.fileno(), mode, begin, length) == 0
    except OSError:
        return False


def _give_back(path: Path) -> None:
    """Give back what is reserved behind the end of ``path``, by cutting it there. Where that fails it only takes room."""
    with suppress(OSError):
        os.truncate(path, path.stat().st_size)


def _cut(path: Path, hole: int) -> None:
    """Make ``path`` begin with its first whole line behind the ``hole``. Where the disk refuses, it stays as it is."""
    hidden = path.with_name(f".part-{path.name}")
    try:
        with path.open("rb") as source, hidden.open("wb") as target:
            source.seek(hole)
            source.readline()
            while block := source.read(1 << 20):
                target.write(block)
        hidden.chmod(path.stat().st_mode & 0o777)
        hidden.replace(path)
    except OSError:
        hidden.unlink(missing_ok=True)
