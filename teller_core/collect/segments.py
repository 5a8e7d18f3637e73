"""A file that is written in pieces, so that its beginning can be dropped while it grows."""

import os
import time
from pathlib import Path

PIECES = 8
"""Pieces that a bound is cut into: an eighth of what is kept is dropped at once."""


class Segments:
    """Lines appended to ``STEM.jsonl``, then ``STEM-0001.jsonl`` and so on. A disk that refuses costs lines: counted."""

    def __init__(self, folder: Path, stem: str, most_bytes: int, most_seconds: float) -> None:
        self.lost = 0
        """Lines that could not be written."""
        self._folder = folder
        self._stem = stem
        self._bytes = max(4096, most_bytes // PIECES)
        self._seconds = most_seconds / PIECES
        self._number = 0
        self._file: int | None = None
        self._size = 0
        self._began = time.monotonic()
        self._torn = False

    def is_full(self) -> bool:
        """Whether the piece has its size or age, so that :meth:`turn` is due."""
        return self._size >= self._bytes or (self._size > 0 and time.monotonic() - self._began >= self._seconds)

    def turn(self) -> None:
        """Begin the next piece."""
        self.close()
        self._number += 1
        self._size = 0
        self._began = time.monotonic()

    def write(self, lines: list[str]) -> None:
        """Append ``lines``, which have no line ends, in one write."""
        if not lines:
            return
        text = ("\n" if self._torn else "") + "\n".join(lines) + "\n"
        data = text.encode()
        try:
            if self._file is None:
                self._file = os.open(self._path(), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
            written = os.write(self._file, data)
        except OSError:
            self.lost += len(lines)
            return
        self._size += written
        self._torn = written < len(data)
        if self._torn:
            self.lost += data[written:].count(b"\n")

    def close(self) -> None:
        """Close the piece that is open, if one is."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _path(self) -> Path:
        number = f"-{self._number:04}" if self._number else ""
        return self._folder / f"{self._stem}{number}.jsonl"
