"""``..._individual_responses.json`` of LLMPerf: the durations of every request in seconds, but not when it was sent."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teller_core.data.records import ClientRecord
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_S, few, scaled
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import json_stream
from teller_core.ingest.jsonl import as_object

NAME = "llmperf"


def sniff(head: bytes) -> bool:
    """Whether it is a list whose first entry has LLMPerf's durations."""
    start = head.lstrip()
    return start.startswith(b"[") and b'"end_to_end_latency_s"' in start and b'"ttft_s"' in start


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Client records, each beginning at 0: nobody noted when they were sent. Problems: ``bad_record``.

    Errors: FormatError where the JSON is broken.
    """
    found = Found(clock="local")
    with json_stream(path) as stream:
        for at, _ in enumerate(stream.elements()):
            found.events += 1
            record = _record(as_object(stream.value()), f"run0-{at}")
            if record is None:
                found.problems["bad_record"] += 1
            else:
                found.kept += 1
                found.clients.append(record)
            if progress is not None and at % 1000 == 0:
                progress(stream.on_disk)
    return found


def _record(row: Mapping[str, Any], name: str) -> ClientRecord | None:
    failed = row.get("error_code") is not None
    took, first = (scaled(row.get(key), NS_PER_S) or 0 for key in ("end_to_end_latency_s", "ttft_s"))
    if not failed and took <= 0:
        return None
    times = (first, took) if not failed and 0 < first <= took else ()
    return ClientRecord(
        name,
        0,
        UNKNOWN if failed else took,
        token_times=times,
        prompt_tokens=few(scaled(row.get("number_input_tokens"), 1)),
        output_tokens=None if failed else few(scaled(row.get("number_output_tokens"), 1)),
        error=failed,
        clock="own",
        ends_only=True,
    )
