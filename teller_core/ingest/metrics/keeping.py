"""Parts that all forms of Prometheus' readings share: one line, one reading, and when a page was fetched."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from teller_core.data.records import Metric
from teller_core.data.table import UNKNOWN
from teller_core.errors import LimitError
from teller_core.ingest.decimals import NS_PER_S, unix_ns
from teller_core.ingest.found import Found
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.metrics.names import engine_of, meaning_of

MAX_READINGS = 4_000_000
"""Readings of one file: at some 250 bytes each, about a gigabyte."""
SOURCES = ("instance", "pod", "kubernetes_pod_name", "Hostname", "engine", "engine_type", "dp_rank", "gpu", "device")
"""Labels that tell processes or devices apart."""
QUARTER_NS = 900 * NS_PER_S
"""Zones are whole quarters of an hour apart."""
_NUMBER = re.compile(r"[+-]?(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,4})?|[+-]?Inf|NaN", re.IGNORECASE)
_TEXT = r'(?:[^"\\]|\\.)*+'
_LABEL = re.compile(rf'\s*(?:(?P<name>[a-zA-Z_][a-zA-Z0-9_.:]*)|"(?P<quoted>{_TEXT})")\s*=\s*"(?P<value>{_TEXT})"\s*')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
_EPOCH = re.compile(r"(?<!\d)1\d{9}(?:\d{3}){0,3}(?!\d)")
_STAMP = re.compile(
    r"(?<!\d)(?P<date>20\d\d-?[01]\d-?[0-3]\d)[T_ -]?"
    r"(?P<time>[0-2]\d[:_.-]?[0-5]\d[:_.-]?[0-5]\d)(?P<zone>Z|[+-][01]\d:?[0-5]\d)?"
)


def number(text: str) -> float | None:
    """A value as Prometheus writes it; None where it is none."""
    return float(text) if _NUMBER.fullmatch(text) else None


def labels_of(text: str) -> dict[str, str] | None:
    """What stands between braces; None where it is no list of labels."""
    labels: dict[str, str] = {}
    text, at = text.rstrip(), 0
    while at < len(text):
        match = _LABEL.match(text, at)
        if match is None:
            return None
        labels[match["name"] or _unescaped(match["quoted"])] = _unescaped(match["value"])
        at = match.end()
        if at < len(text):
            if text[at] != ",":
                return None
            at += 1
    return labels


def keep(found: Found, name: str, labels: Mapping[str, str], *, time: int, value: float, file: str) -> None:
    """Add one reading. Errors: LimitError for more than MAX_READINGS; ``file`` is the file's name."""
    if len(found.metrics) >= MAX_READINGS:
        raise LimitError(file, f"it holds over {MAX_READINGS:,} readings", "Ask for fewer series or a shorter time")
    found.kept += 1
    meaning = meaning_of(name, labels)
    source = " ".join(f"{key}={labels[key]}" for key in SOURCES if key in labels)
    means, kind, scale = meaning if meaning is not None else ("", "", 1.0)
    found.metrics.append(Metric(time, name[:200], labels, value, means, kind, scale, source))
    found.engine = found.engine or engine_of(name)


def page_time(path: Path, written: int) -> tuple[int, str]:
    """(unix ns, what told it) of when a page was fetched that gives no times: ``name``, ``wall`` or ``date``; else UNKNOWN.

    A stamp in the name counts: seconds since 1970 or finer, or date and time. One without a zone is given that by which it
    lies within two minutes of the file's date; where it lies near none, it is of an unknown zone.
    """
    if epoch := _EPOCH.search(path.name):
        return unix_ns(epoch[0]), "name"
    stamp = _STAMP.search(path.name)
    if stamp is not None and (told := _stamped(stamp)) is not None:
        if stamp["zone"]:
            return told, "name"
        zone = round((written - told) / QUARTER_NS) * QUARTER_NS
        near = written > 0 and abs(zone) <= 56 * QUARTER_NS and abs(written - told - zone) <= 120 * NS_PER_S
        return (told + zone, "name") if near else (told, "wall")
    return (written, "date") if written > 0 else (UNKNOWN, "unix")


def _stamped(stamp: re.Match[str]) -> int | None:
    digits = re.sub(r"\D", "", stamp["date"] + stamp["time"])
    try:
        moment = datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    zone = (stamp["zone"] or "Z").replace(":", "")
    if zone != "Z":
        away = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:5]))
        moment -= away if zone[0] == "+" else -away
    return int(moment.timestamp()) * NS_PER_S


def _unescaped(value: str) -> str:
    return text_of(re.sub(r'\\[\\"n]', lambda m: _ESCAPES[m[0]], value))
