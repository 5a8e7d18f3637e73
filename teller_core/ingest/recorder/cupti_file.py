"""The blocks of ``cupti-PID-N.bin``, as collect/native writes them: a file is readable up to its last whole block.

8 bytes of magic, then blocks: mark, type, count, bytes (uint32 each, little-endian) and the bytes. Types: 1 the header's
JSON, 2 anchors, 3 texts (uint32 length, bytes; numbered from 0 through the file), 4 the footer's JSON, 256 + kind rows.
"""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from teller_core.errors import FormatError, LimitError

MAGIC = b"TLRCUPT1"
MARK = 0x4B4C4254
HEAD = 16
MOST_BYTES = 8 << 30
"""Of a file: two million records, the most of a window, are 150 MB."""
MOST_BLOCK = 64 << 20
HEADER, ANCHORS, TEXTS, FOOTER, ROWS = 1, 2, 3, 4, 256
TYPES = frozenset({"|u1", "<u2", "<u4", "<u8", "<i4", "<i8", "|V12"})
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

    Errors: FormatError where the header is not there; LimitError over MOST_BYTES.
    """
    if path.stat().st_size > MOST_BYTES:
        raise LimitError(path.name, "it is larger than any window", "Record a shorter window")
    data = path.read_bytes()
    at, found = len(MAGIC), None
    types: dict[int, tuple[str, np.dtype[np.void]]] = {}
    parts: dict[str, list[Rows]] = {}
    problems: Counter[str] = Counter()
    while at + HEAD <= len(data):
        mark, kind, count, size = (int(word) for word in np.frombuffer(data, "<u4", 4, at))
        if mark != MARK or size > MOST_BLOCK:
            problems["bad_record"] += 1
            break
        body = data[at + HEAD : at + HEAD + size]
        if len(body) < size:
            break
        at += HEAD + size
        if found is None:
            found = Blocks(_object(path, body), problems=problems)
            types = _types(path, found.header)
        elif kind == FOOTER:
            found.footer = _object(path, body)
        elif kind == ANCHORS and size == 32 * count:
            found.anchors += [tuple(row) for row in np.frombuffer(body, "<i8").reshape(-1, 4).tolist()]
        elif kind == TEXTS:
            found.texts += _texts(body, count, problems)
        elif kind - ROWS in types and size == count * types[kind - ROWS][1].itemsize:
            name, row = types[kind - ROWS]
            parts.setdefault(name, []).append(np.frombuffer(body, row))
        else:
            problems["bad_record"] += max(1, count if size else 0)
    if found is None:
        raise FormatError(path.name, "it ends before its header does", "Record it again")
    if at < len(data) and not problems["bad_record"] or found.footer is None:
        problems["cut_file"] += 1
    found.rows = {name: np.concatenate(pieces) for name, pieces in parts.items()}
    return found


def _object(path: Path, body: bytes) -> dict[str, Any]:
    try:
        value: object = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise FormatError(path.name, "its header or footer is no JSON object", "Record it again")
    return cast("dict[str, Any]", value)


def _types(path: Path, header: dict[str, Any]) -> dict[int, tuple[str, np.dtype[np.void]]]:
    """Name and row type by the number of the kind. None where the window was refused for want of a layout."""
    layout: Any = header.get("layout")
    kinds: Any = layout.get("kinds") if isinstance(layout, dict) else {}
    try:
        return {int(number): (str(kind["name"]), _row(kind["fields"])) for number, kind in kinds.items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise FormatError(path.name, "its header does not say what its records are", "Record it again") from None


def _row(fields: Any) -> np.dtype[np.void]:
    columns: list[tuple[str, str]] = []
    for name, kind in fields:
        if kind != "text" and kind not in TYPES:
            raise ValueError
        columns.append((str(name), "<u4" if kind == "text" else kind))
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
