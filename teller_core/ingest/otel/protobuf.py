"""Spans of requests in OTLP protobuf: one ExportTraceServiceRequest, or several behind their lengths.

The file exporter of the OpenTelemetry collector puts four bytes of length, the most significant first, before each message
(``format: proto``); a message alone is the body of an HTTP export. Read field by field instead of by generated code: that
takes seven messages whose numbers never change, and no package of which the served engine pins another version. Numbers:
opentelemetry-proto 1.x, ``collector/trace/v1``, ``trace/v1``, ``common/v1`` and ``resource/v1``.
"""

import math
import struct
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from pathlib import Path

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.source import Source, open_source
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.otel.requests import request_spans
from teller_core.ingest.otel.span import (
    MAX_ATTRIBUTES,
    MAX_EVENTS,
    SPAN_DIGITS,
    TRACE_DIGITS,
    Row,
    Span,
    failed,
    hex_id,
    kind_of,
    moment,
)
from teller_core.ingest.wire import BYTES, FIXED64, Damaged, fields, signed, varint

NAME = "otlp_protobuf"
MAX_MESSAGE = 128 << 20
"""Bytes of one message. A collector sends some thousand spans at once."""
LIBRARY_SPANS = 1000
"""The field of ResourceSpans that ScopeSpans had before 1.0."""
MAX_CACHED = 1 << 14
"""Bytes of a resource that is remembered. They are some hundreds."""
LONGEST_TEXT = 4096
"""Characters of an attribute that are kept."""
AGAIN = "Export the spans again"


def sniff(head: bytes) -> bool:
    """Whether it begins with resource spans, behind a length or not: a group, in it a resource or a scope, in it a key."""
    at = 4 if head.startswith(b"\0") else 0
    try:
        number, group, size = _opening(head[at:])
        if number != 1 or (at and size + 2 > int.from_bytes(head[:4], "big")):
            return False
        number, inner, size = _opening(group)
        if number == 1 and not size:
            number, inner, size = _opening(group[2:])
        if number == 2:
            return _opening(inner)[0] in (1, 2)
        key = _opening(_opening(inner)[1])
        return number == 1 and key[0] == 1 and 0 < key[2] < 256 and key[1][: key[2]].isascii()
    except Damaged:
        return False


def _opening(data: bytes) -> tuple[int, bytes, int]:
    """(number, as many bytes as there are, length) of the first field of a message that may be cut. Errors: Damaged."""
    tag, at = varint(data, 0)
    if tag & 7 != BYTES:
        raise Damaged
    size, at = varint(data, at)
    return tag >> 3, data[at : at + size], size


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Request spans of the messages of a file. Problems and other as :func:`requests.request_spans`.

    Errors: FormatError where a message breaks off, LimitError for one over MAX_MESSAGE.
    """
    return request_spans(Found(), place, _spans(path), path.name)


def _spans(path: Path) -> Iterator[Span | None]:
    try:
        for message in _messages(path):
            for number, _, group in fields(message):
                if number == 1:
                    yield from _of_group(_bytes(group))
    except Damaged:
        raise FormatError(path.name, "a message in it ends early or is broken", AGAIN) from None


def _messages(path: Path) -> Iterator[bytes]:
    """The messages of a file: each behind its length, or one without. Errors: Damaged, LimitError."""
    with open_source(path) as source:
        head = _taken(source, 4)
        if not head.startswith(b"\0"):
            yield head + _rest(path, source)
            return
        while head:
            size = int.from_bytes(head, "big")
            _check(path, size)
            message = _taken(source, size)
            if len(head) < 4 or len(message) < size:
                raise Damaged
            yield message
            head = _taken(source, 4)


def _taken(source: Source, size: int) -> bytes:
    room = bytearray(size)
    return bytes(room[: source.fill(memoryview(room))])


def _rest(path: Path, source: Source) -> bytes:
    rest = bytearray()
    while block := _taken(source, 1 << 20):
        rest += block
        _check(path, len(rest))
    return bytes(rest)


def _check(path: Path, size: int) -> None:
    if size > MAX_MESSAGE:
        raise LimitError(path.name, f"a message in it is over {MAX_MESSAGE >> 20} MiB", "Export a shorter time at once")


def _of_group(group: bytes) -> Iterator[Span]:
    resource: Row = {}
    scopes: list[bytes] = []
    for number, _, value in fields(group):
        if number == 1:
            data = _bytes(value)
            resource = _resource(data) if len(data) <= MAX_CACHED else _entries(data)
        elif number in (2, LIBRARY_SPANS):
            scopes.append(_bytes(value))
    for scope in scopes:
        library = ""
        for number, _, value in fields(scope):
            if number == 1:
                library = _first_text(_bytes(value), 64)
            elif number == 2:
                yield _span(_bytes(value), resource, library)


@lru_cache(maxsize=64)
def _resource(data: bytes) -> Row:
    """The attributes of a resource: a collector repeats them with every batch."""
    return _entries(data)


def _entries(data: bytes) -> Row:
    return _attributes([_bytes(inner) for at, _, inner in fields(data) if at == 1])


def _span(data: bytes, resource: Row, scope: str) -> Span:
    ids, numbers = {1: b"", 2: b"", 4: b""}, {6: 0, 7: 0, 8: 0}
    name, status, entries, events = "", 0, list[bytes](), list[tuple[str, int]]()
    for number, _, value in fields(data):
        if number in ids:
            ids[number] = _bytes(value)
        elif number in numbers:
            numbers[number] = _integer(value)
        elif number == 5:
            name = _text(value, 128)
        elif number == 9:
            entries.append(_bytes(value))
        elif number == 11 and len(events) < MAX_EVENTS:
            events += _event(_bytes(value))
        elif number == 15:
            status = next((_integer(code) for at, _, code in fields(_bytes(value)) if at == 3), 0)
    attributes = _attributes(entries)
    return Span(
        name=name,
        trace_id=hex_id(ids[1], TRACE_DIGITS),
        span_id=hex_id(ids[2], SPAN_DIGITS),
        parent=hex_id(ids[4], SPAN_DIGITS),
        kind=kind_of(numbers[6]),
        start=moment(numbers[7]),
        end=moment(numbers[8]),
        attributes=attributes,
        resource=resource,
        scope=scope,
        events=events,
        failed=failed(status, attributes),
    )


def _event(data: bytes) -> list[tuple[str, int]]:
    """The name and the time of an event; nothing where it lacks one of them."""
    said = {number: value for number, _, value in fields(data) if number in (1, 2)}
    name, time = _text(said.get(2, b""), 64), moment(_integer(said.get(1, b"")))
    return [(name, time)] if name and time is not None and 1 in said else []


def _attributes(entries: list[bytes]) -> dict[str, object]:
    said: dict[str, object] = {}
    for entry in entries[:MAX_ATTRIBUTES]:
        pair = {number: value for number, _, value in fields(entry) if number in (1, 2)}
        if key := _text(pair.get(1, b""), 128):
            said[key] = _any(_bytes(pair.get(2, b"")))
    return said


def _any(data: bytes) -> object:
    """An AnyValue: text, bool, int or Decimal; None for bytes and maps, and for lists but those of one text."""
    said: object = None
    for number, wire, value in fields(data):
        if number == 1:
            said = _raw(value)
        elif number == 2:
            said = bool(_integer(value))
        elif number == 3:
            said = signed(_integer(value))
        elif number == 4 and wire == FIXED64:
            (real,) = struct.unpack("<d", _bytes(value))
            said = Decimal(repr(real)) if math.isfinite(real) else None
        elif number == 5:
            inner = [_bytes(item) for at, _, item in fields(_bytes(value)) if at == 1]
            said = next((_raw(one) for at, _, one in fields(inner[0]) if at == 1), None) if len(inner) == 1 else None
        else:
            said = None
    return said


def _raw(value: int | bytes) -> str:
    """Text as the file has it, which whoever shows it cleans: what is cleaned too early may look like a number."""
    return _bytes(value)[: 4 * LONGEST_TEXT].decode("utf-8", "replace")[:LONGEST_TEXT]


def _first_text(data: bytes, limit: int) -> str:
    return next((_text(value, limit) for number, _, value in fields(data) if number == 1), "")


def _text(value: int | bytes, limit: int) -> str:
    return text_of(_bytes(value).decode("utf-8", "replace"), limit)


def _bytes(value: int | bytes) -> bytes:
    """A field that must have a length. Errors: Damaged."""
    if isinstance(value, int):
        raise Damaged
    return value


def _integer(value: int | bytes) -> int:
    """A varint, or the eight bytes of a fixed64."""
    return value if isinstance(value, int) else int.from_bytes(value, "little")
