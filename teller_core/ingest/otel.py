"""Spans of requests, as OpenTelemetry exports them: OTLP JSON, and one flat object a line as small receivers write.

The attributes ``gen_ai.latency.*`` are seconds (vLLM 0.32, SGLang the same). Their origins differ, so they may not be subtracted
from one another without care: ``time_in_queue`` from queued to first scheduled, ``time_in_model_prefill`` from there to the
first token inside the engine, ``time_in_model_decode`` from there to the last; ``time_to_first_token`` and ``e2e`` begin when
the front end got the request.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

from teller_core.data.records import Process, RequestSpan
from teller_core.errors import FormatError
from teller_core.ingest.decimals import NS_PER_S, count, few, scaled
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_object, json_object, objects, text_of
from teller_core.ingest.source import read_whole

NAME = "otel_spans"
OTLP = "otlp_json"
LATENCY = "gen_ai.latency."
USAGE = "gen_ai.usage."
REQUEST = "gen_ai.request.id"
ROLES = {"worker": "worker", "engine_core": "engine", "api_server": "frontend"}
MAX_DOCUMENT = 512 << 20
Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether the first line is a flat span."""
    first = head.lstrip()[:4096].split(b"\n", 1)[0]
    return first.startswith(b"{") and all(key in first for key in (b'"trace_id"', b'"span_id"', b'"start"', b'"end"'))


def sniff_otlp(head: bytes) -> bool:
    """Whether it is OTLP JSON: one document, or one a line."""
    return head.lstrip().startswith(b"{") and b'"resourceSpans"' in head[:4096]


class _Span(NamedTuple):
    """A span of either form. Times are ns where they are numbers."""

    name: object
    trace_id: object
    start: object
    end: object
    attributes: Row
    resource: Row


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Request spans of a file of flat spans. Problems: ``bad_json``, ``bad_span``. Spans of no request are other."""
    found = Found()
    for row in objects(path):
        found.events += 1
        if row is None:
            found.problems["bad_json"] += 1
            continue
        name, trace_id, start, end = (row.get(key) for key in ("name", "trace_id", "start", "end"))
        attributes, resource = as_object(row.get("attrs")), as_object(row.get("resource"))
        _add(found, place, _Span(name, trace_id, start, end, attributes, resource))
    return found


def read_otlp(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """As :func:`read`, of OTLP JSON. Errors: FormatError where no line and not the whole is a document, LimitError."""
    found = Found()
    for document in _documents(path):
        for resource, span in _otlp_spans(document):
            found.events += 1
            start, end = (scaled(span.get(key), 1) for key in ("startTimeUnixNano", "endTimeUnixNano"))
            attributes = _attributes(span.get("attributes"))
            _add(found, place, _Span(span.get("name"), span.get("traceId"), start, end, attributes, resource))
    return found


def _add(found: Found, place: Place, span: _Span) -> None:
    name, begin, stop = text_of(span.name, 128), count(span.start), count(span.end)
    if not name or begin is None or stop is None or stop < begin:
        found.problems["bad_span"] += 1
        return
    _note_process(found, place, span.resource)
    request = text_of(span.attributes.get(REQUEST))
    if not request:
        found.other["span_without_request"] += 1
        return
    found.kept += 1
    producer = text_of(span.resource.get("vllm.instrumenting_module_name", span.resource.get("service.name")), 64)
    if producer.startswith("vllm"):
        found.engine = "vllm"
    durations = _numbers(span.attributes, LATENCY, NS_PER_S)
    tokens = {key: number for key, number in _numbers(span.attributes, USAGE, 1).items() if few(number) is not None}
    found.spans.append(RequestSpan(name, request, text_of(span.trace_id, 64), begin, stop, durations, tokens, producer))


def _note_process(found: Found, place: Place, resource: Row) -> None:
    pid = scaled(resource.get("vllm.process_id", resource.get("process.pid")), 1)
    if pid is not None and 0 < pid < 1 << 31:
        role = ROLES.get(text_of(resource.get("vllm.process_kind"), 32), "unknown")
        found.processes.append(Process(place.host, pid, role))


def _numbers(attributes: Row, prefix: str, factor: int) -> dict[str, int]:
    """The attributes that begin with ``prefix``, times ``factor``."""
    numbers = {key: scaled(value, factor) for key, value in attributes.items() if key.startswith(prefix)}
    return {text_of(key): number for key, number in numbers.items() if number is not None and number >= 0}


def _documents(path: Path) -> Iterator[Row]:
    """Each line's document; where the first line is none, the file as one document."""
    text = read_whole(path, MAX_DOCUMENT)
    whole = json_object(text)
    if whole is not None:
        yield whole
        return
    rows = [json_object(line) for line in text.split(b"\n") if line and not line.isspace()]
    if not rows or any(row is None for row in rows):
        raise FormatError(path.name, "the JSON ends early or is broken", "Export the spans again")
    yield from (row for row in rows if row is not None)


def _otlp_spans(document: Row) -> Iterator[tuple[Row, Row]]:
    for group in _list(document.get("resourceSpans")):
        resource = _attributes(as_object(group.get("resource")).get("attributes"))
        for scope in _list(group.get("scopeSpans")):
            for span in _list(scope.get("spans")):
                yield resource, span


def _attributes(value: object) -> dict[str, object]:
    """OTLP's list of keys and typed values as one mapping."""
    said: dict[str, object] = {}
    for entry in _list(value):
        typed = list(as_object(entry.get("value")).values())
        if isinstance(entry.get("key"), str) and typed:
            said[text_of(entry["key"], 128)] = typed[0]
    return said


def _list(value: object) -> list[Row]:
    return [as_object(item) for item in cast("list[object]", value)] if isinstance(value, list) else []
