"""The phases of a request: they sum, they are disjoint, and what has no source is null."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.parts import PHASES
from teller_core.data.report import Metric, Part
from teller_core.data.table import UNKNOWN
from teller_core.judge.breakdown import SERVERS_OWN
from teller_core.judge.prepare import prepare
from teller_core.judge.scene import scene
from tests.core.judge.serving import BASE, MS, PROMPT, Ask, Trouble, serve

CROWD = [Ask(at * 60) for at in range(20)]


def of(parts: list[Part], phase: str) -> int | None:
    return next(part.ns for part in parts if part.part == phase)


@pytest.mark.parametrize("trouble", ["gc", "starved", "disk", "operator", "lock", "recorder"])
def test_the_phases_of_every_request_sum_to_its_whole_to_the_nanosecond(trouble: str) -> None:
    capture, numbers = serve(CROWD, [Trouble(trouble, 300, 700, 40, 3)], slots=6)
    case = prepare(capture, numbers)
    for request in range(len(CROWD)):
        parts = scene(case, request, "e2e").phases
        assert [part.part for part in parts] == list(PHASES)
        assert sum(part.ns or 0 for part in parts) == int(case.ends[request] - case.starts[request])
        assert (of(parts, "unexplained") or 0) < MS


def test_a_request_alone_decodes_for_as_long_as_its_steps_and_the_turnaround_between_them() -> None:
    capture, numbers = serve([Ask(0, 50, 10), Ask(400, 50, 10)])
    parts = scene(prepare(capture, numbers), 0, "e2e").phases
    assert of(parts, "own_prefill") == BASE + 50 * PROMPT
    assert of(parts, "before_server") == round(0.2 * MS)
    assert of(parts, "front_end") == round(0.3 * MS)
    assert of(parts, "preempted") == 0
    assert of(parts, "remote_kv_wait") is None


def test_the_queue_is_one_and_the_same_in_the_list_and_in_the_answer() -> None:
    capture, numbers = serve(CROWD, slots=3)
    case = prepare(capture, numbers)
    told = capture.requests.queue()
    for request in range(len(CROWD)):
        assert of(scene(case, request, "e2e").phases, "queue") == told[request]
    assert len(set(told.tolist())) > 5
    counted = replace(capture.requests, queue_ns=told // 2 + 1)
    parts = scene(prepare(replace(capture, requests=counted), numbers), int(np.argmax(told)), "e2e").phases
    assert any(part.part == "queue" and "engine's own count" in part.source for part in parts)


def test_a_phase_without_a_source_is_null_and_its_time_is_unexplained() -> None:
    capture, numbers = serve([Ask(0, 50, 10), Ask(400, 50, 10, way=30)])
    blind = replace(capture.requests, received=np.full(2, UNKNOWN))
    parts = scene(prepare(replace(capture, requests=blind), numbers), 1, "e2e").phases
    assert of(parts, "before_server") is None
    assert of(parts, "front_end") is None
    assert (of(parts, "unexplained") or 0) >= 30 * MS
    assert sum(part.ns or 0 for part in parts) == int(capture.requests.end()[1] - capture.requests.begin()[1])


def test_steps_that_overlap_because_one_is_scheduled_ahead_are_counted_once() -> None:
    capture, numbers = serve([Ask(0, 50, 30)])
    ahead = replace(
        capture.steps,
        launched=np.where(
            np.arange(len(capture.steps.launched)) > 0, capture.steps.launched - 2 * MS, capture.steps.launched
        ),
    )
    parts = scene(prepare(replace(capture, steps=ahead), numbers), 0, "e2e").phases
    assert sum(part.ns or 0 for part in parts) == int(capture.requests.end()[0] - capture.requests.begin()[0])
    assert of(parts, "unexplained") == 0


def test_an_eviction_and_the_tokens_computed_again_are_phases_of_their_own() -> None:
    capture, numbers = serve(CROWD, evict=(4, 20, 300.0))
    parts = scene(prepare(capture, numbers), 4, "e2e").phases
    assert (of(parts, "preempted") or 0) >= 300 * MS
    assert (of(parts, "recompute") or 0) >= BASE + 70 * PROMPT


def test_an_eviction_whose_blocks_stayed_cached_is_found_by_the_scheduler_record() -> None:
    capture, numbers = serve(CROWD, evict=(4, 20, 300.0))
    part, requests = capture.participation, capture.requests
    cached = replace(part, recomputed=np.zeros_like(part.recomputed))
    counted = replace(requests, preemptions=np.where(requests.number == 5, 1, 0).astype(np.int32))
    case = prepare(replace(capture, participation=cached, requests=counted), numbers)
    assert (of(scene(case, 4, "e2e").phases, "preempted") or 0) >= 300 * MS
    assert of(scene(case, 3, "e2e").phases, "preempted") == 0


def test_stops_of_the_recorder_are_cut_out_of_every_other_phase() -> None:
    capture, numbers = serve(CROWD, [Trouble("recorder", 400, 410, 500)])
    case = prepare(capture, numbers)
    stalled = [of(scene(case, request, "e2e").phases, "capture_stall") or 0 for request in range(len(CROWD))]
    assert max(stalled) == 500 * MS
    decode = [of(scene(case, request, "e2e").phases, "decode") or 0 for request in range(len(CROWD))]
    assert max(decode) < 700 * MS


def test_without_steps_the_servers_own_times_make_the_phases() -> None:
    capture, numbers = serve([Ask(0, 50, 30)], mapped=False)
    parts = scene(prepare(capture, numbers), 0, "e2e").phases
    assert (of(parts, "own_prefill") or 0) >= BASE + 50 * PROMPT
    assert (of(parts, "decode") or 0) > 100 * MS
    assert of(parts, "preempted") is None
    assert sum(part.ns or 0 for part in parts) == int(capture.requests.end()[0] - capture.requests.begin()[0])


def test_where_only_a_proxy_tells_of_a_request_the_rest_is_the_servers_own_time() -> None:
    capture, numbers = serve([Ask(0, 50, 30)], mapped=False)
    table = capture.requests
    unknown = np.array([UNKNOWN])
    gone = dict.fromkeys(
        ("queued", "scheduled", "first_token", "last_token", "finished", "queue_ns", "client_first"), unknown
    )
    none = replace(capture.tokens, offset=np.zeros(2, np.int64), time=np.empty(0, np.int64))
    only = replace(capture, requests=replace(table, **gone, client_end=table.finished), tokens=none)
    parts = scene(prepare(only, numbers), 0, "e2e").phases
    assert [part.source for part in parts if part.part == "unexplained"] == [SERVERS_OWN]
    assert {part.part for part in parts if part.ns} == {"before_server", "unexplained"}


def test_a_request_without_an_end_has_no_phases() -> None:
    capture, numbers = serve([Ask(0, 50, 30)])
    gone = {name: np.array([UNKNOWN]) for name in ("client_end", "finished", "last_token", "first_token")}
    assert scene(prepare(replace(capture, requests=replace(capture.requests, **gone)), numbers), 0, "e2e").phases == []


@pytest.mark.parametrize("metric", ["ttft", "itl_max"])
def test_the_phases_of_another_metric_sum_to_what_it_measures(metric: Metric) -> None:
    capture, numbers = serve(CROWD, [Trouble("gc", 300, 700, 40, 3)], slots=6)
    case = prepare(capture, numbers)
    told = {
        int(numbers.requests.request[row]): int(numbers.requests.value[row])
        for row, name in enumerate(numbers.requests.metric)
        if name == metric
    }
    for request in range(len(CROWD)):
        parts = scene(case, request, metric).phases
        assert sum(part.ns or 0 for part in parts) == told[request]
