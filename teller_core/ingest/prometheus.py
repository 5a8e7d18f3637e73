"""A page of /metrics in the Prometheus text format: what a service counted since it started."""

import re
from pathlib import Path

from teller_core.data.records import Metric
from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_MS, scaled
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import file_lines, text_of

NAME = "prometheus"
_SERIES = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>[^\s]+)(?:\s+(?P<time>-?\d+))?\s*"
)
_LABEL = re.compile(r'\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*+)"\s*,?')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}


def sniff(head: bytes) -> bool:
    """Whether it begins with a help or type comment."""
    return head.startswith((b"# HELP ", b"# TYPE "))


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """Metrics; their time is UNKNOWN where the page gives none, as pages of engines do. Problems: ``bad_line``."""
    found = Found(clock="unix")
    for line, skipped in file_lines(path):
        text = line.decode("utf-8", "replace").strip()
        found.events += 1
        if not text or text.startswith("#"):
            found.other["comment"] += 1
            continue
        metric = None if skipped else _metric(text)
        if metric is None:
            found.problems["bad_line"] += 1
            continue
        found.kept += 1
        found.metrics.append(metric)
        if metric.name.startswith(("vllm:", "sglang:")):
            found.engine = metric.name.partition(":")[0]
    return found


def _metric(text: str) -> Metric | None:
    match = _SERIES.fullmatch(text)
    if match is None:
        return None
    try:
        value = float(match["value"])
    except ValueError:
        return None
    time = scaled(match["time"], NS_PER_MS) if match["time"] else None
    labels = {m["name"]: _unescaped(m["value"]) for m in _LABEL.finditer(match["labels"] or "")}
    return Metric(UNKNOWN if time is None else time, match["name"][:200], labels, value)


def _unescaped(value: str) -> str:
    return text_of(re.sub(r'\\[\\"n]', lambda m: _ESCAPES[m[0]], value))
