"""Reports of GuideLLM (JSON): the requests of every benchmark with Unix times in seconds, as the versions since 0.2 write them.

Version 0.2 puts ``start_time``, ``first_token_time``, ``last_token_time`` and ``end_time`` beside the request; later ones
put ``request_start``, ``first_iteration`` or ``first_token_iteration``, the last one likewise, and ``request_end`` into its
``timings``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teller_core.data.records import ClientRecord
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_S, few, scaled
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import Stream, json_stream
from teller_core.ingest.jsonl import as_object, text_of

NAME = "guidellm"
OUTCOMES = ("successful", "incomplete", "errored")
START = ("request_start", "start_time")
FIRST = ("first_token_iteration", "first_iteration", "first_token_time")
LAST = ("last_token_iteration", "last_iteration", "last_token_time")
END = ("request_end", "end_time")
Row = Mapping[str, Any]
_TEXTS = frozenset({"prompt", "output", "request_args", "response_args"})


def sniff(head: bytes) -> bool:
    """Whether it is an object with GuideLLM's version or its kind of benchmark."""
    start = head.lstrip()
    ours = (
        b'"guidellm_version"' in start
        or b'"generative_benchmark"' in start
        or b'"generative_benchmarks_report"' in start
    )
    return start.startswith(b"{") and ours


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Client records of all benchmarks of the report. Problems: ``bad_record``: without a start, or running backwards.

    Prompts and outputs are passed over. Errors: FormatError, LimitError.
    """
    found = Found()
    with json_stream(path) as stream:
        for _ in stream.documents():
            for key in stream.members():
                if key == "benchmarks":
                    for _ in stream.elements():
                        _benchmark(stream, found, progress)
    return found


def _benchmark(stream: Stream, found: Found, progress: Progress | None) -> None:
    for key in stream.members():
        if key != "requests":
            continue
        for outcome in stream.members():
            if outcome not in OUTCOMES:
                continue
            for _ in stream.elements():
                _add(found, _said(stream), failed=outcome != "successful")
                if progress is not None and found.events % 1000 == 0:
                    progress(stream.on_disk)


def _said(stream: Stream) -> Row:
    """The request at the place without its texts."""
    return {key: stream.value() for key in stream.members() if key not in _TEXTS}


def _add(found: Found, row: Row, *, failed: bool) -> None:
    found.events += 1
    about = as_object(row.get("info", row.get("scheduler_info")))
    timings = as_object(about.get("timings"))
    start, first, last, end = (_time(timings, row, names) for names in (START, FIRST, LAST, END))
    known = [time for time in (start, first, last, end) if time is not None]
    if start is None or known != sorted(known):
        found.problems["bad_record"] += 1
        return
    found.kept += 1
    times = (first, last) if first is not None and last is not None and not failed else ()
    found.clients.append(
        ClientRecord(
            text_of(row.get("request_id")),
            start,
            UNKNOWN if end is None else end,
            token_times=times,
            prompt_tokens=_tokens(row, "prompt_tokens", "input_metrics"),
            output_tokens=_tokens(row, "output_tokens", "output_metrics"),
            error=failed,
            ends_only=True,
        )
    )


def _time(timings: Row, row: Row, names: tuple[str, ...]) -> int | None:
    for source in (timings, row):
        for name in names:
            ns = scaled(source.get(name), NS_PER_S)
            if ns is not None and ns > 0:
                return ns
    return None


def _tokens(row: Row, name: str, metrics: str) -> int | None:
    said = few(scaled(row.get(name), 1))
    counted = as_object(row.get(metrics))
    return said if said is not None else few(scaled(counted.get("total_tokens", counted.get("text_tokens")), 1))
