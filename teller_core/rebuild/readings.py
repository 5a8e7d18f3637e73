"""Readings of gauges, growth of counters and counts of buckets, from the pages of /metrics in the order of their times."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from teller_core.data.readings import Buckets, Readings
from teller_core.data.records import Metric, Recording, known
from teller_core.data.table import UNKNOWN

HIGHEST = frozenset({"kv_usage", "prefix_hit_rate", "xid", "throttle_reasons", "gpu_temperature", "process_start"})
"""Gauges of which several series of one source are no parts of a sum: the highest counts."""
STARTED = "process_start"

Labels = frozenset[tuple[str, str]]


class _Series(NamedTuple):
    """One series: ``labels`` without the bound of a bucket, which is ``bound``."""

    means: str
    kind: str
    source: str
    labels: Labels
    bound: float = math.inf


class _Growth(NamedTuple):
    """By how much a series grew between two times."""

    start: int
    stop: int
    value: float


def build_readings(recording: Recording, problems: Counter[str]) -> tuple[Readings, Buckets]:
    """The series whose meaning is known, those of one source and meaning added up.

    Problems: ``counters_reset``: a counter fell, as when its process began again; what it shows then is its growth.
    ``histograms_out_of_order``: buckets of one histogram that cannot have been counted together; that interval is left out.
    """
    series = _by_series(recording.metrics)
    starts = {
        frozenset(one.source.split()): max(times.values()) for one, times in series.items() if one.means == STARTED
    }
    rows: dict[tuple[str, str, int, int], float] = {}
    histograms: defaultdict[tuple[str, str, Labels], dict[float, list[_Growth]]] = defaultdict(dict)
    for one, times in series.items():
        if one.means == STARTED:
            continue
        if one.kind == "gauge":
            _add_gauge(rows, one, times)
            continue
        growth = list(_growth(times, _begun(one.source, starts), problems))
        if one.kind == "bucket":
            histograms[one.means, one.source, one.labels][one.bound] = growth
        else:
            for start, stop, value in growth:
                key = (one.means, one.source, start, stop)
                rows[key] = rows.get(key, 0.0) + value
    return _readings(rows), _buckets(histograms, problems)


def _by_series(metrics: list[Metric]) -> dict[_Series, dict[int, float]]:
    """The readings of each series by time. Those without a time count only where none has one, the last of them."""
    series: defaultdict[_Series, dict[int, float]] = defaultdict(dict)
    for metric in metrics:
        if not metric.means or not math.isfinite(metric.value):
            continue
        bound = _bound(metric) if metric.kind == "bucket" else math.inf
        if bound is None:
            continue
        labels = frozenset(item for item in metric.labels.items() if item[0] != "le")
        value = metric.value if metric.kind == "bucket" else metric.value * metric.scale
        series[_Series(metric.means, metric.kind, metric.source, labels, bound)][metric.time] = value
    for times in series.values():
        if len(times) > 1:
            times.pop(UNKNOWN, None)
    return series


def _bound(metric: Metric) -> float | None:
    """The upper bound of a bucket, in the unit of its meaning."""
    try:
        return float(metric.labels.get("le", "")) * metric.scale
    except ValueError:
        return None


def _add_gauge(rows: dict[tuple[str, str, int, int], float], one: _Series, times: Mapping[int, float]) -> None:
    for time, value in times.items():
        key = (one.means, one.source, time, time)
        before = rows.get(key)
        both = value if before is None else max(before, value) if one.means in HIGHEST else before + value
        rows[key] = both


def _begun(source: str, starts: Mapping[frozenset[str], float]) -> int:
    """Unix ns: when the process of ``source`` began, UNKNOWN where nobody says."""
    words = set(source.split())
    told = [seconds for mark, seconds in starts.items() if mark <= words and seconds < 1e10]
    return round(max(told) * 1e9) if told else UNKNOWN


def _growth(times: Mapping[int, float], begun: int, problems: Counter[str]) -> Iterator[_Growth]:
    """The growth of a counter since its process began and between its readings."""
    ordered = sorted(times.items())
    first, value = ordered[0]
    yield _Growth(begun if known(begun) and begun <= first else UNKNOWN, first, value)
    for (start, low), (stop, high) in pairwise(ordered):
        problems["counters_reset"] += high < low
        yield _Growth(start, stop, high - low if high >= low else high)


def _readings(rows: Mapping[tuple[str, str, int, int], float]) -> Readings:
    ordered = sorted(rows.items(), key=lambda item: (*item[0][:2], item[0][3], item[0][2]))
    return Readings(
        name=[name for (name, _, _, _), _ in ordered],
        source=[source for (_, source, _, _), _ in ordered],
        start=np.array([start for (_, _, start, _), _ in ordered], dtype=np.int64),
        stop=np.array([stop for (_, _, _, stop), _ in ordered], dtype=np.int64),
        value=np.array([value for _, value in ordered], dtype=np.float64),
    )


def _buckets(
    histograms: Mapping[tuple[str, str, Labels], Mapping[float, list[_Growth]]], problems: Counter[str]
) -> Buckets:
    counts: defaultdict[tuple[str, int, int, float, float], int] = defaultdict(int)
    for (means, _, _), by_bound in histograms.items():
        bounds = sorted(by_bound)
        times = sorted({(one.start, one.stop) for growth in by_bound.values() for one in growth})
        grown = {bound: {(one.start, one.stop): one.value for one in growth} for bound, growth in by_bound.items()}
        for start, stop in times:
            upto = [grown[bound].get((start, stop), math.nan) for bound in bounds]
            inside = np.diff([0.0, *upto])
            if np.isnan(inside).any() or (inside < 0).any():
                problems["histograms_out_of_order"] += 1
                continue
            for low, high, many in zip([0.0, *bounds], bounds, inside.round().astype(int).tolist(), strict=False):
                if many > 0 and low < high:
                    counts[means, start, stop, low, high] += many
    ordered = sorted(counts.items())
    return Buckets(
        name=[name for (name, *_), _ in ordered],
        start=np.array([start for (_, start, *_), _ in ordered], dtype=np.int64),
        stop=np.array([stop for (_, _, stop, _, _), _ in ordered], dtype=np.int64),
        low=np.array([low for (_, _, _, low, _), _ in ordered], dtype=np.float64),
        high=np.array([high for (*_, high), _ in ordered], dtype=np.float64),
        count=np.array([many for _, many in ordered], dtype=np.int64),
    )
