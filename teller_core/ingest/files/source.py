"""Files as bounded streams of bytes: plain, gzip or zstd, told apart by their first bytes, not by their names."""

import os
import zlib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from isal import igzip, igzip_lib
from zstandard import ZstdDecompressor, ZstdError

from teller_core.errors import FormatError, InputError, LimitError
from teller_core.ingest.files.opening import Opened, unreadable

MAX_EXPANDED_BYTES = 64 << 30
"""No file is read beyond this many expanded bytes: some 200 million events."""

MAX_EXPANSION = 400
"""A compressed file that expands more than this many times is a bomb: traces expand 8 to 15 times."""

EXPANSION_GRACE = 256 << 20
"""Expanded bytes below which MAX_EXPANSION is not asked for: small files repeat themselves."""

MAX_ZSTD_WINDOW = 128 << 20
"""Bytes a zstd frame may ask to be kept in memory."""

MAX_HOLE = 1 << 20
"""Bytes of a hole in a file: never written, they read as zeros, which no text has and no stream of a compressor so many."""

PIECE = 1 << 15
"""Bytes asked of a decompressor at once: those before the end of a cut file are lost up to this many."""

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"

DAMAGED = (zlib.error, cast(type[Exception], igzip_lib.IsalError), ZstdError, OSError)
"""What the decompressors and the disk raise."""


class ReadInto(Protocol):
    """What a stream of expanded bytes must do."""

    def readinto(self, view: memoryview, /) -> int | None: ...
    def readinto1(self, view: memoryview, /) -> int | None: ...


@dataclass
class Source:
    """An open file. ``expanded`` counts the bytes given out; ``on_disk`` the bytes of the file used so far."""

    path: Path
    stream: ReadInto
    file: BinaryIO
    compressed: bool
    expanded: int = 0
    failure: FormatError | None = None
    """What the next call of :meth:`fill` will raise: the bytes before the damage are given out first."""

    @property
    def on_disk(self) -> int:
        """Bytes of the file consumed so far, read-ahead included."""
        return self.file.tell()

    def fill(self, view: memoryview) -> int:
        """Fill ``view`` as far as the file goes; returns the bytes written, fewer than its length only at the end.

        Errors: FormatError for a damaged or cut compressed stream; LimitError over MAX_EXPANDED_BYTES or MAX_EXPANSION.
        """
        filled = 0
        while filled < len(view) and self.failure is None:
            got = self._read(view[filled:])
            if not got:
                break
            filled += got
        if self.failure is not None and not filled:
            raise self.failure
        self.expanded += filled
        self._check_size()
        return filled

    def take(self, size: int) -> bytes:
        """The next ``size`` expanded bytes, fewer only at the end. Errors: those of :meth:`fill`."""
        room = bytearray(size)
        return bytes(memoryview(room)[: self.fill(memoryview(room))])

    def _read(self, view: memoryview) -> int:
        try:
            return self.stream.readinto1(view[:PIECE]) or 0 if self.compressed else self.stream.readinto(view) or 0
        except EOFError:
            self.failure = FormatError(
                self.path.name, "the compressed data ends early", "Copy or record the file again"
            )
        except DAMAGED:
            self.failure = FormatError(self.path.name, "the data is damaged", "Copy or record the file again")
        return 0

    def _check_size(self) -> None:
        if self.expanded > MAX_EXPANDED_BYTES:
            raise LimitError(
                self.path.name, f"over {MAX_EXPANDED_BYTES >> 30} GiB when expanded", "Record a shorter window"
            )
        bomb = self.compressed and self.expanded > max(EXPANSION_GRACE, MAX_EXPANSION * self.on_disk)
        if bomb:
            raise LimitError(
                self.path.name, f"expands over {MAX_EXPANSION} times", "Expand it yourself if you trust it"
            )


@contextmanager
def open_source(path: Path) -> Generator[Source]:
    """The expanded bytes of ``path``, as a :class:`Source`.

    Errors: InputError for a file that is missing, unreadable, empty or no regular file; see :meth:`Source.fill`.
    """
    with Opened(path) as file:
        _check_whole(path, file)
        head = _begin(path, file)
        if not head:
            raise InputError(path.name, "the file is empty", "Name a file with content")
        with _expanded(path, file, head) as source:
            yield source


@contextmanager
def _expanded(path: Path, file: BinaryIO, head: bytes) -> Generator[Source]:
    if head.startswith(GZIP):
        with igzip.IGzipFile(fileobj=file, mode="rb") as stream:
            yield Source(path, cast(ReadInto, stream), file, True)
    elif head.startswith(ZSTD):
        expander = ZstdDecompressor(max_window_size=MAX_ZSTD_WINDOW)
        with expander.stream_reader(file, read_across_frames=True, closefd=False) as stream:
            yield Source(path, cast(ReadInto, stream), file, True)
    else:
        yield Source(path, cast(ReadInto, file), file, False)


def is_compressed(path: Path) -> bool:
    """Whether ``path`` is read through a decompressor. Errors: InputError."""
    return begin_of(path).startswith((GZIP, ZSTD))


def read_head(path: Path, size: int = 1 << 16) -> bytes:
    """The first ``size`` expanded bytes of ``path``, or all of a shorter file: what a format is recognized by."""
    with open_source(path) as source:
        return source.take(size)


def expanded_head(name: str, begin: bytes, size: int = 1 << 16) -> bytes:
    """As :func:`read_head`, for a file called ``name`` of which only the first bytes as stored are at hand.

    Errors: FormatError where they are damaged.
    """
    with BytesIO(begin) as file, _expanded(Path(name), file, begin) as source:
        return source.take(size)


def read_whole(path: Path, most: int) -> bytes:
    """All expanded bytes of ``path``. Errors: LimitError for more than ``most``; those of :func:`open_source`."""
    room, whole = bytearray(1 << 20), bytearray()
    with open_source(path) as source:
        while got := source.fill(memoryview(room)):
            whole += room[:got]
            if len(whole) > most:
                raise LimitError(path.name, f"it is over {most >> 20} MiB", "Record or export less at once")
    return bytes(whole)


def begin_of(path: Path) -> bytes:
    """The first four bytes of ``path`` as stored, fewer where it has fewer. Errors: InputError; OutOfRoom."""
    with Opened(path) as file:
        return _begin(path, file)


def _begin(path: Path, file: BinaryIO) -> bytes:
    """The first four bytes of ``file``, which is left at its beginning. Errors: InputError; OutOfRoom."""
    try:
        head = file.read(4) or b""
        file.seek(0)
    except OSError as error:
        raise unreadable(path, error) from None
    return head


def _check_whole(path: Path, file: BinaryIO) -> None:
    """Refuse a file with a hole at once, however many zeros it is said to hold. Leaves ``file`` at its beginning.

    Errors: FormatError.
    """
    unwritten = _first_hole(file)
    file.seek(0)
    if unwritten > MAX_HOLE:
        raise FormatError(path.name, f"{unwritten >> 20} MiB of it were never written", "Copy or record the file again")


def _first_hole(file: BinaryIO) -> int:
    """Bytes of the first hole of ``file``; 0 where it has none, or its file system keeps none."""
    try:
        begin = file.seek(0, os.SEEK_HOLE)
    except (OSError, AttributeError):
        return 0
    try:
        return file.seek(begin, os.SEEK_DATA) - begin
    except OSError:  # nothing behind it; every file ends in a hole of no bytes
        return os.fstat(file.fileno()).st_size - begin
