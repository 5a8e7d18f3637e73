"""Spans of requests: one truth in five forms, and what each form may hold."""

import base64
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from teller_core.data.records import RequestSpan
from teller_core.errors import FormatError, LimitError
from teller_core.ingest import documents as otel_documents
from teller_core.ingest.found import Found, Place, Read
from teller_core.ingest.otel import jaeger as otel_jaeger
from teller_core.ingest.otel import protobuf as otel_protobuf
from teller_core.ingest.otel import reader as otel
from teller_core.ingest.otel import zipkin as otel_zipkin
from teller_core.ingest.otel.span import hex_id, kind_of

DATA = Path(__file__).parents[3] / "data"
SHARED = Path(__file__).parents[5] / "shared" / "captures" / "vllm_engine_profile" / "otel_spans.jsonl"
FLAT = DATA / "otel_spans" / "vllm" / "input.jsonl"
Row = Mapping[str, Any]


def read(read_: Read, folder: Path, content: bytes) -> Found:
    path = folder / "input"
    path.write_bytes(content)
    return read_(path, Place(), None)


def typed(value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def key_values(attributes: Row) -> list[Row]:
    return [{"key": key, "value": typed(value)} for key, value in attributes.items()]


def otlp(rows: Sequence[Row]) -> dict[str, Any]:
    """Flat spans as an OTLP document: a resource each."""
    groups = [
        {
            "resource": {"attributes": key_values(row["resource"])},
            "scopeSpans": [
                {
                    "scope": {"name": row["scope"]},
                    "spans": [
                        {
                            "traceId": row["trace_id"],
                            "spanId": row["span_id"],
                            "parentSpanId": row["parent"],
                            "name": row["name"],
                            "kind": row["kind"],
                            "startTimeUnixNano": str(row["start"]),
                            "endTimeUnixNano": str(row["end"]),
                            "attributes": key_values(row["attrs"]),
                        }
                    ],
                }
            ],
        }
        for row in rows
    ]
    return {"resourceSpans": groups}


def with_base64_ids(value: Any) -> Any:
    """As protobuf's own mapping to JSON writes ids."""
    if isinstance(value, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {
            key: base64.b64encode(bytes.fromhex(inner)).decode() if key in ids else with_base64_ids(inner)
            for key, inner in value.items()
        }
    return [with_base64_ids(inner) for inner in value] if isinstance(value, list) else value


def protobuf(document: Row) -> bytes:
    return json_format.ParseDict(with_base64_ids(document), ExportTraceServiceRequest()).SerializeToString()


def jaeger(rows: Sequence[Row]) -> dict[str, Any]:
    spans = [
        {
            "traceID": row["trace_id"].lstrip("0"),
            "spanID": row["span_id"],
            "operationName": row["name"],
            "references": [{"refType": "CHILD_OF", "traceID": row["trace_id"], "spanID": row["parent"]}],
            "startTime": row["start"] // 1000,
            "duration": row["end"] // 1000 - row["start"] // 1000,
            "tags": [{"key": key, "type": "string", "value": value} for key, value in row["attrs"].items()]
            + [{"key": "otel.scope.name", "value": row["scope"]}],
            "processID": f"p{i}",
        }
        for i, row in enumerate(rows)
    ]
    processes = {
        f"p{i}": {
            "serviceName": row["resource"]["service.name"],
            "tags": [{"key": key, "value": value} for key, value in row["resource"].items()],
        }
        for i, row in enumerate(rows)
    }
    return {"data": [{"traceID": "x", "spans": spans, "processes": processes}]}


def zipkin(rows: Sequence[Row]) -> list[Any]:
    return [
        {
            "traceId": row["trace_id"],
            "id": row["span_id"],
            "parentId": row["parent"],
            "name": row["name"],
            "timestamp": row["start"] // 1000,
            "duration": row["end"] // 1000 - row["start"] // 1000,
            "localEndpoint": {"serviceName": row["resource"]["service.name"]},
            "tags": {key: str(value) for key, value in {**row["attrs"], **row["resource"]}.items()}
            | {"otel.scope.name": row["scope"]},
        }
        for row in rows
    ]


def to_microseconds(span: RequestSpan) -> RequestSpan:
    return span._replace(start=span.start // 1000 * 1000, end=span.end // 1000 * 1000)


def flat_rows() -> list[Row]:
    source = SHARED if SHARED.exists() else FLAT
    return [json.loads(line) for line in source.read_text().splitlines()]


def test_one_service_in_five_forms_has_the_same_requests(tmp_path: Path) -> None:
    rows = flat_rows()
    document = otlp(rows)
    want = read(otel.read, tmp_path, "\n".join(map(json.dumps, rows)).encode())
    exact: dict[str, tuple[Read, bytes]] = {
        "json": (otel.read_otlp, json.dumps(document).encode()),
        "tempo": (otel.read_otlp, json.dumps(with_base64_ids({"batches": document["resourceSpans"]})).encode()),
        "protobuf": (otel_protobuf.read, protobuf(document)),
        "framed": (otel_protobuf.read, b"".join(framed(otlp([row])) for row in rows)),
    }
    for name, (reader, content) in exact.items():
        assert read(reader, tmp_path, content).spans == want.spans, name
    rounded = [to_microseconds(span) for span in want.spans]
    assert read(otel_jaeger.read, tmp_path, json.dumps(jaeger(rows)).encode()).spans == rounded
    assert read(otel_zipkin.read, tmp_path, json.dumps(zipkin(rows)).encode()).spans == rounded
    assert want.kept == sum(row["name"] == "llm_request" for row in rows)
    assert want.events == want.kept + sum(want.other.values()) == len(rows)


def framed(document: Row) -> bytes:
    message = protobuf(document)
    return struct.pack(">I", len(message)) + message


IDS = st.integers(1, 2**64 - 1).map(lambda number: f"{number:016x}")
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
SPANS = st.builds(
    lambda name, trace, span, times, queue, tokens, more, kind: {
        "name": name,
        "trace_id": trace * 2,
        "span_id": span,
        "parent": trace,
        "kind": kind,
        "start": min(times),
        "end": max(times),
        "attrs": {
            "gen_ai.request.id": name,
            "gen_ai.latency.time_in_queue": queue,
            "gen_ai.usage.prompt_tokens": tokens,
            **more,
        },
        "scope": "vllm",
        "resource": {"service.name": "vllm", "process.pid": 7},
    },
    name=st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=20),
    trace=IDS,
    span=IDS,
    times=st.lists(st.integers(0, 2**61), min_size=2, max_size=2),
    queue=NUMBERS,
    tokens=NUMBERS,
    more=st.dictionaries(
        st.sampled_from(
            ("a", "gen_ai.latency.e2e", "gen_ai.latency.time_to_first_token", "gen_ai.usage.output_tokens")
        ),
        st.one_of(NUMBERS, st.booleans(), st.text(max_size=5)),
    ),
    kind=st.integers(0, 5),
)


def span_with(**more: object) -> Row:
    """A span with further attributes, dots written as two underscores."""
    attributes = {"gen_ai.request.id": "a", **{key.replace("__", "."): value for key, value in more.items()}}
    ids = {"trace_id": f"{1:032x}", "span_id": f"{1:016x}", "parent": ""}
    return {"name": "a", **ids, "kind": 0, "start": 0, "end": 0, "attrs": attributes, "scope": "vllm", "resource": {}}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=st.lists(SPANS, min_size=1, max_size=4))
@example(rows=[span_with(gen_ai__latency__e2e="0\x1b")])
def test_protobuf_and_json_say_the_same(tmp_path: Path, rows: Sequence[Row]) -> None:
    document = otlp(rows)
    as_json = read(otel.read_otlp, tmp_path, json.dumps(document).encode())
    as_protobuf = read(otel_protobuf.read, tmp_path, protobuf(document))
    assert as_protobuf.spans == as_json.spans
    assert (as_protobuf.events, as_protobuf.kept, as_protobuf.problems) == (
        as_json.events,
        as_json.kept,
        as_json.problems,
    )
    assert as_json.kept == len(rows)


def test_a_protobuf_file_is_known_by_what_is_in_it() -> None:
    message = protobuf(otlp(flat_rows()[:2]))
    assert otel_protobuf.sniff(message)
    assert otel_protobuf.sniff(message[:100])
    assert otel_protobuf.sniff(struct.pack(">I", len(message)) + message)
    for other in (
        b"",
        b"\0",
        b"\n",
        b"\n\x05hello",
        b"\x0a\x02\x0a\x00",
        b"\n\n\n\n",
        b"\0\0\0\x04abcd",
        b"\x0a\x10" + b"x" * 16,
    ):
        assert not otel_protobuf.sniff(other), other


@pytest.mark.parametrize("cut", [1, 7, 60])
def test_a_protobuf_file_that_breaks_off_is_refused(tmp_path: Path, cut: int) -> None:
    message = framed(otlp(flat_rows()[:2]))
    with pytest.raises(FormatError):
        read(otel_protobuf.read, tmp_path, message[:-cut])


@pytest.mark.parametrize("length", [b"\x7f\xff\xff\xff", b"\x10\x00\x00\x00"])
def test_a_length_that_no_message_has_asks_for_no_memory(tmp_path: Path, length: bytes) -> None:
    with pytest.raises((LimitError, FormatError)):
        read(otel_protobuf.read, tmp_path, b"\0\0\0\0" + length + b"x")


def test_a_document_over_the_bound_is_refused_and_a_line_over_it_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps(otlp(flat_rows()[-1:])).encode()
    monkeypatch.setattr(otel_documents, "MAX_DOCUMENT", len(line) + 10)
    with pytest.raises(LimitError):
        read(otel.read_otlp, tmp_path, json.dumps(otlp(flat_rows()), indent=1).encode())
    found = read(otel.read_otlp, tmp_path, line + b"\n" + line + b" " * 20 + b"\n" + line)
    assert (found.kept, found.problems["bad_json"]) == (2, 1)


@pytest.mark.parametrize(
    ("written", "digits", "id_"),
    [
        ("4BF92F3577B34DA6A3CE929D0E0E4736", 32, "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("S/kvNXezTaajzpKdDg5HNg==", 32, "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("S_kvNXezTaajzpKdDg5HNg==", 32, "4bf92f3577b34da6a3ce929d0e0e4736"),
        ("a1", 16, "00000000000000a1"),
        ("APBnqgupArc=", 16, "00f067aa0ba902b7"),
        ("0000000000000000", 16, ""),
        ("", 16, ""),
        (None, 16, ""),
        ("no hex: kept", 16, "no hex: kept"),
        (bytes(16), 32, ""),
    ],
)
def test_ids_are_hex_however_they_are_written(written: object, digits: int, id_: str) -> None:
    assert hex_id(written, digits) == id_


@pytest.mark.parametrize(
    ("written", "kind"), [(2, "server"), ("SPAN_KIND_CLIENT", "client"), ("server", "server"), (9, ""), (None, "")]
)
def test_kinds_are_numbers_or_words(written: object, kind: str) -> None:
    assert kind_of(written) == kind


CALLER = {
    "chat m": ({"gen_ai.operation.name": "chat", "gen_ai.response.id": "chatcmpl-1"}, 3, "caller"),
    "litellm_request": ({"gen_ai.response.id": "chatcmpl-1", "llm.is_streaming": True}, 1, "caller"),
    "agent": ({"gen_ai.operation.name": "invoke_agent"}, 3, None),
    "POST /v1/chat/completions": ({"http.request.method": "POST", "url.path": "/v1/chat/completions"}, 2, "server"),
    "POST": ({"http.method": "POST", "http.url": "http://h/generate?token=secret"}, 3, "client"),
    "GET /health": ({"http.method": "GET", "http.target": "/health"}, 2, None),
    "ingress": ({"component": "proxy", "http.url": "http://h/v1/completions"}, 2, "gateway"),
    "egress": ({"component": "proxy", "http.url": "http://h/metrics"}, 2, None),
    "db": ({"db.system": "redis"}, 3, None),
}


@pytest.mark.parametrize("name", CALLER)
def test_what_a_span_is_of_a_request(tmp_path: Path, name: str) -> None:
    attrs, kind, leg = CALLER[name]
    row = {"name": name, "trace_id": "a" * 32, "span_id": "b" * 16, "parent": "", "kind": kind, "start": 5, "end": 9}
    found = read(otel.read, tmp_path, json.dumps({**row, "attrs": attrs, "resource": {}, "scope": "x"}).encode())
    assert [span.leg for span in found.spans] == ([leg] if leg else [])
    assert found.events == found.kept + sum(found.other.values()) == 1
    assert "secret" not in repr(found.spans)


def test_an_error_is_told_by_the_status_the_tags_or_http(tmp_path: Path) -> None:
    base = {"name": "llm_request", "trace_id": "a" * 32, "span_id": "b" * 16, "start": 5, "end": 9, "resource": {}}
    for more, failed in (
        ({"error": True}, True),
        ({"http.response.status_code": 503}, True),
        ({"error": "false"}, False),
        ({}, False),
    ):
        row = {**base, "attrs": {"gen_ai.request.id": "r", **more}}
        assert read(otel.read, tmp_path, json.dumps(row).encode()).spans[0].error is failed


FORMS: dict[str, Callable[[Sequence[Row]], bytes]] = {
    "json": lambda rows: json.dumps(otlp(rows)).encode(),
    "wire": lambda rows: protobuf(otlp(rows)),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_thousand_spans_without_a_request_are_counted_and_let_go(tmp_path: Path, form: str) -> None:
    row = {**flat_rows()[0], "attrs": {"code.function": "f"}, "name": "Load weights"}
    reader = otel.read_otlp if form == "json" else otel_protobuf.read
    found = read(reader, tmp_path, FORMS[form]([row] * 1000))
    assert (found.events, found.kept, found.other["span_without_request"]) == (1000, 0, 1000)
