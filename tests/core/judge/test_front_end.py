"""What is known of a request in the front end stands beside the claim: when its prompt was tokens, how late the loop ran."""

from dataclasses import replace

import numpy as np

from teller_core.data.capture import Capture, Pauses
from teller_core.judge.diagnose import judge
from teller_core.judge.front import handed
from teller_core.judge.life import life
from teller_core.judge.prepare import prepare
from tests.core.judge.serving import MS, Ask, serve

SLOW = 20
CROWD = [Ask(at * 60) for at in range(40)]


def _late_loop(capture: Capture, start: int, dur: int) -> Capture:
    pauses = Pauses(np.array([start]), np.array([dur]), np.array([1]), ["/9"], ["frontend"], ["loop_lag"])
    return replace(capture, pauses=pauses)


def test_tokenizing_and_a_late_loop_are_evidence_for_time_lost_in_the_front_end() -> None:
    capture, numbers = serve([*CROWD[:SLOW], Ask(1201, front=400), *CROWD[SLOW + 1 :]])
    received = int(capture.requests.received[SLOW])
    tokenized = capture.requests.tokenized.copy()
    tokenized[SLOW] = received + 300 * MS
    told = replace(capture, requests=replace(capture.requests, tokenized=tokenized))
    report = judge(prepare(_late_loop(told, received + 10 * MS, 90 * MS), numbers), SLOW)
    finding = report.findings[0]
    evidence = {item.name: item.value for item in finding.evidence}
    assert finding.cause == "frontend.input_processing"
    assert evidence["of it, until its prompt was tokens"] == 300.0
    assert evidence["of it, the event loop ran late"] == 90.0
    assert report.finish_reason == "length"


def test_without_them_nothing_is_said_of_them() -> None:
    capture, numbers = serve([*CROWD[:SLOW], Ask(1201, front=400), *CROWD[SLOW + 1 :]])
    report = judge(prepare(capture, numbers), SLOW)
    assert not [item for item in report.findings[0].evidence if (item.name or "").startswith("of it")]


def test_who_is_taken_in_at_the_end_of_a_step_that_a_line_times_may_have_lain_before_its_engine_since_that_began() -> (
    None
):
    """Lines are written after a step, so that it seems to run on when the next request is taken in: two captures of one life."""
    capture, numbers = serve(CROWD)
    steps, requests = capture.steps, capture.requests
    at = int(np.searchsorted(steps.launched, requests.queued[SLOW], "right")) + 2
    assert int(steps.generation_requests[at + 1]) > 0 and int(steps.launched[at]) > int(requests.received[SLOW])
    queued = requests.queued.copy()
    queued[SLOW] = steps.finished[at] - MS // 2
    taken = replace(capture, requests=replace(requests, queued=queued))
    by_line = replace(taken, steps=replace(steps, elapsed=steps.finished - steps.launched))
    recorded, told = (prepare(one, numbers) for one in (taken, by_line))
    assert handed(recorded, life(recorded, SLOW)) == int(queued[SLOW])
    assert handed(told, life(told, SLOW)) == int(min(steps.launched[at], steps.scheduled[at]))
