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
from pathlib import Path
from typing import Any, cast

EVERY_S = 0.1
BLOCK = 1 << 18
LONGEST_LINE = 1 << 16
"""A line that does not end is shown as it comes, when it is longer."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
DRAIN_S = 2.0


def follow(path: Path, out: int, stop: threading.Event, readable: Callable[[bytes], bytes] | None = None) -> None:
    """Copy what is appended to ``path`` to the descriptor ``out`` until ``stop`` is set and the end is reached.

    ``readable`` makes the text of one line of JSON. Whoever does not read any more is not written to.
    """
    held, begun = b"", False
    with path.open("rb", buffering=0) as file, suppress(OSError):
        while True:
            ending = stop.is_set()
            while block := file.read(BLOCK):
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
        row = cast("dict[str, Any]", json.loads(line))
        created, text = float(row["created"]), str(row["message"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return line
    stamp = time.strftime("%m-%d %H:%M:%S", time.localtime(created))
    who = f"({row.get('vllm_process_name') or row.get('processName', '')} pid={row.get('process', '')})"
    place = f"[{row.get('filename', '')}:{row.get('lineno', '')}]"
    trace = f"\n{row['exc_info']}" if isinstance(row.get("exc_info"), str) else ""
    said = f"{who} {row.get('levelname', '')} {stamp} {place} {text}{trace}"
    return _CONTROLS.sub("", said).encode("utf-8", "backslashreplace")
