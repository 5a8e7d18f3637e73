"""Whoever prints although nobody reads any more gets the signal that it would have got without us.

The command prints into a file, which breaks for nobody: ``yes | head`` would never end under the recorder. So once our own
output is closed, those that go on printing are sent SIGPIPE, which ends a program or, where it handles or ignores the
signal as every Python does, changes nothing.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from teller_core.collect import proc

EVERY_S = 1.0
SLACK = 1 << 16
"""Bytes that may be printed between two readings of a counter and of the file."""


class Unread:
    """The file ``path`` that the processes of ``root`` print into, and what each of them had written at the last look."""

    def __init__(self, root: int, path: Path) -> None:
        self._family = proc.Family(root)
        self._file = path
        self._written: dict[int, int] = {}
        self._size = 0

    def turn(self) -> None:
        """Signal those that printed since the last turn: who wrote something, and no more than was added to the file.

        A worker that writes elsewhere, a socket perhaps, is let alone: it would not have got the signal.
        """
        size = self._file.stat().st_size
        added, self._size = size - self._size, size
        before, self._written = self._written, dict(self._printers())
        for pid, written in self._written.items():
            if 0 < written - before.get(pid, written) <= added + max(SLACK, added // 4):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGPIPE)

    def _printers(self) -> Iterator[tuple[int, int]]:
        """(pid, bytes written to anything) of every process that prints into the file."""
        own = self._file.stat()
        for pid in self._family.members():
            with suppress(OSError, ValueError):
                ends = [os.stat(f"{proc.PROC}/{pid}/fd/{number}") for number in (1, 2)]
                if any(os.path.samestat(own, end) for end in ends):
                    fields = Path(f"{proc.PROC}/{pid}/io").read_text().split()
                    yield pid, int(fields[fields.index("wchar:") + 1])
