"""A span of a trace in one form, whatever it was exported as, and the ids by which spans find each other."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

from teller_core.ingest.decimals import scaled
from teller_core.ingest.jsonl import as_list, as_object, text_of

Row = Mapping[str, Any]

TRACE_DIGITS, SPAN_DIGITS = 32, 16
"""Hex digits of a trace's and of a span's id (W3C Trace Context, sections 3.2.2.3 and 3.2.2.4)."""
MAX_ATTRIBUTES, MAX_EVENTS = 512, 4096
"""More of a span are left: SDKs keep 128 of each unless told otherwise."""
LONGEST_KEY = 128
"""Characters of an attribute's name that are kept."""
_HEX = re.compile(r"[0-9a-fA-F]+")
_KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
"""SpanKind of opentelemetry/proto/trace/v1/trace.proto."""


class Span(NamedTuple):
    """One span. Times are int ns since 1970, None where they are no numbers; ids are hex, empty where there is none."""

    name: str
    trace_id: str
    span_id: str
    parent: str
    kind: str
    """server, client, internal, producer, consumer or empty."""
    start: int | None
    end: int | None
    attributes: Row
    resource: Row
    scope: str
    """The instrumentation library that made it."""
    events: Sequence[tuple[str, int]] = ()
    failed: bool = False


def hex_id(value: object, digits: int) -> str:
    """An id of ``digits`` hex digits as text in lower case; empty for none and for one of zeros.

    OTLP in JSON writes ids in hex, protobuf's own mapping to JSON, as Tempo answers with, in base64; Jaeger and Zipkin leave
    out zeros in front. Other text is kept as it is.
    """
    text = value.hex() if isinstance(value, bytes) else text_of(value, 64)
    if _HEX.fullmatch(text):
        text = text.lower().rjust(digits, "0")
    elif len(text) == 4 * -(-digits // 6):
        text = _of_base64(text, digits) or text
    return text if text.strip("0") else ""


def _of_base64(text: str, digits: int) -> str:
    try:
        raw = base64.b64decode(text, altchars=b"-_" if set(text) & set("-_") else None, validate=True)
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) * 2 == digits else ""


def kind_of(value: object) -> str:
    """The kind of a span from its number, from ``SPAN_KIND_SERVER`` or from ``server``; empty where it is none."""
    if type(value) is int:
        return _KINDS.get(value, "")
    word = text_of(value, 32).lower().removeprefix("span_kind_")
    return word if word in _KINDS.values() else ""


def key_values(value: object) -> dict[str, object]:
    """OTLP's list of keys and typed values as one mapping; a list of one text is that text, other lists are left."""
    said: dict[str, object] = {}
    for entry in as_list(value)[:MAX_ATTRIBUTES]:
        if isinstance(entry, dict):
            pair = cast("Row", entry)
            key, typed = pair.get("key"), pair.get("value")
            if isinstance(key, str) and isinstance(typed, dict) and typed:
                said[attribute(key) if len(key) <= LONGEST_KEY else text_of(key, LONGEST_KEY)] = _plain(
                    next(iter(cast("Row", typed).values()))
                )
    return said


@lru_cache(maxsize=4096)
def attribute(key: str) -> str:
    """The name of an attribute as it is kept: the same few stand in every span."""
    return text_of(key, LONGEST_KEY)


def _plain(value: object) -> object:
    if not isinstance(value, dict):
        return value
    inner = rows(as_object(cast("object", value)).get("values"))
    return next(iter(inner[0].values()), None) if len(inner) == 1 else None


def failed(code: object, attributes: Row) -> bool:
    """Whether a span ended in an error: its status says so, the tags in which Jaeger and Zipkin keep that, or HTTP does."""
    word = code if type(code) is int else text_of(code, 32).upper().removeprefix("STATUS_CODE_")
    tag = attributes.get("error")
    status = scaled(attributes.get("http.response.status_code", attributes.get("http.status_code")), 1)
    tagged = (tag is not None and tag is not False and tag != "false") or attributes.get("otel.status_code") == "ERROR"
    return word in (2, "ERROR") or tagged or (status is not None and status >= 400)


def member(row: Row, camel: str, snake: str) -> object:
    """A member of ``row`` under either spelling: JSON of protobuf may use both."""
    return row[camel] if camel in row else row.get(snake)


def moment(value: object, factor: int = 1) -> int | None:
    """int ns of a time in units of ``factor`` ns; None where it is no number or before 1970."""
    time = scaled(value, factor)
    return time if time is not None and time >= 0 else None


def rows(value: object) -> list[Row]:
    """The objects of a JSON list; anything else in it is an empty one."""
    return [as_object(item) for item in as_list(value)]
