"""Answers of Prometheus' HTTP API, to instant and to range queries: ``{"status": "success", "data": {"resultType": ...}}``."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from teller_core.ingest.decimals import unix_ns
from teller_core.ingest.documents import documents
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import as_list, as_object, text_of
from teller_core.ingest.metrics.keeping import keep, number

NAME = "prometheus_json"


def sniff(head: bytes) -> bool:
    """Whether it is an answer with series in it. Loki's API answers in the same form with streams of log lines."""
    begin = head.lstrip()[:4096]
    return begin.startswith(b"{") and b'"resultType"' in begin and b'"result"' in begin and b'"streams"' not in begin


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Metrics, each with its time. Other: ``series_without_name`` (readings of an expression), ``native_histogram``,
    ``empty_answer``. Problems: ``bad_json``, ``failed_query``, ``bad_reading``.

    Errors: those of :func:`documents.documents` and :func:`keeping.keep`.
    """
    found = Found()
    for document in documents(path):
        answer = as_object(document)
        data = as_object(answer.get("data"))
        if not answer or answer.get("status", "success") != "success":
            found.events += 1
            found.problems["failed_query" if answer else "bad_json"] += 1
            continue
        before = found.events
        for series in as_list(data.get("result")):
            _series(found, as_object(series), path.name)
        if found.events == before:
            found.events += 1
            found.other["empty_answer"] += 1
    return found


def _series(found: Found, series: Any, file: str) -> None:
    said = {text_of(key): text_of(value) for key, value in as_object(series.get("metric")).items()}
    name = said.pop("__name__", "")
    for time, value in _readings(series):
        found.events += 1
        moment = unix_ns(time)
        reading = number(text_of(value, 800))
        if isinstance(value, dict):
            found.other["native_histogram"] += 1
        elif not name:
            found.other["series_without_name"] += 1
        elif reading is None or moment < 0:
            found.problems["bad_reading"] += 1
        else:
            keep(found, name, said, time=moment, value=reading, file=file)


def _readings(series: Any) -> Iterator[tuple[object, object]]:
    """(time, value) of a series: one, or many."""
    pairs = [*as_list(series.get("values")), *as_list(series.get("histograms"))]
    pairs += [series[key] for key in ("value", "histogram") if key in series]
    for pair in pairs:
        both = as_list(pair)
        yield (both[0], both[1]) if len(both) == 2 else (None, None)
