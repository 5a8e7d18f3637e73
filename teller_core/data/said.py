"""What every way of saying an answer shares: its words for metrics, tiers and phases, and what a report lets be said at all."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast

from teller_core.data.report import Metric, Part, WhyReport
from teller_core.data.report_findings import Finding

METRICS: dict[Metric, str] = {
    "e2e": "from end to end",
    "ttft": "to its first token",
    "tpot": "a token",
    "itl_max": "between two tokens",
    "slo": "from end to end",
}
TIERS = (
    "default logs and metrics",
    "records of each request",
    "a record of each step",
    "scheduler records and host counters",
    "a profile that overlaps its steps",
)
PHASES = {
    "before_server": "on the way to the server",
    "front_end": "in the front end",
    "queue": "in the queue",
    "remote_kv_wait": "waiting for KV from another engine",
    "own_prefill": "computing its prompt",
    "between_own_chunks": "between the chunks of its prompt",
    "decode": "decoding",
    "preempted": "evicted",
    "recompute": "computing again what an eviction threw away",
    "delivery": "in delivery",
    "capture_stall": "in stops of the recorder itself",
}
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w]|\.\d)")
QUOTED = re.compile(r"`([^`]*)`")
PLAIN_NAME = re.compile(r"[\w:.<>~+-]{1,80}")
"""A name from a trace that may stand in a sentence. Others are left in their field."""
COUNTED = ("times", "requests", "steps", "spans", "ranks", "collectives", "tokens", "lines")
"""Units that the name of what is counted says already."""
SURE, LIKELY = 0.85, 0.6
"""Confidences from which a cause is told as it is, and from which as likely: what was recorded or counted, what was sampled."""
Band = Literal["sure", "likely", "maybe"]
HEDGES: dict[Band, str] = {"sure": "", "likely": "Most likely, ", "maybe": "Perhaps "}
FREE_TEXT = frozenset({"explanation", "next_checks", "untrusted_text", "not_seen", "against", "fix", "reason"})


def number(value: float) -> str:
    """A number as JSON writes it, but whole numbers without a fraction."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def band(confidence: float) -> Band:
    """How sure one may sound."""
    return "sure" if confidence >= SURE else "likely" if confidence >= LIKELY else "maybe"


def capital(text: str) -> str:
    """``text`` as a sentence begins."""
    return text[:1].upper() + text[1:]


def cost_of(finding: Finding) -> float | None:
    """ms that the finding's cause cost in all, None where nothing tells: it is more than its first fact where it cost twice."""
    if finding.cost_ms is not None:
        return finding.cost_ms
    first = finding.evidence[0] if finding.evidence else None
    return first.value if first is not None and first.unit == "ms" else None


def mostly(phases: Sequence[Part]) -> tuple[str, bool] | None:
    """The longest phase that is known, and whether it is more than half of them all; None where none is known."""
    known = [part for part in phases if part.ns]
    if not known:
        return None
    most = max(known, key=lambda part: part.ns or 0)
    return most.part, 2 * (most.ns or 0) > sum(part.ns or 0 for part in known)


def unsupported(text: str, report: WhyReport) -> list[str]:
    """Numbers and quoted names of ``text`` that stand in no structured field of the report: empty for a sound one."""
    numbers, names = supported(report)
    used = NUMBER.findall(QUOTED.sub(" ", text))
    return [one for one in used if one not in numbers] + [name for name in QUOTED.findall(text) if name not in names]


def supported(report: WhyReport) -> tuple[set[str], set[str]]:
    """The numbers and the names that stand in structured fields of the report, as they are written in sentences."""
    numbers: set[str] = set()
    names: set[str] = set()
    for value in _values(report.model_dump()):
        if isinstance(value, str):
            names.add(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            numbers.add(number(value))
    return numbers, names


def _values(value: Any, key: str = "") -> Iterator[Any]:
    """All structured values of a report; sentences are no evidence for themselves."""
    if key in FREE_TEXT:
        return
    if isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            yield from _values(inner, name)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from _values(inner, key)
    else:
        yield value
