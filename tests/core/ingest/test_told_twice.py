"""One step and one request that two files tell are one: the finer times stay, the line and the trace as well."""

from teller_core.data.records import Interval, Iteration, Process, RequestSpan
from teller_core.ingest.recorder.engine_stats import PRODUCER
from teller_core.ingest.told_twice import iterations_joined, spans_joined


def step(number: int, *, line: int | None = None, pid: int = 7, tokens: int = 3) -> Iteration:
    return Iteration(Process("", pid, "frontend"), 10**18 + number, 1, 0, number, 0, 0, tokens, tokens, line=line)


def span(request: str, start: int, producer: str, trace: str = "") -> RequestSpan:
    tokens = {"preemptions": 2} if producer == PRODUCER else {"gen_ai.usage.prompt_tokens": 5}
    interval = Interval("received", "first_token" if trace else "finished", 50, "front_end")
    return RequestSpan(request, request, trace, start, start + 100, {}, tokens, producer, intervals=[interval])


def test_a_step_that_the_log_tells_too_is_one_and_keeps_its_line() -> None:
    joined = iterations_joined([step(0, line=4), step(1, line=5), step(0), step(1), step(2)])
    assert [(one.number, one.line) for one in joined] == [(0, 4), (1, 5), (2, None)]


def test_lines_of_other_counts_or_of_another_process_stay_steps_of_their_own() -> None:
    rows = [step(0, line=4, pid=8), step(0, line=5, tokens=9), step(0)]
    assert len(iterations_joined(rows)) == 3


def test_a_line_without_a_process_is_of_any() -> None:
    assert [one.line for one in iterations_joined([step(0, line=4, pid=0), step(0)])] == [4]


def test_without_counters_every_line_stays() -> None:
    rows = [step(0, line=4), step(1, line=5)]
    assert iterations_joined(rows) == rows


def test_a_request_with_a_span_and_counters_is_one_with_what_both_tell() -> None:
    (both,) = spans_joined([span("a", 1000, PRODUCER), span("a", 1200, "vllm", "t1")], PRODUCER)
    assert (both.trace_id, both.start) == ("t1", 1200)
    assert dict(both.tokens) == {"preemptions": 2, "gen_ai.usage.prompt_tokens": 5}
    assert {one.end for one in both.intervals} == {"first_token", "finished"}


def test_two_requests_of_one_id_are_told_apart_by_when_they_came() -> None:
    rows = [span("a", 0, PRODUCER), span("a", 10**9, PRODUCER), span("a", 10**9, "vllm", "t1")]
    joined = spans_joined(rows, PRODUCER)
    assert sorted((one.start, one.trace_id) for one in joined) == [(0, ""), (10**9, "t1")]


def test_a_span_of_a_request_that_nothing_counted_stays_as_it_is() -> None:
    rows = [span("b", 0, "vllm", "t1"), span("a", 0, PRODUCER)]
    assert spans_joined(rows, PRODUCER) == rows
