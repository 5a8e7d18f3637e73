"""When the moments of a request were, from the durations of its spans."""

from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.records import ClientRecord, Interval, Recording, RequestFact, RequestSpan
from teller_core.data.table import UNKNOWN
from teller_core.ingest.otel.origins import SGLANG, TGI, VLLM_V0, VLLM_V1, Origins
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.legs import ROUNDING_NS, LegTimes, hands_over, leg_times
from tests.core.rebuild.conftest import FRONTEND

MS = 10**6
T0 = 1_795_961_300 * 10**9


def span(moments: dict[str, int], origins: Origins, **more: object) -> RequestSpan:
    """A span of an engine whose durations are those of ``origins``, as differences of ``moments`` (ns after T0)."""
    intervals = [
        Interval(one.begin, one.end, moments[one.end] - moments[one.begin], one.clock)
        for one in origins.values()
        if one.begin in moments and one.end in moments
    ]
    base = RequestSpan("llm_request", "r", "t", T0 + moments["received"], T0 + moments["closed"], {}, {}, "vllm")
    return base._replace(intervals=intervals, **more)


@dataclass(frozen=True)
class Truth:
    moments: dict[str, int]
    delay: int
    """From the engine's first token to the front end's."""


STEPS = st.lists(st.integers(0, 10**10), min_size=8, max_size=8)


def truth(steps: list[int]) -> dict[str, int]:
    """Moments of one request in the order in which they come."""
    received = 0
    queued = received + steps[0]
    scheduled = queued + steps[1]
    engine_first = scheduled + steps[2]
    first_token = engine_first + steps[3]
    engine_last = engine_first + steps[4]
    finished = max(first_token, engine_last) + steps[5]
    return {
        "received": received,
        "dispatched": received + steps[0] // 2,
        "queued": queued,
        "scheduled": scheduled,
        "engine_first": engine_first,
        "first_token": first_token,
        "engine_last": engine_last,
        "finished": finished,
        "closed": finished + steps[6],
    }


@given(steps=STEPS)
def test_durations_of_vllm_keep_their_lengths_and_lie_where_they_may(steps: list[int]) -> None:
    real, problems = truth(steps), Counter[str]()
    told = leg_times([span(real, VLLM_V1)], problems)
    assert not problems
    assert told.scheduled - told.queued == real["scheduled"] - real["queued"]
    assert told.last_token - told.scheduled == real["engine_last"] - real["scheduled"]
    assert told.first_token == T0 + real["first_token"]
    assert T0 + real["received"] <= told.queued
    assert told.last_token <= T0 + real["finished"]
    late = told.queued - (T0 + real["queued"])
    slack = min(real["first_token"] - real["engine_first"], real["finished"] - real["engine_last"])
    assert 0 <= late <= slack


@given(steps=STEPS)
def test_moments_that_the_durations_of_tgi_and_sglang_tell_are_the_real_ones(steps: list[int]) -> None:
    real, problems = truth(steps), Counter[str]()
    tgi = leg_times([span(real, TGI)], problems)
    assert (tgi.queued, tgi.scheduled) == (T0 + real["queued"], T0 + real["scheduled"])
    sglang = leg_times([span(real, SGLANG)], problems)
    assert (sglang.first_token, sglang.queued) == (T0 + real["first_token"], sglang.queued)
    old = leg_times([span(real, VLLM_V0)], problems)
    assert (old.scheduled, old.queued, old.first_token) == (T0 + real["scheduled"], UNKNOWN, T0 + real["first_token"])
    assert not problems


@given(steps=STEPS, extra=st.integers(ROUNDING_NS + 1, 10**9))
def test_durations_longer_than_what_holds_them_are_counted_and_none_is_used(steps: list[int], extra: int) -> None:
    real, problems = truth(steps), Counter[str]()
    whole = span(real, VLLM_V1)
    room = real["first_token"] - real["engine_first"] + real["queued"]
    queue = whole.intervals[2]
    assert (queue.begin, queue.end) == ("queued", "scheduled")
    intervals = [*whole.intervals[:2], queue._replace(ns=queue.ns + room + extra), *whole.intervals[3:]]
    told = leg_times([whole._replace(intervals=intervals)], problems)
    assert problems == {"span_durations_do_not_fit": 1}
    assert told == LegTimes(received=whole.start, finished=whole.end)


def test_a_recorded_moment_stands_and_a_duration_that_contradicts_it_is_counted() -> None:
    real = truth([10 * MS] * 8)
    points = {"queued": T0 + real["queued"], "scheduled": T0 + real["scheduled"]}
    problems = Counter[str]()
    told = leg_times([span(real, VLLM_V1, points=points)], problems)
    assert (told.queued, told.scheduled, problems) == (points["queued"], points["scheduled"], Counter())
    wrong = {**points, "scheduled": points["scheduled"] + 5 * MS}
    assert leg_times([span(real, VLLM_V1, points=wrong)], problems).scheduled == UNKNOWN
    assert problems["span_durations_do_not_fit"] == 1


def around(leg: str, start: int, end: int, **more: object) -> RequestSpan:
    base = RequestSpan(leg, "x", "t", T0 + start * MS, T0 + end * MS, {}, {}, "p", leg=leg)
    return base._replace(**more)


ENGINE = span({"received": 100 * MS, "closed": 900 * MS}, {}, span_id="e", parent="g", service="vllm")


def test_the_longest_leg_around_tells_when_it_was_sent_and_when_the_answer_was_there() -> None:
    legs = [ENGINE, around("gateway", 50, 950), around("caller", 20, 980), around("server", 90, 910, service="vllm")]
    told = leg_times(legs, Counter())
    assert (told.sent, told.ended) == (T0 + 20 * MS, T0 + 980 * MS)
    assert (told.received, told.finished) == (T0 + 90 * MS, T0 + 910 * MS)


def test_a_gateway_that_has_it_later_than_the_engine_is_out_of_order() -> None:
    problems = Counter[str]()
    told = leg_times([ENGINE, around("gateway", 300, 1200)], problems)
    assert (told.sent, problems) == (UNKNOWN, {"legs_out_of_order": 1})


def test_a_proxys_line_of_whole_seconds_holds_what_it_passed_on() -> None:
    line = around("gateway", 0, 1000, proxy=True, resolution=10**9)
    told = leg_times([ENGINE, line._replace(start=line.start + 500 * MS, end=line.end + 500 * MS)], Counter())
    assert told.ended - told.sent == 1000 * MS
    assert told.sent <= told.received < told.finished <= told.ended


def test_what_a_caller_measures_to_its_first_token_counts_from_its_own_start() -> None:
    caller = around("caller", 0, 1000, intervals=[Interval("sent", "client_first", 300 * MS, "caller")])
    assert leg_times([caller], Counter()) == LegTimes(sent=T0, ended=T0 + 1000 * MS, client_first=T0 + 300 * MS)


PREFILL = span({"received": 0, "closed": 300 * MS, "scheduled": 100 * MS, "engine_last": 280 * MS}, VLLM_V1)
PREFILL = PREFILL._replace(
    points={"scheduled": T0 + 100 * MS, "engine_last": T0 + 280 * MS},
    tokens={"gen_ai.usage.completion_tokens": 1}, parent="g", span_id="p", service="prefill-0", intervals=(),
)  # fmt: skip
DECODE = PREFILL._replace(
    start=T0 + 310 * MS, end=T0 + 900 * MS, span_id="d", service="decode-0", tokens={"gen_ai.usage.completion_tokens": 9},
    points={"scheduled": T0 + 400 * MS, "engine_first": T0 + 410 * MS},
)  # fmt: skip


def test_between_a_prefill_and_a_decode_engine_its_kv_moves() -> None:
    assert hands_over(PREFILL, DECODE)
    told = leg_times([DECODE, PREFILL], Counter())
    assert (told.transfer_from, told.transfer_until) == (T0 + 280 * MS, T0 + 400 * MS)
    assert (told.received, told.scheduled, told.first_token) == (T0, T0 + 100 * MS, T0 + 410 * MS)


@pytest.mark.parametrize(
    "other",
    [
        DECODE._replace(trace_id=""),
        DECODE._replace(request="another", parent="elsewhere"),
        DECODE._replace(end=T0 + 200 * MS, start=T0 + 1),
    ],
)
def test_two_engines_whose_spans_are_not_of_one_request(other: RequestSpan) -> None:
    assert not hands_over(PREFILL, other)


def test_two_answers_of_one_trace_are_two_requests() -> None:
    first = DECODE._replace(request="a", parent="agent")
    second = DECODE._replace(request="b", parent="agent", start=DECODE.end + MS, end=DECODE.end + 900 * MS, span_id="f")
    agent = around("gateway", 300, 2000, span_id="agent")
    capture = rebuild(Recording(spans=[agent, first, second]), [], capture_id="c", name="n")
    assert len(capture.requests.number) == 2
    assert capture.problems["spans_of_several_requests"] == 1
    assert set(capture.requests.client_start.tolist()) == {UNKNOWN}


def test_legs_are_joined_by_the_trace_into_one_request_whose_kv_moved() -> None:
    gateway = around("gateway", -20, 920, span_id="g", request="chat-1")
    capture = rebuild(Recording(spans=[DECODE, gateway, PREFILL]), [], capture_id="c", name="n")
    requests = capture.requests
    assert requests.engine_id == ["r"]
    assert requests.client_start.tolist() == [T0 - 20 * MS]
    assert requests.client_end.tolist() == [T0 + 920 * MS]
    assert capture.transfers.start.tolist() == [T0 + 280 * MS]
    assert requests.output_tokens.tolist() == [9]


def test_a_proxys_line_without_a_trace_joins_by_the_callers_name_for_the_request() -> None:
    engine = ENGINE._replace(request="chatcmpl-chat-7", trace_id="")
    line = around("gateway", 50, 950, request="chat-7", trace_id="", proxy=True)
    capture = rebuild(Recording(spans=[line, engine]), [], capture_id="c", name="n")
    assert capture.requests.client_start.tolist() == [T0 + 50 * MS]
    assert capture.requests.received.tolist() == [T0 + 100 * MS]


def test_calls_of_which_no_engine_tells_are_requests_of_their_own() -> None:
    spans = [
        around("caller", 0, 100, request="chatcmpl-1", trace_id="a", span_id="1"),
        around("gateway", 5, 95, request="", trace_id="a", span_id="2", parent="1"),
        around("caller", 200, 300, request="chatcmpl-2", trace_id="b", span_id="3"),
        around("http", 0, 400, request="", trace_id="b", span_id="4"),
    ]
    capture = rebuild(Recording(spans=spans), [], capture_id="c", name="n")
    assert capture.requests.engine_id == ["chatcmpl-1", "chatcmpl-2"]
    assert (capture.requests.end() - capture.requests.begin()).tolist() == [100 * MS, 100 * MS]


def test_a_line_of_the_engine_wins_over_what_durations_place() -> None:
    real = truth([10 * MS] * 8)
    fact = RequestFact(FRONTEND, T0 + 3 * MS, 1000, "r", "queued")
    capture = rebuild(Recording(spans=[span(real, VLLM_V1)], requests=[fact]), [], capture_id="c", name="n")
    assert capture.requests.queued.tolist() == [T0 + 3 * MS]
    assert capture.requests.scheduled[0] != UNKNOWN


def test_a_caller_without_an_end_still_finds_its_request() -> None:
    client = ClientRecord("r", T0 + 90 * MS, UNKNOWN)
    capture = rebuild(Recording(spans=[ENGINE], clients=[client]), [], capture_id="c", name="n")
    assert capture.requests.client_start.tolist() == [T0 + 90 * MS]
    assert capture.requests.received.tolist() == [T0 + 100 * MS]
