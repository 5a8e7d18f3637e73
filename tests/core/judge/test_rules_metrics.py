"""What /metrics and the legs of requests let one say where nothing else was recorded."""

from collections.abc import Sequence

import pytest

from teller_core.data.records import Interval, Metric, Recording, RequestSpan
from teller_core.data.report import WhyReport
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose
from teller_core.rebuild.capture import rebuild

MS, S = 10**6, 10**9
T0 = 1_795_961_300 * S
SLOW = 11
"""The request that is slow, of twelve that follow one another every ten seconds."""


def metric(means: str, kind: str, time: int, value: float, source: str = "") -> Metric:
    return Metric(time, means, {}, value, means, kind, 1.0, source)


def begin(i: int) -> int:
    return T0 + i * 100 * S


def request(i: int, took: int, queued: int | None = None) -> RequestSpan:
    """An answer of 32 tokens; with ``queued`` ns of its time in the queue."""
    intervals = [
        Interval("received", "first_token", took - 300 * MS, "front_end"),
        Interval("received", "finished", took, "front_end"),
    ]
    if queued is not None:
        intervals += [
            Interval("queued", "scheduled", queued, "engine"),
            Interval("scheduled", "engine_first", 50 * MS, "engine"),
        ]
    tokens = {"gen_ai.usage.prompt_tokens": 100 + i, "gen_ai.usage.completion_tokens": 32}
    base = RequestSpan("llm_request", f"r{i}", f"t{i}", begin(i), begin(i) + took, {}, tokens, "vllm", span_id=f"s{i}")
    return base._replace(intervals=intervals)


def told(metrics: Sequence[Metric], slow: RequestSpan, others: Sequence[RequestSpan] = (), at: int = SLOW) -> WhyReport:
    spans = [request(i, 400 * MS + i * MS) for i in range(12) if i != SLOW]
    recording = Recording(spans=[*spans, slow, *others], metrics=list(metrics), engine="vllm")
    capture = rebuild(recording, [], capture_id="c", name="n")
    return diagnose(capture, assess(capture), at)


def gauges(means: str, usual: float, then: float) -> list[Metric]:
    """A reading ten seconds before each request and in the middle of the slow one."""
    early = [metric(means, "gauge", begin(i) - 30 * S, usual) for i in range(12)]
    return [*early, metric(means, "gauge", begin(SLOW) + S, then)]


def counters(means: str, before: float, then: float) -> list[Metric]:
    """It stands still but for the time of the slow request."""
    early = [metric(means, "counter", begin(i) - 30 * S, before) for i in range(12)]
    return [*early, metric(means, "counter", begin(SLOW) + 20 * S, then)]


LONG = request(SLOW, 4000 * MS)
QUIET = [*gauges("waiting", 0, 0), *gauges("kv_usage", 0.3, 0.3), *counters("preemptions", 5, 5)]


def test_a_queue_that_only_the_gauge_tells_of_is_named() -> None:
    report = told([*gauges("waiting", 0, 9), *gauges("running", 4, 64)], LONG)
    (finding,) = report.findings
    assert finding.cause == "scheduler.queue_saturation"
    values = {item.name: item.value for item in finding.evidence}
    assert values["requests waiting at once, by /metrics"] == 9
    assert values["requests running at once, by /metrics"] == 64


def test_evictions_that_only_the_counter_tells_of_are_named() -> None:
    report = told([*counters("preemptions", 5, 9), *gauges("kv_usage", 0.3, 0.98)], LONG)
    (finding,) = report.findings
    assert finding.cause == "scheduler.kv_preemption"
    assert {item.value for item in finding.evidence} >= {4.0, 98.0}


def test_a_share_of_hits_that_fell_is_named() -> None:
    hits = [*counters("prefix_queries", 0, 1000), *counters("prefix_hits", 0, 0)]
    early = [
        metric("prefix_queries", "counter", T0 - 60 * S, 0, "old"),
        metric("prefix_queries", "counter", T0 - 50 * S, 4000, "old"),
    ]
    early += [
        metric("prefix_hits", "counter", T0 - 60 * S, 0, "old"),
        metric("prefix_hits", "counter", T0 - 50 * S, 3000, "old"),
    ]
    report = told([*hits, *early], LONG)
    assert [finding.cause for finding in report.findings] == ["scheduler.prefix_cache_miss"]


@pytest.mark.parametrize("before", [0.0, 31.0])
def test_an_error_that_a_device_had_not_reported_before_is_named(before: float) -> None:
    report = told(gauges("xid", before, 79), LONG)
    assert [finding.cause for finding in report.findings] == ["gpu.hw_fault"]
    assert 79 in {item.value for item in report.findings[0].evidence}


def test_an_error_that_the_gauge_shows_for_ever_is_not_blamed() -> None:
    assert told(gauges("xid", 79, 79), LONG).verdict == "could_not_tell"


def test_a_quiet_service_is_not_blamed() -> None:
    assert told(QUIET, LONG).verdict == "could_not_tell"


def test_a_busy_service_does_not_make_a_usual_request_slow() -> None:
    report = told([*gauges("waiting", 0, 9), *counters("preemptions", 5, 9)], request(SLOW, 411 * MS))
    assert report.verdict == "typical_here"


def test_a_counter_over_an_hour_tells_nothing_of_a_request_in_it() -> None:
    metrics = [metric("preemptions", "counter", T0 - 3600 * S, 0), metric("preemptions", "counter", T0 + 3600 * S, 50)]
    assert told(metrics, LONG).verdict == "could_not_tell"


def test_a_recorded_wait_has_the_gauges_beside_it() -> None:
    report = told(gauges("waiting", 0, 9), request(SLOW, 4000 * MS, queued=3600 * MS))
    first = report.findings[0]
    assert first.cause == "scheduler.queue_saturation"
    assert first.confidence > 0.5
    assert "requests waiting at once, by /metrics" in {item.name for item in first.evidence}


def legs(i: int, moved: int) -> list[RequestSpan]:
    """A prefill of 100 ms on one engine, ``moved`` ns of transfer, and the answer on another."""
    start = begin(i)
    tokens = {"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 32}
    one = {**tokens, "gen_ai.usage.completion_tokens": 1}
    prefill = RequestSpan("llm_request", f"p{i}", f"t{i}", start, start + 100 * MS, {}, one, "vllm")
    prefill = prefill._replace(
        parent="g", points={"scheduled": start + MS, "engine_last": start + 99 * MS}, service="prefill"
    )
    decode = prefill._replace(
        start=start + 100 * MS,
        end=start + 400 * MS + moved,
        tokens=tokens,
        points={"scheduled": start + 99 * MS + moved, "engine_first": start + 110 * MS + moved},
        service="decode",
    )
    return [prefill, decode]


def test_kv_that_took_long_from_one_engine_to_the_other_is_named_and_is_a_phase() -> None:
    usual = [span for i in range(11) for span in legs(i, 20 * MS + i * MS)]
    recording = Recording(spans=[*usual, *legs(SLOW, 900 * MS)], engine="vllm")
    capture = rebuild(recording, [], capture_id="c", name="n")
    report = diagnose(capture, assess(capture), 11)
    assert [finding.cause for finding in report.findings] == ["comm.kv_transfer"]
    phases = {part.part: part.ns for part in report.phases}
    assert phases["remote_kv_wait"] == 900 * MS
    assert phases["unexplained"] == MS  # before its first scheduling, of which no queue is told
    assert sum(ns or 0 for ns in phases.values()) == 1300 * MS
