"""Spans of requests, as OpenTelemetry exports them: OTLP JSON, and one flat object a line as small receivers write.

The attributes ``gen_ai.latency.*`` are seconds (vLLM 0.32, SGLang the same). Their origins differ, so they may not be subtracted
from one another without care: ``time_in_queue`` from queued to first scheduled, ``time_in_model_prefill`` from there to the
first token inside the engine, ``time_in_model_decode`` from there to the last; ``time_to_first_token`` and ``e2e`` begin when
the front end got the request.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.data.records import Process, RequestSpan
from teller_core.errors import FormatError, LimitError
from teller_core.ingest.decimals import NS_PER_S, count, scaled
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import file_lines, json_object, text_of
from teller_core.ingest.source import open_source

NAME = "otel_spans"
OTLP = "otlp_json"
LATENCY = "gen_ai.latency."
USAGE = "gen_ai.usage."
REQUEST = "gen_ai.request.id"
MAX_DOCUMENT = 512 << 20
Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether the first line is a flat span."""
    first = head.lstrip()[:4096].split(b"\n", 1)[0]
    return first.startswith(b"{") and all(key in first for key in (b'"trace_id"', b'"span_id"', b'"start"', b'"end"'))


def sniff_otlp(head: bytes) -> bool:
    """Whether it is OTLP JSON: one document, or one a line."""
    return head.lstrip().startswith(b"{") and b'"resourceSpans"' in head[:4096]


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Request spans of a file of flat spans. Problems: ``bad_json``, ``bad_span``. Spans of no request are other."""
    found = Found()
    for line, skipped in file_lines(path):
        if not line or line.isspace():
            continue
        found.events += 1
        row = None if skipped else json_object(line)
        if row is None:
            found.problems["bad_json"] += 1
            continue
        _add(
            found, place, row, _object(row.get("attrs")), _object(row.get("resource")), row.get("start"), row.get("end")
        )
    return found


def read_otlp(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """As :func:`read`, of OTLP JSON. Errors: FormatError where no line and not the whole is a document, LimitError."""
    found = Found()
    for document in _documents(path):
        for resource, span in _otlp_spans(document):
            found.events += 1
            start, end = (scaled(span.get(key), 1) for key in ("startTimeUnixNano", "endTimeUnixNano"))
            flat = {"name": span.get("name"), "trace_id": span.get("traceId")}
            _add(found, place, flat, _attributes(span.get("attributes")), resource, start, end)
    return found


def _add(found: Found, place: Place, row: Row, attributes: Row, resource: Row, start: object, end: object) -> None:
    name, begin, stop = text_of(row.get("name"), 128), count(start), count(end)
    if not name or begin is None or stop is None or stop < begin:
        found.problems["bad_span"] += 1
        return
    pid = scaled(resource.get("vllm.process_id", resource.get("process.pid")), 1)
    kind = text_of(resource.get("vllm.process_kind"), 32)
    if pid and 0 < pid < 1 << 31:
        role = {"worker": "worker", "engine_core": "engine", "api_server": "frontend"}.get(kind, "unknown")
        found.processes.append(Process(place.host, pid, role))
    request = text_of(attributes.get(REQUEST))
    if not request:
        found.other["span_without_request"] += 1
        return
    found.kept += 1
    producer = text_of(resource.get("vllm.instrumenting_module_name", resource.get("service.name")), 64)
    if producer.startswith("vllm"):
        found.engine = "vllm"
    durations = {
        key: ns
        for key, value in attributes.items()
        if key.startswith(LATENCY) and (ns := scaled(value, NS_PER_S)) is not None
    }
    tokens = {key: n for key, v in attributes.items() if key.startswith(USAGE) and (n := scaled(v, 1)) is not None}
    found.spans.append(
        RequestSpan(name, request, text_of(row.get("trace_id"), 64), begin, stop, durations, tokens, producer)
    )


def _documents(path: Path) -> Iterator[Row]:
    """Each line's document; where the first line is none, the file as one document."""
    with open_source(path) as source:
        text = bytearray()
        room = bytearray(1 << 20)
        while got := source.fill(memoryview(room)):
            text += room[:got]
            if len(text) > MAX_DOCUMENT:
                raise LimitError(path.name, f"spans over {MAX_DOCUMENT >> 20} MiB", "Split the file by lines")
    whole = json_object(bytes(text))
    if whole is not None:
        yield whole
        return
    rows = [json_object(line) for line in bytes(text).split(b"\n") if line and not line.isspace()]
    if not rows or any(row is None for row in rows):
        raise FormatError(path.name, "the JSON ends early or is broken", "Export the spans again")
    yield from (row for row in rows if row is not None)


def _otlp_spans(document: Row) -> Iterator[tuple[Row, Row]]:
    for group in _list(document.get("resourceSpans")):
        resource = _attributes(_object(group.get("resource")).get("attributes"))
        for scope in _list(group.get("scopeSpans")):
            for span in _list(scope.get("spans")):
                yield resource, span


def _attributes(value: object) -> dict[str, object]:
    """OTLP's list of keys and typed values as one mapping."""
    said: dict[str, object] = {}
    for entry in _list(value):
        typed = list(_object(entry.get("value")).values())
        if isinstance(entry.get("key"), str) and typed:
            said[text_of(entry["key"], 128)] = typed[0]
    return said


def _object(value: object) -> Row:
    return cast("Row", value) if isinstance(value, dict) else {}


def _list(value: object) -> list[Row]:
    return [_object(item) for item in cast("list[object]", value)] if isinstance(value, list) else []
