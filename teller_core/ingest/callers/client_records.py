"""``client.jsonl``: what a caller measured, one request a line, times in Unix nanoseconds.

``rid``, ``start_ns``, ``end_ns``, ``tok_ns`` (when each piece of the answer came), ``err``, and ``last``: the response's id,
token counts and, from vLLM with per-request metrics, durations. Those have origins of their own (vLLM 0.32):

=============================== ============================= ==========================
name here                       from                          to
=============================== ============================= ==========================
``vllm.time_to_first_token``    the front end got the request its first token left the engine
``vllm.queue_time``             the engine queued it          it was first scheduled
``vllm.generation_time``        its first token               its last token
``vllm.mean_itl``               mean gap between two tokens
=============================== ============================= ==========================
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from teller_core.data.records import ClientRecord
from teller_core.ingest.decimals import NS_PER_MS, few, scaled, whole
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_object, first_object, objects, text_of

NAME = "client_records"


def sniff(head: bytes) -> bool:
    """Whether the first line is a request with a start and an end."""
    line = head.split(b"\n", 1)[0]
    row = first_object(head)
    if row is None:  # a long answer does not fit the head
        return line.lstrip().startswith(b"{") and b'"rid"' in line and b'"start_ns"' in line and b'"end_ns"' in line
    return "rid" in row and "start_ns" in row and "end_ns" in row


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Client records. Problems: ``bad_json``, ``bad_record`` (without id, or ending before its start)."""
    found = Found()
    for row in objects(path):
        found.events += 1
        record = None if row is None else _record(row)
        if row is None:
            found.problems["bad_json"] += 1
        elif record is None:
            found.problems["bad_record"] += 1
        else:
            found.kept += 1
            found.clients.append(record)
    return found


def _record(row: Mapping[str, Any]) -> ClientRecord | None:
    request, start, end = text_of(row.get("rid")), whole(row.get("start_ns")), whole(row.get("end_ns"))
    if not request or start is None or end is None or end < start:
        return None
    last = as_object(row.get("last"))
    usage, metrics = as_object(last.get("usage")), as_object(last.get("metrics"))
    return ClientRecord(
        request,
        start,
        end,
        token_times=_times(row.get("tok_ns")),
        prompt_tokens=few(usage.get("prompt_tokens")),
        output_tokens=few(usage.get("completion_tokens")),
        durations=_durations(metrics),
        error=bool(row.get("err")),
        response_id=text_of(last.get("id")) or None,
    )


def _durations(metrics: Mapping[str, Any]) -> dict[str, int]:
    timed: dict[str, int] = {}
    for name, value in metrics.items():
        if name.endswith("_ms") and (ns := scaled(value, NS_PER_MS)) is not None and ns >= 0:
            timed["vllm." + text_of(name.removesuffix("_ms"), 64)] = ns
    return timed


def _times(value: object) -> list[int]:
    if not isinstance(value, list):
        return []
    return sorted(time for item in cast("list[object]", value) if (time := whole(item)) is not None)
