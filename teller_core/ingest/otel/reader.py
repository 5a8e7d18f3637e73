"""Spans of requests, as OpenTelemetry exports them: OTLP JSON, and one flat object a line as small receivers write.

OTLP JSON is read in both spellings of its keys, with ids in hex or base64, one document or one a line, under
``resourceSpans`` (older: ``instrumentationLibrarySpans`` in it), as Tempo answers (``batches``) and as Jaeger's API of
version 3 does (inside ``result``).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from teller_core.ingest.documents import documents
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_object, objects, text_of
from teller_core.ingest.otel.requests import request_spans
from teller_core.ingest.otel.span import (
    MAX_EVENTS,
    SPAN_DIGITS,
    TRACE_DIGITS,
    Row,
    Span,
    failed,
    hex_id,
    key_values,
    kind_of,
    member,
    moment,
    rows,
)

NAME = "otel_spans"
OTLP = "otlp_json"
GROUPS = ("resourceSpans", "resource_spans", "batches")
SCOPES = (
    "scopeSpans",
    "scope_spans",
    "instrumentationLibrarySpans",
    "instrumentation_library_spans",
)
WRAPPERS = ("result", "trace", "data")
"""Members in which services wrap a document that they answer with."""


def sniff(head: bytes) -> bool:
    """Whether the first line is a flat span."""
    first = head.lstrip()[:4096].split(b"\n", 1)[0]
    return first.startswith(b"{") and all(key in first for key in (b'"trace_id"', b'"span_id"', b'"start"', b'"end"'))


def sniff_otlp(head: bytes) -> bool:
    """Whether it is OTLP JSON: one document, or one a line."""
    begin = head.lstrip()[:4096]
    if not begin.startswith(b"{"):
        return False
    tempo = b'"batches"' in begin and (b'"resource"' in begin or b'"scopeSpans"' in begin)
    return tempo or b'"resourceSpans"' in begin or b'"resource_spans"' in begin


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Request spans of a file of flat spans. Problems and other as :func:`requests.request_spans`."""
    return request_spans(Found(), place, (None if row is None else _flat(row) for row in objects(path)), path.name)


def read_otlp(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """As :func:`read`, of OTLP JSON. Errors: FormatError where no line and not the whole is a document, LimitError."""
    return request_spans(Found(), place, _spans(documents(path)), path.name)


def _flat(row: Row) -> Span:
    return Span(
        name=text_of(row.get("name"), 128),
        trace_id=hex_id(row.get("trace_id"), TRACE_DIGITS),
        span_id=hex_id(row.get("span_id"), SPAN_DIGITS),
        parent=hex_id(row.get("parent", row.get("parent_span_id")), SPAN_DIGITS),
        kind=kind_of(row.get("kind")),
        start=moment(row.get("start")),
        end=moment(row.get("end")),
        attributes=as_object(row.get("attrs", row.get("attributes"))),
        resource=as_object(row.get("resource")),
        scope=text_of(row.get("scope"), 64),
        events=list(_events(row.get("events"))),
        failed=failed(row.get("status"), as_object(row.get("attrs", row.get("attributes")))),
    )


def _spans(said: Iterator[object]) -> Iterator[Span | None]:
    for document in said:
        if not isinstance(document, dict):
            yield None
            continue
        for group in _groups(cast("Row", document)):
            resource = key_values(as_object(group.get("resource")).get("attributes"))
            for scope in (scope for key in SCOPES for scope in rows(group.get(key))):
                library = as_object(scope.get("scope", scope.get("instrumentationLibrary")))
                for span in rows(scope.get("spans")):
                    yield _span(span, resource, text_of(library.get("name"), 64))


def _groups(document: Row) -> Iterator[Row]:
    inner = [as_object(document.get(key)) for key in WRAPPERS if isinstance(document.get(key), dict)]
    for level in (document, *inner):
        for key in GROUPS:
            yield from rows(level.get(key))


def _span(row: Row, resource: Row, scope: str) -> Span:
    attributes = key_values(row.get("attributes"))
    return Span(
        name=text_of(row.get("name"), 128),
        trace_id=hex_id(member(row, "traceId", "trace_id"), TRACE_DIGITS),
        span_id=hex_id(member(row, "spanId", "span_id"), SPAN_DIGITS),
        parent=hex_id(member(row, "parentSpanId", "parent_span_id"), SPAN_DIGITS),
        kind=kind_of(row.get("kind")),
        start=moment(member(row, "startTimeUnixNano", "start_time_unix_nano")),
        end=moment(member(row, "endTimeUnixNano", "end_time_unix_nano")),
        attributes=attributes,
        resource=resource,
        scope=scope,
        events=list(_events(row.get("events"))),
        failed=failed(as_object(row.get("status")).get("code"), attributes),
    )


def _events(value: object) -> Iterator[tuple[str, int]]:
    for row in rows(value)[:MAX_EVENTS]:
        time = moment(member(row, "timeUnixNano", "time_unix_nano"))
        time = moment(row.get("timestamp", row.get("time"))) if time is None else time
        name = text_of(row.get("name"), 64)
        if name and time is not None:
            yield name, time
