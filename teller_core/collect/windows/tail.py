"""What the processes of a service have written since one last looked, about requests."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from teller_core.collect.finished import regular_files

MOST_BYTES = 4 << 20
"""Read of one file at once. Of a file that grew by more, the older part is passed over: a watch looks at what is new."""
MARK = b'"request.'


class Tail:
    """Where every file of events was read up to."""

    def __init__(self, cap: Path) -> None:
        self._cap = cap
        self._read: dict[Path, int] = {}

    def rows(self) -> Iterator[dict[str, Any]]:
        """Whole lines about requests that are new. Files that are gone are forgotten."""
        paths = regular_files(self._cap, "host-*.jsonl")
        self._read = {path: self._read.get(path, 0) for path in paths}
        for path in paths:
            for line in self._new(path).split(b"\n"):
                if MARK in line and (row := _object(line)) is not None:
                    yield row

    def _new(self, path: Path) -> bytes:
        since = self._read[path]
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                passed = size - since > MOST_BYTES
                since = size - MOST_BYTES if passed else since
                file.seek(since)
                text = file.read(MOST_BYTES)
        except OSError:  # its ring took it away between the listing and now
            return b""
        whole = text.rfind(b"\n") + 1
        self._read[path] = since + whole
        first = text.find(b"\n") + 1 if passed else 0
        return text[first:whole]


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) and isinstance(row.get("t"), int) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
