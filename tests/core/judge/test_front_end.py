"""What is known of a request in the front end stands beside the claim: when its prompt was tokens, how late the loop ran."""

from dataclasses import replace

import numpy as np

from teller_core.data.capture import Capture, Pauses
from teller_core.judge.diagnose import judge
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
