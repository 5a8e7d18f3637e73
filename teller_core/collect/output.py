"""What the recorded command prints: into a file, which it writes itself, and from there to whoever started it.

The command never writes into a pipe of ours: without us it would break.
"""

import json
import os
import re
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

EVERY_S = 0.1
BLOCK = 1 << 18
TAIL = 64
LONGEST_LINE = 1 << 16
"""A line that does not end is shown as it comes, when it is longer."""
NO_LINE = (ValueError, KeyError, TypeError, OverflowError, RecursionError, OSError)
"""What reading something else comes to; the last: a time beyond all years."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass
class Shown:
    """How far one file was shown: what lies before ``until`` was, what lies before ``hole`` is no longer on the disk.

    Who gives the beginning of the file back to the disk moves ``hole`` first, so that nobody takes its zeros for text.
    """

    until: int = 0
    hole: int = 0
    skipped: int = 0
    """Bytes that were given back before they were shown."""
    tail: bytes = b""
    """The end of what was shown."""
    unread: bool = False
    """Nobody reads what is shown: it goes nowhere."""

    def keeps(self, most: int, size: int) -> int:
        """From where on a file of ``size`` bytes is still needed: at most ``most`` bytes wait for a slow reader."""
        return size if self.unread else max(self.until, size - most)


def follow(
    path: Path,
    out: int,
    stop: threading.Event,
    readable: Callable[[bytes], bytes] | None = None,
    shown_so_far: Shown | None = None,
) -> None:
    """Copy what is appended to ``path`` to the descriptor ``out`` until ``stop`` is set and the end is reached.

    ``readable`` makes the text of one line of JSON. Whoever does not read any more is not written to.
    """
    so_far = Shown() if shown_so_far is None else shown_so_far
    try:
        with suppress(OSError):
            _follow(path, out, stop, readable, so_far)
    finally:
        so_far.unread = True


def _follow(
    path: Path, out: int, stop: threading.Event, readable: Callable[[bytes], bytes] | None, so_far: Shown
) -> None:
    held, begun = b"", False
    with path.open("rb", buffering=0) as file:
        while True:
            ending = stop.is_set()
            while block := _next(file, so_far):
                if readable is None:
                    _write(out, block)
                else:
                    shown, held = _shown(held + block, begun, readable)
                    begun = not held and not (shown or b"\n").endswith(b"\n")
                    _write(out, shown)
            if ending:
                _write(out, held)
                return
            stop.wait(EVERY_S)


def _next(file: IO[bytes], so_far: Shown) -> bytes:
    """What follows in ``file``, nothing at its end. One that a program emptied, as a shell does that prints to /dev/stderr by
    its name, is read from its beginning: what it held since the last look is not shown.
    """
    at = file.tell()
    if _was_emptied(file.fileno(), at, so_far):
        so_far.hole, so_far.tail = 0, b""
        at = file.seek(0)
    block = file.read(BLOCK)
    while at < so_far.hole:
        so_far.skipped += so_far.hole - at
        at = file.seek(so_far.hole)
        block = file.read(BLOCK)
    so_far.until = at + len(block)
    so_far.tail = block[-TAIL:] or so_far.tail
    return block


def _was_emptied(file: int, at: int, so_far: Shown) -> bool:
    """Whether there is other text now before the place ``at`` than what was shown."""
    begin = at - len(so_far.tail)
    here = os.pread(file, len(so_far.tail), begin)
    return here != so_far.tail and so_far.hole <= begin


def _shown(text: bytes, begun: bool, readable: Callable[[bytes], bytes]) -> tuple[bytes, bytes]:
    """What can be shown of ``text``, and what is held until its line ends: the beginning of an object. ``begun``: its first
    line was shown in part.
    """
    lines = text.split(b"\n")
    objects = [line.startswith(b"{") and not (begun and at == 0) for at, line in enumerate(lines)]
    last, is_object = lines.pop(), objects.pop()
    whole = zip(lines, objects, strict=True)
    shown = b"".join((readable(line) if known else line) + b"\n" for line, known in whole)
    if is_object and len(last) < LONGEST_LINE:
        return shown, last
    return shown + last, b""


def _write(out: int, data: bytes) -> None:
    while data:
        data = data[os.write(out, data) :]


def log_line(line: bytes) -> bytes:
    """A line of a log in JSON as the engine would have written it for people; as it is where it is none."""
    try:
        return _for_people(cast("dict[str, Any]", json.loads(line)))
    except NO_LINE:
        return line


def _for_people(row: dict[str, Any]) -> bytes:
    stamp, text = time.strftime("%m-%d %H:%M:%S", time.localtime(float(row["created"]))), str(row["message"])
    who = f"({row.get('vllm_process_name') or row.get('processName', '')} pid={row.get('process', '')})"
    place = f"[{row.get('filename', '')}:{row.get('lineno', '')}]"
    trace = f"\n{row['exc_info']}" if isinstance(row.get("exc_info"), str) else ""
    said = f"{who} {row.get('levelname', '')} {stamp} {place} {text}{trace}"
    return _CONTROLS.sub("", said).encode("utf-8", "backslashreplace")
