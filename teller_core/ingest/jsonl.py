"""Lines of a file, in bounded memory, and lines that hold one JSON object each."""

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, cast

from teller_core.ingest.files.source import Source, open_source

BLOCK = 1 << 20
MAX_LINE = 1 << 20
"""Bytes of one line that are kept. The rest is skipped, and counted by whoever reads."""


def lines(source: Source) -> Iterator[tuple[bytes, int]]:
    """Each line of ``source`` without its end, and how many of its bytes were left out. Any file takes bounded memory.

    Errors: those of :meth:`Source.fill`.
    """
    room = bytearray(BLOCK)
    begun, skipped = b"", 0
    while got := source.fill(memoryview(room)):
        pieces = bytes(room[:got]).split(b"\n")
        pieces[0] = begun + pieces[0]
        begun = pieces.pop()
        for piece in pieces:
            if skipped or len(piece) > MAX_LINE:
                yield piece[:MAX_LINE], skipped + max(0, len(piece) - MAX_LINE)
                skipped = 0
            else:
                yield piece, 0
        if len(begun) > MAX_LINE:
            skipped += len(begun) - MAX_LINE
            begun = begun[:MAX_LINE]
    if begun:
        yield begun, skipped


def file_lines(path: Path) -> Iterator[tuple[bytes, int]]:
    """:func:`lines` of the file at ``path``."""
    with open_source(path) as source:
        yield from lines(source)


def json_value(text: bytes | str) -> object:
    """The JSON value that ``text`` holds, its fractions as Decimal; None where it holds none."""
    try:
        return _DECODER.decode(text if isinstance(text, str) else text.decode("utf-8"))
    except (ValueError, RecursionError, InvalidOperation):  # the last: an exponent beyond what decimal holds
        return None


def json_object(line: bytes | str) -> dict[str, Any] | None:
    """As :func:`json_value`, of a JSON object alone."""
    value = json_value(line)
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def objects(path: Path) -> Iterator[dict[str, Any] | None]:
    """The object of each line of ``path`` that is not blank; None for a line that holds none."""
    for line, skipped in file_lines(path):
        if skipped:
            yield None
        elif line and not line.isspace():
            yield json_object(line)


def text_of(value: object, limit: int = 200) -> str:
    """``value`` where it is text, cut at ``limit`` characters and without characters that do not show; else empty."""
    if not isinstance(value, str):
        return ""
    cut = value[:limit]
    return cut if cut.isprintable() else "".join(c for c in cut if c.isprintable())


def as_object(value: object) -> Mapping[str, Any]:
    """``value`` where it is a JSON object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """``value`` where it is a JSON list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def first_object(head: bytes) -> dict[str, Any] | None:
    """The JSON object on the first line of ``head`` that is not blank; None where it is not one, or is cut."""
    stripped = head.lstrip()
    return json_object(stripped.split(b"\n", 1)[0]) if stripped.startswith(b"{") else None


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)
