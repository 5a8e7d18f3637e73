"""Records of AIPerf, ``profile_export.jsonl``: what its client measured, one request a line.

A record's ``request_start_ns`` is Unix time; its metrics are durations from there with a unit each:
``time_to_first_token``, ``inter_chunk_latency`` (the gaps between pieces of the answer), ``request_latency`` to the last
piece. ``x_request_id`` went to the server as a header, from which vLLM and others make the request's id.
"""

from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path
from typing import Any

from teller_core.data.records import ClientRecord
from teller_core.ingest.decimals import LARGEST, NS_PER_MS, NS_PER_S, NS_PER_US, few, scaled, whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_list, as_object, first_object, objects, text_of

NAME = "aiperf"
UNITS = {"ns": 1, "us": NS_PER_US, "ms": NS_PER_MS, "s": NS_PER_S, "sec": NS_PER_S}
Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether the first line is a request's record."""
    line = head.lstrip().split(b"\n", 1)[0]
    if not line.startswith(b"{") or b'"request_start_ns"' not in line:
        return False
    row = first_object(head)  # None for a line longer than the head: many gaps
    return b'"metadata"' in line if row is None else "request_start_ns" in as_object(row.get("metadata"))


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Client records. Problems: ``bad_json``, ``bad_record`` (without a start, or ending before it)."""
    found = Found()
    for row in objects(path):
        found.events += 1
        record = None if row is None else _record(row)
        if record is None:
            found.problems["bad_json" if row is None else "bad_record"] += 1
        else:
            found.kept += 1
            found.clients.append(record)
    return found


def _record(row: Row) -> ClientRecord | None:
    about, metrics = as_object(row.get("metadata")), as_object(row.get("metrics"))
    start, end = whole(about.get("request_start_ns")), whole(about.get("request_end_ns"))
    took = _duration(metrics, "request_latency")
    end = start + took if start is not None and took is not None else end
    if start is None or end is None or not 0 < start <= end < LARGEST:
        return None
    return ClientRecord(
        text_of(about.get("x_request_id")),
        start,
        end,
        token_times=_times(metrics, start),
        prompt_tokens=_tokens(metrics, "input_sequence_length"),
        output_tokens=_tokens(metrics, "output_sequence_length"),
        durations=_acknowledged(about, start),
        error=row.get("error") is not None or about.get("was_cancelled") is True,
    )


def _acknowledged(about: Row, start: int) -> dict[str, int]:
    """From sending the request to the response's header."""
    time = whole(about.get("request_ack_ns"))
    return {"aiperf.request_ack": time - start} if time is not None and time >= start else {}


def _times(metrics: Row, start: int) -> list[int]:
    """When the pieces came; none where the gaps between them were not recorded."""
    first = _duration(metrics, "time_to_first_token")
    if first is None:
        return []
    metric = as_object(metrics.get("inter_chunk_latency"))
    gaps = [_scaled(metric, gap) for gap in as_list(metric.get("value"))]
    whole_gaps = [gap for gap in gaps if gap is not None and gap >= 0]
    if len(whole_gaps) < len(gaps) or start + first + sum(whole_gaps) >= LARGEST:
        return [start + first]
    return list(accumulate(whole_gaps, initial=start + first))


def _duration(metrics: Row, name: str) -> int | None:
    metric = as_object(metrics.get(name))
    ns = _scaled(metric, metric.get("value"))
    return ns if ns is not None and ns >= 0 else None


def _scaled(metric: Row, value: object) -> int | None:
    unit = metric.get("unit")
    return scaled(value, UNITS[unit]) if isinstance(unit, str) and unit in UNITS else None


def _tokens(metrics: Row, name: str) -> int | None:
    return few(scaled(as_object(metrics.get(name)).get("value"), 1))
