"""Summaries of AIPerf and GenAI-Perf, ``profile_export_aiperf.json``: every metric of a run with its unit and statistics."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

from teller_core.data.records import Metric
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import LARGEST
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.json_stream import json_stream
from teller_core.ingest.jsonl import as_object, text_of

NAME = "aiperf_summary"
STATISTICS = ("avg", "min", "max", "std", "p1", "p5", "p10", "p25", "p50", "p75", "p90", "p95", "p99")
Row = Mapping[str, Any]


def sniff(head: bytes) -> bool:
    """Whether it is an object of metrics, each an object with its unit and average."""
    start = head.lstrip()
    return start.startswith(b"{") and all(
        key in start for key in (b'"request_latency"', b'"request_throughput"', b'"unit"', b'"avg"')
    )


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """The numbers of every metric as metrics named ``aiperf:NAME:STATISTIC``, in the units of the file. Nothing of the
    configuration is kept. Errors: FormatError where the JSON is broken.
    """
    found = Found()
    with json_stream(path) as stream:
        for _ in stream.documents():
            for name in stream.members():
                found.events += 1
                if name in ("input_config", "telemetry_data", "error_summary"):
                    found.other["setting"] += 1
                    continue
                numbers = list(_statistics(text_of(name, 100), as_object(stream.value())))
                found.metrics += numbers
                found.kept += bool(numbers)
                found.other["setting"] += not numbers
    return found


def _statistics(name: str, metric: Row) -> Iterable[Metric]:
    for key in STATISTICS:
        value = metric.get(key)
        if isinstance(value, int | Decimal) and not isinstance(value, bool) and -LARGEST < value < LARGEST:
            yield Metric(UNKNOWN, f"aiperf:{name}:{key}", {}, float(value))
