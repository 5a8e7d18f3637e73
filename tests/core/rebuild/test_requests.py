"""One request under its many names."""

from collections import Counter

import pytest

from teller_core.data.records import ClientRecord, Decision, Process, Recording, RequestFact, RequestSpan
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.identity import outer_names
from teller_core.rebuild.requests import join_requests

FRONTEND, ENGINE = Process("", 1, "frontend"), Process("", 2, "engine")
S = 10**9


def fact(kind: str, request: str, time: int, value: int | None = None) -> RequestFact:
    return RequestFact(FRONTEND, time, 1000, request, kind, value)


@pytest.mark.parametrize(
    ("engine_id", "outer"),
    [
        ("cmpl-p-000-0-ab81adfc", {"cmpl-p-000-0", "cmpl-p-000", "p-000"}),
        ("cmpl-p-000-0", {"cmpl-p-000", "p-000"}),
        ("chatcmpl-chat-000-b540cc62", {"chatcmpl-chat-000", "chat-000"}),
        ("chatcmpl-prof-000", {"prof-000"}),
    ],
)
def test_the_engines_id_leads_to_the_front_ends_and_the_callers(engine_id: str, outer: set[str]) -> None:
    assert outer <= set(outer_names(engine_id))


def test_an_id_of_the_caller_alone_stays_as_it_is() -> None:
    assert outer_names("p-000") == ("p-000",)


def test_caller_front_end_and_engine_are_one_request() -> None:
    recording = Recording(
        requests=[fact("received", "cmpl-p-000-0", 10 * S), fact("added", "cmpl-p-000-0-ab81adfc", 10 * S + 5)],
        clients=[ClientRecord("p-000", 9 * S, 12 * S, response_id="cmpl-p-000")],
        decisions=[Decision(ENGINE, 11 * S, 10, {"cmpl-p-000-0-ab81adfc": 4})],
    )
    capture = rebuild(recording, [], capture_id="c", name="n")
    assert (capture.requests.engine_id, capture.requests.client_id) == (["cmpl-p-000-0-ab81adfc"], ["p-000"])
    assert capture.requests.received.tolist() == [10 * S]


def test_a_span_joins_by_the_front_ends_id() -> None:
    span = RequestSpan(
        "llm_request", "chatcmpl-a", "trace", 9 * S, 12 * S, {"gen_ai.latency.time_in_queue": 7}, {}, "vllm"
    )
    recording = Recording(
        spans=[span],
        clients=[ClientRecord("a", 8 * S, 13 * S, response_id="chatcmpl-a")],
        requests=[fact("received", "chatcmpl-a", 9 * S), fact("added", "chatcmpl-a-0123abcd", 9 * S)],
    )
    requests = rebuild(recording, [], capture_id="c", name="n").requests
    assert (requests.trace_id, requests.client_id, requests.queue_ns.tolist()) == (["trace"], ["a"], [7])


def test_an_id_that_callers_use_again_is_another_request_each_time() -> None:
    recording = Recording(
        requests=[
            fact("received", "cmpl-r-0-0", 1 * S), fact("added", "cmpl-r-0-0-00000001", 1 * S + 1),
            fact("received", "cmpl-r-0-0", 5 * S), fact("added", "cmpl-r-0-0-00000002", 5 * S + 1),
        ],
        clients=[ClientRecord("r-0", 5 * S - 1, 6 * S), ClientRecord("r-0", S - 1, 2 * S)],
    )  # fmt: skip
    requests = rebuild(recording, [], capture_id="c", name="n").requests
    assert requests.engine_id == ["cmpl-r-0-0-00000001", "cmpl-r-0-0-00000002"]
    assert requests.received.tolist() == [S, 5 * S]
    assert requests.client_start.tolist() == [S - 1, 5 * S - 1]


def test_an_id_added_twice_to_one_engine_is_two_requests_told_apart_by_time() -> None:
    recording = Recording(
        requests=[fact("added", "w-0", 1 * S), fact("added", "w-0", 5 * S)],
        decisions=[Decision(ENGINE, 2 * S, 10, {"w-0": 4}), Decision(ENGINE, 6 * S, 10, {"w-0": 9})],
    )
    capture = rebuild(recording, [], capture_id="c", name="n")
    assert capture.participation.request.tolist() == [0, 1]
    assert capture.requests.queued.tolist() == [S, 5 * S]


def test_a_caller_whose_name_fits_two_requests_is_joined_to_neither() -> None:
    recording = Recording(
        requests=[fact("added", "cmpl-a-0-00000001", 5 * S), fact("added", "cmpl-a-1-00000002", 5 * S)],
        clients=[ClientRecord("a", 4 * S, 6 * S)],
    )
    problems: Counter[str] = Counter()
    registry = join_requests(recording, problems)
    assert len(registry.entries) == 3
    assert problems["ambiguous_request_ids"] == 1
    assert [entry.engine_id for entry in registry.entries if entry.client is not None] == [""]


def test_what_a_service_says_of_an_abort_and_a_caller_of_an_error_is_a_failure() -> None:
    recording = Recording(
        requests=[fact("received", "a", S), fact("aborted", "a", 2 * S)],
        clients=[ClientRecord("b", S + 1, 2 * S, error=True), ClientRecord("c", S + 2, 2 * S)],
    )
    requests = rebuild(recording, [], capture_id="c", name="n").requests
    assert dict(zip(requests.client_id, requests.failed.tolist(), strict=True)) == {"": 1, "b": 1, "c": 0}


def test_a_stamp_of_whole_seconds_gives_way_to_a_finer_clock() -> None:
    coarse = [RequestFact(FRONTEND, 10 * S, S, "a", "received"), RequestFact(FRONTEND, 10 * S, S, "b", "received")]
    recording = Recording(requests=coarse, clients=[ClientRecord("a", 10 * S + 5, 11 * S)])
    requests = rebuild(recording, [], capture_id="c", name="n").requests
    known = dict(zip(requests.engine_id, requests.received.tolist(), strict=True))
    assert known == {"a": -(2**63), "b": 10 * S}


def test_a_queue_line_written_when_the_request_already_ran_does_not_say_when_it_was_queued() -> None:
    recording = Recording(
        requests=[fact("added", "a", 5 * S), fact("added", "b", S)],
        decisions=[Decision(ENGINE, 2 * S, 10, {"a": 4, "b": 4})],
    )
    capture = rebuild(recording, [], capture_id="c", name="n")
    queued = dict(zip(capture.requests.engine_id, capture.requests.queued.tolist(), strict=True))
    assert queued == {"a": -(2**63), "b": S}
    assert capture.problems == {"queue_lines_after_first_step": 1}
