"""What a service says of all its requests together: quantiles of its histograms as bounds, and its gauges and counters."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np

from teller_core.data.readings import Buckets, Readings
from teller_core.data.report import Bound, ServiceLevel, ServiceMeasure, SlowReport
from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.tell.layout import milliseconds

QUANTILES = (0.5, 0.9, 0.99)
WORDS = {
    "e2e": "end to end",
    "ttft": "to the first token",
    "itl": "between two tokens",
    "tpot": "per output token",
    "queue": "in the queue",
    "prefill": "computing the prompt",
    "decode": "decoding",
}
"""Histograms, in the order in which they are shown."""
GAUGES = {
    "running": "requests",
    "waiting": "requests",
    "kv_usage": "share",
    "prefix_hit_rate": "share",
    "retracted": "requests",
    "gpu_temperature": "C",
    "prompt_rate": "tokens/s",
    "output_rate": "tokens/s",
}
COUNTERS = {
    "finished": "requests",
    "preemptions": "times",
    "prompt_tokens": "tokens",
    "output_tokens": "tokens",
    "prefix_queries": "tokens",
    "prefix_hits": "tokens",
    "power_violation": "",
    "thermal_violation": "",
    "ecc_errors": "errors",
    "cpu_pressure": "s",
    "io_pressure": "s",
}
RISES = 6
"""Fewer readings than this show no trend."""
FULL = 0.9
"""A KV cache of which so much is in use evicts, or is about to."""


def with_service(report: SlowReport, buckets: Buckets, readings: Readings) -> SlowReport:
    """``report`` with what the service counted of all its requests; in words only where no request was recorded by itself."""
    measured, level = measures(buckets), levels(readings)
    said = in_words(measured, level) if not report.total else ""
    return report.model_copy(update={"service": measured, "levels": level, "note": said or report.note})


def measures(buckets: Buckets) -> list[ServiceMeasure]:
    """The quantiles of each histogram over the time between the pages; over the life of the service where there is one page."""
    return [one for name in WORDS if (one := _measure(buckets, name)) is not None]


def levels(readings: Readings) -> list[ServiceLevel]:
    """Gauges (of requests: all sources together) and counters, each over the time of the pages."""
    names = np.array(readings.name, dtype=np.str_)
    found: list[ServiceLevel] = []
    for name, unit in GAUGES.items():
        rows = np.flatnonzero(names == name)
        if len(rows):
            found.append(_gauge(name, unit, readings.start[rows], readings.value[rows]))
    for name, unit in COUNTERS.items():
        rows = np.flatnonzero(names == name)
        if len(rows):
            rows = rows[_recorded(readings.start[rows], readings.stop[rows])]
            found.append(_counter(name, unit, readings.start[rows], readings.stop[rows], readings.value[rows]))
    return found


def in_words(measured: Sequence[ServiceMeasure], level: Sequence[ServiceLevel]) -> str:
    """Two or three sentences on what the pages say; empty where there are none."""
    said = [*_latency(measured), *_state({one.name: one for one in level})]
    return " ".join(said)


def _measure(buckets: Buckets, name: str) -> ServiceMeasure | None:
    rows = np.array([row for row, other in enumerate(buckets.name) if other == name], dtype=np.int64)
    if not len(rows):
        return None
    rows = rows[_recorded(buckets.start[rows], buckets.stop[rows])]
    order = rows[np.argsort(buckets.high[rows], kind="stable")]
    low, high = buckets.low[order], buckets.high[order]
    upto = np.cumsum(buckets.count[order], dtype=np.int64)
    total = int(upto[-1])
    at = [int(np.searchsorted(upto, share * total, "left")) for share in QUANTILES]
    half, most, nearly_all = (_bound(float(low[i]), float(high[i])) for i in at)
    starts, stops = buckets.start[rows], buckets.stop[rows]
    return ServiceMeasure(
        name=name,
        count=total,
        start=None if (starts == UNKNOWN).any() else int(starts.min()),
        stop=None if (stops == UNKNOWN).any() else int(stops.max()),
        p50=half,
        p90=most,
        p99=nearly_all,
    )


def _recorded(start: Int64, stop: Int64) -> Mask:
    """The intervals between two pages where there are any: the first page counts from the service's start."""
    between = np.isin(start, stop) & (start != UNKNOWN)
    return between if between.any() else np.ones(len(start), np.bool_)


def _bound(low: float, high: float) -> Bound:
    return Bound(above_ms=round(low * 1e3, 4), at_most_ms=round(high * 1e3, 4) if np.isfinite(high) else None)


def _gauge(name: str, unit: str, time: Int64, value: Float64) -> ServiceLevel:
    times, place = np.unique(time, return_inverse=True)
    whole = np.full(len(times), -np.inf)
    if unit in ("requests", "tokens/s"):
        whole = np.bincount(place, value, len(times))
    else:
        np.maximum.at(whole, place, value)
    third = len(whole) // 3
    early, late = float(np.mean(whole[:third] if third else whole)), float(np.mean(whole[-third:]))
    return ServiceLevel(
        name=name,
        unit=unit,
        lowest=_round(whole.min()),
        highest=_round(whole.max()),
        last=_round(whole[-1]),
        early=_round(early) if len(whole) >= RISES else None,
        late=_round(late) if len(whole) >= RISES else None,
        readings=len(whole),
    )


def _counter(name: str, unit: str, start: Int64, stop: Int64, value: Float64) -> ServiceLevel:
    known = UNKNOWN not in (int(start.min()), int(stop.max()))
    seconds = (int(stop.max()) - int(start.min())) / 1e9 if known else 0.0
    growth = float(value.sum())
    return ServiceLevel(
        name=name,
        unit=unit,
        growth=_round(growth),
        per_second=_round(growth / seconds) if seconds > 0 else None,
        readings=len(value),
    )


def _latency(measured: Sequence[ServiceMeasure]) -> Iterator[str]:
    named = {one.name: one for one in measured}
    told = [named[name] for name in ("e2e", "ttft") if name in named]
    if told:
        times = ", ".join(f"half took {shown(one.p50)} {WORDS[one.name]} (99 %: {shown(one.p99)})" for one in told)
        yield f"Of {told[0].count} requests that the service counted {when(told[0].start, told[0].stop)}, {times}."


def _state(level: dict[str, ServiceLevel]) -> Iterator[str]:
    waiting, usage, evicted = level.get("waiting"), level.get("kv_usage"), level.get("preemptions")
    if waiting is not None and waiting.highest:
        grew = waiting.early is not None and waiting.late is not None and waiting.late > 2 * max(waiting.early, 0.5)
        trend = f", and more and more: from {waiting.early:g} to {waiting.late:g} on average" if grew else ""
        yield f"Up to {waiting.highest:g} requests waited at once{trend}."
    if usage is not None and usage.highest is not None and usage.highest >= FULL:
        yield f"The KV cache was {100 * usage.highest:.3g} % full at most."
    if evicted is not None and evicted.growth:
        yield f"Requests were evicted {evicted.growth:g} times."
    queries, hits = level.get("prefix_queries"), level.get("prefix_hits")
    if queries is not None and hits is not None and queries.growth and hits.growth is not None:
        yield f"{100 * hits.growth / queries.growth:.3g} % of the prompt tokens were found in the prefix cache."


def shown(bound: Bound) -> str:
    """A bound in words."""
    low = milliseconds(bound.above_ms)
    return f"over {low}" if bound.at_most_ms is None else f"{low} to {milliseconds(bound.at_most_ms)}"


def when(start: int | None, stop: int | None) -> str:
    """The time of some counts in words."""
    if start is None or stop is None:
        return "at a time that nothing tells"
    begin, end = (datetime.fromtimestamp(time / 1e9, UTC).isoformat(" ", "seconds")[:19] for time in (start, stop))
    return f"from {begin} to {end} UTC"


def _round(value: float) -> float:
    return float(f"{value:.6g}")
