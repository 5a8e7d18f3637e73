"""JSON documents of a file: one a line, as exporters append them, or one that fills it."""

from collections.abc import Iterator
from pathlib import Path

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.source import Source, open_source
from teller_core.ingest.jsonl import json_value

MAX_DOCUMENT = 128 << 20
"""Bytes of one document: as objects in memory it takes about ten times as many."""
BLOCK = 1 << 20


def documents(path: Path) -> Iterator[object]:
    """The value of each line that is not blank, None for a line that holds none; where the first line holds none, the value
    of the whole file.

    Errors: FormatError where neither the first line nor the file is a document; LimitError for one over MAX_DOCUMENT.
    """
    with open_source(path) as source:
        pieces = _lines(source)
        first = next((line for line in pieces if line is None or not line.isspace()), None)
        if first is None:
            raise LimitError(path.name, f"one document in it is over {MAX_DOCUMENT >> 20} MiB", "Export a shorter time")
        opening = json_value(first)
        if opening is None:
            yield _whole(path, first, pieces)
            return
        yield opening
        for line in pieces:
            if line is None or not line.isspace():
                yield None if line is None else json_value(line)


def _whole(path: Path, first: bytes, rest: Iterator[bytes | None]) -> object:
    text = bytearray(first)
    for line in rest:
        if line is None or len(text) + len(line) > MAX_DOCUMENT:
            raise LimitError(path.name, f"it is over {MAX_DOCUMENT >> 20} MiB", "Export a shorter time")
        text += b"\n" + line
    value = json_value(bytes(text))
    if value is None:
        raise FormatError(path.name, "the JSON ends early or is broken", "Export it again")
    return value


def _lines(source: Source) -> Iterator[bytes | None]:
    """Each line without its end, empty ones left out; None for one over MAX_DOCUMENT."""
    room, begun, skipping = bytearray(BLOCK), bytearray(), False
    while got := source.fill(memoryview(room)):
        *ended, rest = bytes(room[:got]).split(b"\n")
        for piece in ended:
            line = bytes(begun + piece) if begun else piece
            if line or skipping:
                yield None if skipping or len(line) > MAX_DOCUMENT else line
            begun, skipping = bytearray(), False
        begun += rest
        if len(begun) > MAX_DOCUMENT:
            begun, skipping = bytearray(), True
    if begun or skipping:
        yield None if skipping else bytes(begun)
