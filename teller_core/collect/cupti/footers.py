"""What the end of each window of GPU records says: why it ended, how many kernels it holds, when it opened and closed."""

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.collect.finished import regular_files

_BLOCK = struct.Struct("<IIII")
_MAGIC, _MARK, _FOOTER = b"TLRCUPT1", 0x4B4C4254, 4
MOST_BYTES = 1 << 20
LATEST = 1 << 62


def footers(cap: Path) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """(name, footer) of each window in the folder where processes wrote; None where it was cut before its end.

    Errors: OSError.
    """
    for path in regular_files(cap, "cupti-*.bin"):
        yield path.name, _footer(path)


def interval(footer: Mapping[str, Any]) -> tuple[int, int] | None:
    """Unix ns from when the window was opened to when it was closed, None where the footer does not tell."""
    ends = [footer.get("open"), footer.get("close")]
    times = [time for pair in ends if isinstance(pair, list) for time in cast("list[object]", pair)]
    if len(times) != 4 or not all(isinstance(time, int) and 0 < time < LATEST for time in times):
        return None
    start, stop = cast("int", times[0]), cast("int", times[-1])
    return (start, stop) if start <= stop else None


def outcomes(cap: Path) -> list[dict[str, Any]]:
    """What ``bundle.json`` says of the windows: file, reason, kernels, records dropped, when. Errors: OSError."""
    found: list[dict[str, Any]] = []
    for name, footer in footers(cap):
        told: dict[str, Any] = {"file": name, "reason": "cut"} if footer is None else {"file": name}
        for key in ("reason", "kernels", "dropped", "open", "close"):
            if footer is not None and key in footer:
                told[key] = footer[key]
        found.append(told)
    return found


def _footer(path: Path) -> dict[str, Any] | None:
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            return None
        while len(head := file.read(_BLOCK.size)) == _BLOCK.size:
            mark, kind, _, size = _BLOCK.unpack(head)
            if mark != _MARK:
                return None
            if kind == _FOOTER:
                return _object(file.read(min(size, MOST_BYTES)))
            file.seek(size, 1)
    return None


def _object(text: bytes) -> dict[str, Any] | None:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
