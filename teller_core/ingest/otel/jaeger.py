"""Traces as the Jaeger UI downloads them and its API answers: ``traceID``, ``operationName`` and microseconds."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from teller_core.ingest.decimals import NS_PER_US
from teller_core.ingest.documents import documents
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_object, text_of
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
    rows,
)

NAME = "jaeger_json"


def sniff(head: bytes) -> bool:
    """Whether it is a JSON object with traces of Jaeger."""
    begin = head.lstrip()[: 1 << 14]
    return begin.startswith(b"{") and b'"traceID"' in begin and (b'"spans"' in begin or b'"spanID"' in begin)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Request spans, to the microsecond. Problems, other and errors as :func:`reader.read_otlp`."""
    return request_spans(Found(), place, _spans(documents(path)), path.name)


def _spans(said: Iterator[object]) -> Iterator[Span | None]:
    for document in said:
        if not isinstance(document, dict):
            yield None
            continue
        whole = cast("Row", document)
        for trace in rows(whole.get("data")) or [whole]:
            processes = as_object(trace.get("processes"))
            resources = {name: _resource(as_object(process)) for name, process in processes.items()}
            for span in rows(trace.get("spans")):
                yield _span(span, resources)


def _resource(process: Row) -> dict[str, object]:
    return {**_tags(process.get("tags")), "service.name": process.get("serviceName")}


def _span(row: Row, resources: Mapping[str, Row]) -> Span:
    start, took = moment(row.get("startTime"), NS_PER_US), moment(row.get("duration"), NS_PER_US)
    tags = _tags(row.get("tags"))
    above = [ref for ref in rows(row.get("references")) if ref.get("refType") == "CHILD_OF"]
    resource = resources.get(text_of(row.get("processID"), 64)) or _resource(as_object(row.get("process")))
    return Span(
        name=text_of(row.get("operationName"), 128),
        trace_id=hex_id(row.get("traceID"), TRACE_DIGITS),
        span_id=hex_id(row.get("spanID"), SPAN_DIGITS),
        parent=hex_id(above[0].get("spanID") if above else row.get("parentSpanID"), SPAN_DIGITS),
        kind=kind_of(tags.get("span.kind")),
        start=start,
        end=None if start is None or took is None else start + took,
        attributes=tags,
        resource=resource,
        scope=text_of(tags.get("otel.scope.name", tags.get("otel.library.name")), 64),
        events=list(_events(row.get("logs"))),
        failed=failed(None, tags),
    )


def _tags(value: object) -> dict[str, object]:
    return {text_of(tag.get("key"), 128): tag.get("value") for tag in rows(value)[:MAX_ATTRIBUTES]}


def _events(value: object) -> Iterator[tuple[str, int]]:
    for row in rows(value)[:MAX_EVENTS]:
        said = _tags(row.get("fields"))
        name, time = text_of(said.get("event", said.get("message")), 64), moment(row.get("timestamp"), NS_PER_US)
        if name and time is not None:
            yield name, time
