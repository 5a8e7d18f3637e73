"""Traces as Zipkin keeps them (version 2 of its API): a JSON list of spans, or of traces, in microseconds."""

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from teller_core.ingest.decimals import NS_PER_US
from teller_core.ingest.documents import documents
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_object, text_of
from teller_core.ingest.otel.requests import request_spans
from teller_core.ingest.otel.span import (
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

NAME = "zipkin_json"
RESOURCE = ("service.", "telemetry.", "process.", "vllm.instrumenting", "vllm.process", "host.", "k8s.")
"""Tags under which exporters of OpenTelemetry put what they know of the process."""


def sniff(head: bytes) -> bool:
    """Whether it is a JSON list that begins with a span of Zipkin."""
    begin = head.lstrip()[: 1 << 14]
    return begin.startswith(b"[") and b'"traceId"' in begin and b'"id"' in begin and b'"timestamp"' in begin


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Request spans, to the microsecond. Problems, other and errors as :func:`reader.read_otlp`."""
    return request_spans(Found(), place, _spans(documents(path)), path.name)


def _spans(said: Iterator[object]) -> Iterator[Span | None]:
    for document in said:
        if not isinstance(document, list):
            yield None
            continue
        for item in cast("list[object]", document):
            for row in rows(cast("object", item)) if isinstance(item, list) else [as_object(item)]:
                yield _span(row)


def _span(row: Row) -> Span:
    start, took = moment(row.get("timestamp"), NS_PER_US), moment(row.get("duration", 0), NS_PER_US)
    tags = as_object(row.get("tags"))
    resource = {key: value for key, value in tags.items() if key.startswith(RESOURCE)}
    service = as_object(row.get("localEndpoint")).get("serviceName")
    return Span(
        name=text_of(row.get("name"), 128),
        trace_id=hex_id(row.get("traceId"), TRACE_DIGITS),
        span_id=hex_id(row.get("id"), SPAN_DIGITS),
        parent=hex_id(row.get("parentId"), SPAN_DIGITS),
        kind=kind_of(row.get("kind")),
        start=start,
        end=None if start is None or took is None else start + took,
        attributes=tags,
        resource={**resource, "service.name": resource.get("service.name", service)},
        scope=text_of(tags.get("otel.scope.name", tags.get("otel.library.name")), 64),
        events=list(_events(row.get("annotations"))),
        failed=failed(None, tags),
    )


def _events(value: object) -> Iterator[tuple[str, int]]:
    for row in rows(value)[:MAX_EVENTS]:
        name, time = text_of(row.get("value"), 64), moment(row.get("timestamp"), NS_PER_US)
        if name and time is not None:
            yield name, time
