"""Counters grow, gauges show, histograms hold counts: from pages to intervals."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.records import Metric, Recording
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.readings import build_readings
from teller_core.tell.service import levels, measures

S = 10**9
T0 = 1_795_961_300 * S
BOUNDS = (0.1, 0.5, 2.0, math.inf)


def metric(means: str, kind: str, time: int, value: float, **labels: str) -> Metric:
    return Metric(time, means, labels, value, means, kind, 1.0, labels.get("engine", ""))


def page(time: int, durations: Sequence[float], engine: str = "0") -> list[Metric]:
    """A histogram of all durations so far, as a page shows it."""
    return [
        metric(
            "e2e",
            "bucket",
            time,
            sum(one <= bound for one in durations),
            engine=engine,
            le=str(bound).replace("inf", "+Inf"),
        )
        for bound in BOUNDS
    ]


@given(values=st.lists(st.integers(0, 10**6), min_size=1, max_size=12))
def test_a_counter_that_falls_began_again(values: list[int]) -> None:
    problems = Counter[str]()
    recording = Recording(
        metrics=[metric("preemptions", "counter", T0 + i * S, value) for i, value in enumerate(values)]
    )
    readings, _ = build_readings(recording, problems)
    grown = [values[0]] + [b - a if b >= a else b for a, b in pairwise(values)]
    assert readings.value.tolist() == grown
    assert readings.start.tolist() == [UNKNOWN, *(T0 + i * S for i in range(len(values) - 1))]
    assert problems["counters_reset"] == sum(b < a for a, b in pairwise(values))


def test_a_counter_counts_from_when_its_process_began() -> None:
    metrics = [
        metric("process_start", "gauge", T0, 1_795_961_000.5),
        metric("preemptions", "counter", T0, 3, engine="0"),
    ]
    readings, _ = build_readings(Recording(metrics=metrics), Counter())
    assert (readings.name, readings.start.tolist()) == (["preemptions"], [1_795_961_000_500_000_000])


def test_parts_of_one_source_are_added_and_fractions_are_not() -> None:
    metrics = [
        metric("finished", "counter", T0, 3, engine="0", reason="stop"),
        metric("finished", "counter", T0, 4, engine="0", reason="length"),
        metric("kv_usage", "gauge", T0, 0.25, engine="0", rank="0"),
        metric("kv_usage", "gauge", T0, 0.75, engine="0", rank="1"),
    ]
    readings, _ = build_readings(Recording(metrics=metrics), Counter())
    assert dict(zip(readings.name, readings.value.tolist(), strict=True)) == {"finished": 7.0, "kv_usage": 0.75}


def test_a_page_without_a_time_counts_only_where_none_has_one() -> None:
    metrics = [metric("waiting", "gauge", UNKNOWN, 9), metric("waiting", "gauge", T0, 2)]
    readings, _ = build_readings(Recording(metrics=metrics), Counter())
    assert readings.value.tolist() == [2.0]


def test_buckets_that_were_not_counted_together_are_left_out_and_counted() -> None:
    problems = Counter[str]()
    torn = [one._replace(value=5 - one.value) for one in page(T0, [0.05, 0.3, 1.0])]
    _, buckets = build_readings(Recording(metrics=torn), problems)
    assert (len(buckets.name), problems["histograms_out_of_order"]) == (0, 1)


DURATIONS = st.lists(st.floats(0.001, 10), min_size=1, max_size=30)


@given(first=DURATIONS, second=DURATIONS, other=DURATIONS)
def test_quantiles_lie_within_their_bounds_and_count_between_the_pages(
    first: list[float], second: list[float], other: list[float]
) -> None:
    problems = Counter[str]()
    metrics = page(T0, first) + page(T0 + 60 * S, first + second)
    metrics += page(T0, [], "1") + page(T0 + 60 * S, other, "1")
    _, buckets = build_readings(Recording(metrics=metrics), problems)
    buckets.check()
    (measure,) = measures(buckets)
    between = sorted(second + other)
    assert (measure.count, measure.start, measure.stop) == (len(between), T0, T0 + 60 * S)
    for share, bound in ((0.5, measure.p50), (0.9, measure.p90), (0.99, measure.p99)):
        exact = between[math.ceil(share * len(between)) - 1]
        assert bound.above_ms < exact * 1e3 or bound.above_ms == 0
        assert bound.at_most_ms is None or exact * 1e3 <= bound.at_most_ms
        assert (bound.at_most_ms is None) == (bisect_left(BOUNDS, exact) == 3)
    assert not problems.total()


def test_a_queue_that_grows_and_a_cache_that_fills_are_told() -> None:
    waiting = [0, 0, 1, 4, 6, 9]
    metrics = [metric("waiting", "gauge", T0 + i * S, value, engine="0") for i, value in enumerate(waiting)]
    metrics += [metric("waiting", "gauge", T0 + i * S, 1, engine="1") for i in range(6)]
    metrics += [metric("kv_usage", "gauge", T0 + i * S, 0.9 + i / 100) for i in range(6)]
    readings, _ = build_readings(Recording(metrics=metrics), Counter())
    level = {one.name: one for one in levels(readings)}
    assert (level["waiting"].highest, level["waiting"].early, level["waiting"].late) == (10, 1, 8.5)
    assert level["kv_usage"].last == 0.95


def test_the_rate_of_a_counter_is_over_the_time_between_its_pages() -> None:
    metrics = [metric("output_tokens", "counter", T0 + i * 10 * S, 1000.0 * i) for i in range(4)]
    readings, _ = build_readings(Recording(metrics=metrics), Counter())
    (level,) = levels(readings)
    assert (level.growth, level.per_second) == (3000.0, 100.0)
    assert np.all(readings.stop[1:] > readings.start[1:])
