"""Pages of /metrics in the text formats of Prometheus and OpenMetrics, and what promtool prints: counts of a service.

A page says when it was fetched only where its samples carry times; else the file's name or its date tells (see
:func:`keeping.page_time`), and the file's clock is called ``name`` or ``date``. promtool: ``tsdb dump``
(``{__name__="up"} 1 1700000000000``), ``tsdb dump-openmetrics``, ``query instant`` and ``query range``
(``up{job="a"} => 1 @[1700000000.1]``).
"""

import re
from dataclasses import replace
from pathlib import Path

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import unix_ns
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import file_lines
from teller_core.ingest.metrics.keeping import keep, labels_of, number, page_time
from teller_core.ingest.metrics.names import KNOWN_PREFIXES

NAME = "prometheus"
STARTED = "process_start"
_HEAD = r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:.]*)?(?:\{(?P<labels>(?:[^\"}]|\"(?:[^\"\\]|\\.)*+\")*+)\})?"
_TIME = r"-?\d{1,20}(?:\.\d{1,20})?(?:[eE]\+?\d{1,2})?"
_SERIES = re.compile(_HEAD + rf"\s+(?P<value>[^\s#]+)(?:\s+(?P<time>{_TIME}))?(?:\s+#\s*\{{.*)?")
"""What follows a ``#`` is OpenMetrics' example of an event, which is no reading."""
_ASKED = re.compile(_HEAD + rf"\s*=>\s*(?:(?P<value>\S+)\s+@\[(?P<time>{_TIME})\])?")
_ANSWER = re.compile(rf"(?P<value>\S+)\s+@\[(?P<time>{_TIME})\]")
_LOOK = 5


def sniff(head: bytes) -> bool:
    """Whether it begins with a help or type comment, or with series of a name that is known, or as promtool prints them."""
    text = head.lstrip()
    if text.startswith((b"# HELP ", b"# TYPE ", b"# UNIT ", b'{__name__="')):
        return True
    lines = [line.decode("utf-8", "replace").strip() for line in text[: 1 << 14].split(b"\n")[:_LOOK]]
    return bool(lines[0]) and all(_is_series(line) for line in lines[:-1] or lines if line)


def _is_series(line: str) -> bool:
    asked = _ASKED.fullmatch(line) or _ANSWER.fullmatch(line)
    series = _SERIES.fullmatch(line)
    known = series is not None and (series["name"] or "").startswith(KNOWN_PREFIXES)
    return asked is not None or (known and series is not None and number(series["value"]) is not None)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Metrics. Problems: ``bad_line``. Errors: those of :func:`keeping.keep`."""
    found = Found(clock="unix")
    asked: tuple[str, dict[str, str]] | None = None
    for line, skipped in file_lines(path):
        text = line.decode("utf-8", "replace").strip()
        found.events += 1
        if not text or text.startswith("#"):
            found.other["comment"] += 1
        elif skipped:
            found.problems["bad_line"] += 1
        elif (question := _ASKED.fullmatch(text)) is not None:
            asked = _series(question)
            _line(found, asked, question, path.name)
        elif asked is not None and (answer := _ANSWER.fullmatch(text)) is not None:
            _line(found, asked, answer, path.name)
        else:
            series = _SERIES.fullmatch(text)
            _line(found, None if series is None else _series(series), series, path.name)
    return _timed(found, path, place.written)


def _series(match: re.Match[str]) -> tuple[str, dict[str, str]] | None:
    labels = labels_of(match["labels"] or "")
    if labels is None:
        return None
    name = match["name"] or labels.pop("__name__", "")
    return (name, labels) if name else None


def _line(found: Found, series: tuple[str, dict[str, str]] | None, match: re.Match[str] | None, file: str) -> None:
    if match is not None and series is not None and match["value"] is None:
        found.other["series"] += 1  # the readings follow, a line each
        return
    value = number(match["value"] or "") if match is not None else None
    if series is None or match is None or value is None:
        found.problems["bad_line"] += 1
        return
    time = unix_ns(match["time"]) if match["time"] else UNKNOWN
    keep(found, series[0], series[1], time=time, value=value, file=file)


def _timed(found: Found, path: Path, written: int) -> Found:
    """``found`` with a time for readings that have none, and with the process that the page is of: by when that began."""
    begun = {metric.value for metric in found.metrics if metric.means == STARTED}
    if len(begun) == 1 and not any("instance=" in metric.source for metric in found.metrics):
        mark = f"started={begun.pop():.2f}"
        found.metrics = [one._replace(source=f"{one.source} {mark}".strip()) for one in found.metrics]
    if any(metric.time == UNKNOWN for metric in found.metrics):
        fetched, clock = page_time(path, written)
        found.metrics = [one._replace(time=fetched) if one.time == UNKNOWN else one for one in found.metrics]
        found = replace(found, clock=clock)
    return found
