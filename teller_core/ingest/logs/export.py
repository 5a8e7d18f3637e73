"""Log lines that a collector handed out as one JSON document: Loki's and Grafana's answers, CloudWatch's events.

Such documents come from a page or a query and are of bounded size; larger exports come as JSON lines.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.source import open_source
from teller_core.ingest.jsonl import as_list, as_object, json_value
from teller_core.ingest.logs.envelopes import row_in_envelope
from teller_core.ingest.stamps import Head

MAX_BYTES = 128 << 20
"""Of a document. It is held in memory while its lines are taken out."""
PIECE = 1 << 20
AS_LINES = "Export the log as lines, or as one JSON object a line"
_MARKS = (b'"resultType"', b'"ingestionTime"', b'"logStreamName"', b'"timestampNs"', b'"tsNs"')


def is_export(head: bytes) -> bool:
    """Whether the first bytes are of such a document, which stands on several lines or holds its lines in a list."""
    start = head.lstrip()[:1]
    if start not in (b"{", b"["):
        return False
    first = head.lstrip().split(b"\n", 1)[0]
    listed = b'"resultType"' in head[:4096] and b'"streams"' in head[:4096]
    events = any(mark in head[:8192] for mark in _MARKS) and (start == b"[" or b'"events"' in head[:4096])
    return listed or (events and not (start == b"{" and first.rstrip().endswith(b"}") and b'"events"' not in first))


def exported(path: Path, near: int) -> tuple[list[Head], int]:
    """The lines of a document, by time, and how many rows of it are none.

    Errors: FormatError for what is no such document; LimitError over MAX_BYTES.
    """
    heads = [row_in_envelope(row, near) for row in _rows(_document(path))]
    known = sorted((head for head in heads if head is not None), key=lambda head: head.time)
    return known, len(heads) - len(known)


def _document(path: Path) -> object:
    whole = bytearray()
    room = bytearray(PIECE)
    with open_source(path) as source:
        while got := source.fill(memoryview(room)):
            whole += room[:got]
            if len(whole) > MAX_BYTES:
                raise LimitError(path.name, f"the document is over {MAX_BYTES >> 20} MB", AS_LINES)
    document = json_value(bytes(whole))
    if document is None:
        raise FormatError(path.name, "the export is no whole JSON document", AS_LINES)
    return document


def _rows(document: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(document, list):
        yield from map(as_object, cast("list[object]", document))
        return
    top = as_object(document)
    yield from map(as_object, as_list(top.get("events")))
    for stream in as_list(as_object(top.get("data")).get("result")):
        labels = as_object(as_object(stream).get("stream"))
        for value in as_list(as_object(stream).get("values")):
            pair = as_list(value)
            yield {"timestamp": pair[0], "line": pair[1], "labels": labels} if len(pair) > 1 else {}
