"""The blocks of ``cupti-PID-N.bin``, as collect/native writes them: a file is readable up to its last whole block.

8 bytes of magic, then blocks: mark, type, count, bytes (uint32 each, little-endian) and the bytes. Types: 1 the header's
JSON, 2 anchors, 3 texts (uint32 length, bytes; numbered from 0 through the file), 4 the footer's JSON, 256 + kind rows.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.opening import Opened

MAGIC = b"TLRCUPT1"
MARK = 0x4B4C4254
HEAD = 16
MOST_BYTES = 8 << 30
"""Of a file: two million records, the most of a window, are 150 MB."""
MOST_BLOCK = 64 << 20
LATEST = 1 << 62
"""ns: no time beyond this is believed."""
HEADER, ANCHORS, TEXTS, FOOTER, ROWS = 1, 2, 3, 4, 256
TYPES = frozenset({"|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "|V12"})
_TIMES = frozenset({"start", "end"})
_DEVICE = _TIMES | {"device_id", "context_id", "stream_id", "correlation_id"}
_CALL = _TIMES | {"cbid", "thread_id", "correlation_id"}
_SHAPE = frozenset({"grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"})
NEEDED = {
    "memcpy": _DEVICE | {"bytes", "copy_kind", "src_kind", "dst_kind"},
    "memset": _DEVICE | {"bytes", "memory_kind"},
    "driver": _CALL,
    "runtime": _CALL,
    "kernel": _DEVICE | _SHAPE | {"name", "graph_id", "graph_node_id"},
    "overhead": _TIMES | {"overhead_kind", "object_kind", "object_id"},
    "synchronization": _TIMES | {"type", "context_id", "stream_id", "correlation_id"},
    "external": frozenset({"external_kind", "external_id", "correlation_id"}),
    "graph": _DEVICE | {"graph_id"},
}
"""Columns without which rows of a kind say nothing."""
Rows = npt.NDArray[np.void]


@dataclass
class Blocks:
    """What one file holds. ``rows``: structured arrays by the kind's name; a column of a text holds its number."""

    header: dict[str, Any]
    footer: dict[str, Any] | None = None
    anchors: list[tuple[int, int, int, int]] = field(default_factory=list[tuple[int, int, int, int]])
    """CUPTI's, Unix and monotonic ns, and how long reading them took."""
    texts: list[str] = field(default_factory=list[str])
    rows: dict[str, Rows] = field(default_factory=dict[str, Rows])
    problems: Counter[str] = field(default_factory=Counter[str])


def read_blocks(path: Path) -> Blocks:
    """The file's blocks. Problems: ``cut_file`` (no footer, or a block that is not whole), ``bad_record`` (a block of no known
    type, or of rows that its header does not describe).

    Errors: FormatError where the header is not there or describes no records; LimitError over MOST_BYTES.
    """
    if path.stat().st_size > MOST_BYTES:
        raise LimitError(path.name, "it is larger than any window", "Record a shorter window")
    with Opened(path) as file:
        blocks = _whole_blocks(file.readall())
    first = next(blocks, None)
    if first is None or first[0] != HEADER:
        raise FormatError(path.name, "it ends before its header does", "Record it again")
    found = Blocks(_object(path, first[2]))
    types = _types(path, found.header)
    parts: dict[str, list[Rows]] = {}
    for kind, count, body in blocks:
        if kind == FOOTER:
            found.footer = _object(path, body)
        elif kind - ROWS in types and len(body) == count * types[kind - ROWS][1].itemsize:
            name, row = types[kind - ROWS]
            parts.setdefault(name, []).append(np.frombuffer(body, row))
        else:
            _take(found, kind, count, body)
    if found.footer is None and not found.problems["bad_record"]:
        found.problems["cut_file"] += 1
    found.rows = {name: np.concatenate(pieces) for name, pieces in parts.items()}
    return found


def _whole_blocks(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, count and bytes of each block. A mark that is none ends the file with a block of type 0."""
    at = len(MAGIC)
    while at + HEAD <= len(data):
        mark, kind, count, size = (int(word) for word in np.frombuffer(data, "<u4", 4, at))
        if mark != MARK or size > MOST_BLOCK:
            yield 0, 1, b""
            return
        body = data[at + HEAD : at + HEAD + size]
        if len(body) < size:
            return
        yield kind, count, body
        at += HEAD + size


def _take(found: Blocks, kind: int, count: int, body: bytes) -> None:
    if kind == ANCHORS and body and len(body) == 32 * count:
        for cupti, real, mono, width in np.frombuffer(body, "<i8").reshape(-1, 4).tolist():
            if 0 < cupti < LATEST and 0 < real < LATEST:
                found.anchors.append((cupti, real, mono, width))
            else:
                found.problems["bad_record"] += 1
    elif kind == TEXTS:
        found.texts += _texts(body, count, found.problems)
    else:
        found.problems["bad_record"] += count if 0 < count <= len(body) else 1


def _object(path: Path, body: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise FormatError(path.name, "its header or footer is no JSON object", "Record it again")
    return cast("dict[str, Any]", value)


def _types(path: Path, header: dict[str, Any]) -> dict[int, tuple[str, np.dtype[np.void]]]:
    """Name and row type by the number of the kind. None where the window was refused for want of a layout."""
    layout: Any = header.get("layout")
    kinds: Any = cast("dict[str, Any]", layout).get("kinds") if isinstance(layout, dict) else {}
    try:
        return {int(number): (str(kind["name"]), _row(kind["name"], kind["fields"])) for number, kind in kinds.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FormatError(path.name, "its header does not say what its records are", "Record it again") from None


def _row(name: str, fields: Any) -> np.dtype[np.void]:
    columns: list[tuple[str, str]] = []
    for column, kind in fields:
        if kind != "text" and kind not in TYPES:
            raise ValueError
        columns.append((str(column), "<u4" if kind == "text" else kind))
    if not NEEDED.get(name, frozenset()) <= {column for column, _ in columns}:
        raise ValueError
    return np.dtype(columns)


def _texts(body: bytes, count: int, problems: Counter[str]) -> list[str]:
    """The texts of a block. Those that are not there in full are empty, so that the numbers of the others stay."""
    found: list[str] = []
    at = 0
    while len(found) < count and at + 4 <= len(body):
        size = int.from_bytes(body[at : at + 4], "little")
        found.append(body[at + 4 : at + 4 + size].decode("utf-8", "replace"))
        at += 4 + size
    if at != len(body):
        problems["bad_record"] += 1
    return found
