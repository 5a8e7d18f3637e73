"""From the spans of a file to the spans of requests: what each is a leg of, when its moments were, and whose child it is."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from teller_core.data.records import Interval, Process, RequestSpan
from teller_core.errors import LimitError
from teller_core.ingest.decimals import NS_PER_MS, NS_PER_S, NS_PER_US, count, few, scaled
from teller_core.ingest.found import Found, Place
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.otel import origins
from teller_core.ingest.otel.span import Row, Span

ROLES = {"worker": "worker", "engine_core": "engine", "api_server": "frontend"}
MAX_SPANS = 4_000_000
"""Spans of one file: at some 300 bytes each, about a gigabyte."""
MAX_DEPTH = 64
"""Generations between a slice and its request; there are two or three."""
_TIME = re.compile(r"(?P<value>\d{1,12}(?:\.\d{1,12})?)(?P<unit>ns|us|\u00b5s|\u03bcs|ms|s)")
_UNITS = {"ns": 1, "us": NS_PER_US, "\u00b5s": NS_PER_US, "\u03bcs": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S}
"""How Rust writes a duration."""
NAMELESS = "unknown_service"
"""What SDKs call a process that was given no name."""
CHATS = frozenset({"", "chat", "text_completion", "generate_content", "embeddings", "completion"})
"""Operations of the GenAI conventions that are requests to a model; others are steps of an agent around them."""


@dataclass
class _Kept:
    """What is kept of a file while it is read. Keys are (trace id, span id)."""

    parents: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    requests: list[RequestSpan] = field(default_factory=list[RequestSpan])
    around: list[RequestSpan] = field(default_factory=list[RequestSpan])
    """HTTP spans that are of a request only if their trace is of one."""
    slices: list[tuple[tuple[str, str], dict[str, int]]] = field(
        default_factory=list[tuple[tuple[str, str], dict[str, int]]]
    )
    """Parts of requests: the key of the parent, and the moments that they tell."""


def request_spans(found: Found, place: Place, spans: Iterable[Span | None], name: str) -> Found:
    """``found`` with the spans of requests among ``spans``; None among them is a record that held no span (``bad_json``).

    Problems: ``bad_span``: without a name, or with times that are none or run backwards. Other: ``span_without_request``.
    Errors: LimitError for more than MAX_SPANS; ``name`` is the file's.
    """
    kept = _Kept()
    for span in spans:
        found.events += 1
        if span is None:
            found.problems["bad_json"] += 1
        elif not span.name or span.start is None or span.end is None or span.end < span.start:
            found.problems["bad_span"] += 1
        elif found.events > MAX_SPANS:
            raise LimitError(name, f"it holds over {MAX_SPANS:,} spans", "Export a shorter time at once")
        else:
            _note_process(found, place, span.resource)
            _sort(found, kept, span, span.start, span.end)
    _finish(found, kept)
    return found


def _sort(found: Found, kept: _Kept, span: Span, start: int, end: int) -> None:
    engine = _engine(span)
    leg = _leg(span, engine)
    if span.span_id:
        kept.parents[span.trace_id, span.span_id] = span.parent
    if leg:
        kept.requests.append(_request(span, start, end, engine, leg))
        found.engine = engine if leg == "engine" and engine in ("vllm", "sglang", "tgi") else found.engine
    elif span.name.lower() in origins.SLICES or _moments(span):
        begin, stop = origins.SLICES.get(span.name.lower(), ("", ""))
        moments = _moments(span) | {name: time for name, time in ((begin, start), (stop, end)) if name}
        kept.slices.append(((span.trace_id, span.parent), moments))
    elif span.kind in ("server", "client") and span.trace_id and _path(span) is not None:
        kept.around.append(_request(span, start, end, engine, "http"))
    else:
        found.other["span_without_request"] += 1


def _finish(found: Found, kept: _Kept) -> None:
    """Slices go to the request above them, HTTP spans to a request of their trace; parents skip what was not kept."""
    traces = {span.trace_id for span in kept.requests}
    joined = [span for span in kept.around if span.trace_id in traces]
    found.other["span_without_request"] += len(kept.around) - len(joined)
    legs = kept.requests + joined
    own = {(span.trace_id, span.span_id) for span in legs if span.span_id}
    parts: defaultdict[tuple[str, str], list[Mapping[str, int]]] = defaultdict(list)
    for parent, moments in kept.slices:
        above = _above(parent, own, kept.parents)
        if above is None:
            found.other["span_without_request"] += 1
        else:
            found.kept += 1
            parts[above].append(moments)
    for span in legs:
        above = _above((span.trace_id, span.parent), own, kept.parents)
        told = parts.get((span.trace_id, span.span_id), ())
        points = _merged([span.points, *told]) if told else span.points
        found.spans.append(span._replace(parent=above[1] if above else span.parent, points=points))
    found.kept += len(legs)
    found.other = Counter({kind: number for kind, number in found.other.items() if number})


def _above(
    key: tuple[str, str], own: set[tuple[str, str]], parents: Mapping[tuple[str, str], str]
) -> tuple[str, str] | None:
    """The nearest kept span at ``key`` or above it."""
    for _ in range(MAX_DEPTH):
        if key in own:
            return key
        parent = parents.get(key, "")
        if not parent:
            return None
        key = (key[0], parent)
    return None


def _merged(told: Iterable[Mapping[str, int]]) -> dict[str, int]:
    times: defaultdict[str, list[int]] = defaultdict(list)
    for moments in told:
        for moment, time in moments.items():
            times[moment].append(time)
    return {moment: max(at) if moment in origins.LATEST else min(at) for moment, at in times.items()}


def _moments(span: Span) -> dict[str, int]:
    """The moments that its events mark."""
    marked = [(origins.EVENTS[name.lower()], time) for name, time in span.events if name.lower() in origins.EVENTS]
    return _merged([{moment: time} for moment, time in marked])


def _request(span: Span, start: int, end: int, engine: str, leg: str) -> RequestSpan:
    tables = _tables(span, engine) if leg not in ("server", "client", "http") else {}
    durations: dict[str, int] = {}
    intervals: list[Interval] = []
    for name, origin in tables.items():
        ns = _duration(span.attributes[name], origin.unit) if name in span.attributes else None
        if ns is not None:
            durations[name] = ns
            intervals.append(Interval(origin.begin, origin.end, ns, origin.clock))
    for name in origins.ALONE:
        ns = _duration(span.attributes[name], NS_PER_S) if name in span.attributes else None
        durations |= {name: ns} if ns is not None else {}
    return RequestSpan(
        name=text_of(span.name, 128),
        request=_request_id(span),
        trace_id=span.trace_id,
        start=start,
        end=end,
        durations=durations,
        tokens=_tokens(span.attributes),
        producer=_producer(span),
        proxy=leg == "gateway",
        error=span.failed,
        span_id=span.span_id,
        parent=span.parent,
        leg=leg,
        service="" if (service := text_of(span.resource.get("service.name"), 64)).startswith(NAMELESS) else service,
        intervals=intervals,
        points=_moments(span),
    )


def _tables(span: Span, engine: str) -> origins.Origins:
    """The durations that a span of ``engine`` may have, by attribute."""
    if engine != "vllm":
        return {"sglang": origins.SGLANG, "tgi": origins.TGI}.get(engine, origins.SEMANTIC)
    if "vllm.latency.ttft" in span.attributes:
        return origins.DATADOG
    told = span.attributes
    old = "gen_ai.latency.time_to_first_token" in told and "gen_ai.latency.time_in_model_prefill" not in told
    return origins.VLLM_V0 if old else origins.VLLM_V1


def _duration(value: object, unit: int) -> int | None:
    """int ns of a duration of 0 or more; None where it is none."""
    if unit:
        ns = scaled(value, unit)
        return ns if ns is not None and ns >= 0 else None
    written = _TIME.fullmatch(text_of(value, 32))
    return scaled(written["value"], _UNITS[written["unit"]]) if written else None


def _tokens(attributes: Row) -> dict[str, int]:
    tokens = {kept: few(scaled(attributes[name], 1)) for name, kept in origins.TOKENS.items() if name in attributes}
    return {name: number for name, number in tokens.items() if number is not None}


def _engine(span: Span) -> str:
    """Who made the span: vllm, sglang, tgi, triton, dynamo, or empty."""
    service, scope = text_of(span.resource.get("service.name"), 64).lower(), span.scope.lower()
    module = text_of(span.resource.get("vllm.instrumenting_module_name"), 64)
    if module or scope.startswith("vllm") or span.name in ("llm_request", "llm_core", "vllm.request"):
        return "sglang" if "sglang" in scope or "rid" in span.attributes else "vllm"
    if scope.startswith("sglang") or "sglang" in service or "rid" in span.attributes:
        return "sglang"
    if "vllm" in service:
        return "vllm"
    if "total_time" in span.attributes and "inference_time" in span.attributes:
        return "tgi"
    if "triton" in service or span.name == "InferRequest":
        return "triton"
    return "dynamo" if service.startswith("dynamo") else ""


def _leg(span: Span, engine: str) -> str:
    """What a span is of a request: engine, gateway or caller; empty where it alone does not say that it is of one."""
    said = span.attributes
    made = {
        "vllm": "gen_ai.request.id" in said or span.name in ("llm_request", "vllm.request"),
        "sglang": "rid" in said,
        "tgi": "total_time" in said,
        "triton": span.name == "InferRequest",
        "dynamo": span.name == "handle_payload",
    }
    if made.get(engine) or "gen_ai.request.id" in said:
        return "engine"
    passing = _passes_on(span)
    if any(key.startswith(("gen_ai.", "llm.")) for key in said) and not engine:
        operation = text_of(said.get("gen_ai.operation.name"), 64)
        return ("gateway" if passing or span.kind == "server" else "caller") if operation in CHATS else ""
    path = _path(span)
    if path is None or not span.trace_id or origins.LLM_PATH.fullmatch(path) is None:
        return ""
    if passing:
        return "gateway"
    return span.kind if span.kind in ("server", "client") else ""


def _passes_on(span: Span) -> bool:
    words = f"{text_of(span.resource.get('service.name'), 64)} {span.scope}".lower()
    marked = span.attributes.get("component") == "proxy" or "guid:x-request-id" in span.attributes
    return marked or any(word in words for word in origins.GATEWAYS)


def _path(span: Span) -> str | None:
    """The path of the HTTP request that the span is about, None where it is about none. What follows a ``?`` is dropped."""
    for name in origins.PATHS:
        if text := text_of(span.attributes.get(name), 500):
            try:
                return urlsplit(text).path
            except ValueError:
                return ""
    return None


def _request_id(span: Span) -> str:
    return next((text for name in origins.IDS if (text := text_of(span.attributes.get(name)))), "")


def _producer(span: Span) -> str:
    said = (span.resource.get("vllm.instrumenting_module_name"), span.resource.get("service.name"), span.scope)
    return next((text for value in said if (text := text_of(value, 64))), "")


def _note_process(found: Found, place: Place, resource: Row) -> None:
    pid = count(scaled(resource.get("vllm.process_id", resource.get("process.pid")), 1))
    if pid is not None and 0 < pid < 1 << 31:
        role = ROLES.get(text_of(resource.get("vllm.process_kind"), 32), "unknown")
        process = Process(place.host, pid, role)
        if process not in found.processes[-8:]:
            found.processes.append(process)
