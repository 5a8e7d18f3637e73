"""What each request should have taken, by its work and by its load; and the demo's faults, seen by numbers."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.assessment import RequestExpectations
from teller_core.data.capture import Capture
from teller_core.data.steps import Participation, Role
from teller_core.data.table import UNKNOWN
from teller_core.judge.assess import assess
from tests.core.judge.service import MS, Work, capture, requests_table, service


def served(works: list[Work], lives: list[tuple[int, int]], wait: int = 5 * MS) -> Capture:
    """Requests that live from one step to another (both included): the first step is their prefill."""
    made = service(works)
    begin, end = made.steps.launched, made.steps.finished
    pairs = sorted((s, r) for r, (low, high) in enumerate(lives) for s in range(low, high + 1))
    step, request = (np.array([p[i] for p in pairs], dtype=np.int32) for i in (0, 1))
    first = np.array([low for low, _ in lives])
    last = np.array([high for _, high in lives])
    output = (last - first + 1).astype(np.int32)
    requests = requests_table(
        len(lives),
        client_start=begin[first] - wait,
        scheduled=begin[first],
        first_token=end[first],
        client_first=end[first] + 100_000,
        last_token=end[last],
        client_end=end[last] + 100_000,
        prompt_tokens=np.full(len(lives), 8, dtype=np.int32),
        output_tokens=output,
    )
    participation = Participation(
        step=step,
        request=request,
        tokens=np.ones(len(step), dtype=np.int32),
        recomputed=np.zeros(len(step), dtype=np.int32),
        role=np.where(step == first[request], Role.PREFILL, Role.DECODE).astype(np.uint8),
        mapping=np.full(len(step), 2, dtype=np.uint8),
        confidence=np.ones(len(step)),
    )
    return capture(made.steps, made.work, made.ranks, requests=requests, participation=participation)


def test_the_longest_gap_is_expected_to_be_the_longest_step() -> None:
    works = [Work(context=600 if i == 22 else 25 * (i % 9 == 1), generation=8) for i in range(60)]
    made = served(works, LIVES)
    found = assess(made)
    assert found.requests.by_load[row(found.requests, 4, "itl_max")] >= found.steps.expected[22]
    assert found.requests.by_load[row(found.requests, 9, "itl_max")] < found.steps.expected[22] / 3


def row(table: RequestExpectations, request: int, metric: str) -> int:
    return next(i for i, m in enumerate(table.metric) if m == metric and table.request[i] == request)


LIVES = [(4 * i, 4 * i + 9 + 2 * (i % 4)) for i in range(11)]


def test_values_are_what_the_caller_measured() -> None:
    made = served([Work() for _ in range(60)], LIVES)
    table = assess(made).requests
    r = made.requests
    assert table.value[row(table, 3, "e2e")] == r.client_end[3] - r.client_start[3]
    assert table.value[row(table, 3, "ttft")] == r.client_first[3] - r.client_start[3]
    assert table.value[row(table, 3, "tpot")] == (r.last_token[3] - r.first_token[3]) // (r.output_tokens[3] - 1)


def test_a_request_met_by_slow_steps_is_over_its_work_and_its_load() -> None:
    made = served([Work(all_slow=8.0 if 20 <= i < 26 else 1.0) for i in range(60)], LIVES)
    table = assess(made).requests
    struck, spared = row(table, 4, "e2e"), row(table, 9, "e2e")
    assert table.value[struck] > 2 * table.by_work[struck]
    assert table.value[struck] > 2 * table.by_load[struck]
    assert table.residual[struck] > 3 > table.residual[spared]
    assert table.value[spared] == pytest.approx(table.by_load[spared], rel=0.1)


def test_a_request_beside_a_long_prefill_is_over_its_work_but_not_over_its_load() -> None:
    works = [Work(context=600 if i == 22 else 25 * (i % 9 == 1), generation=8) for i in range(60)]
    table = assess(served(works, LIVES)).requests
    beside = row(table, 4, "e2e")
    assert table.value[beside] > 1.5 * table.by_work[beside]
    assert table.value[beside] == pytest.approx(table.by_load[beside], rel=0.15)


def test_a_request_that_waited_is_over_its_work_but_not_over_its_load() -> None:
    made = served([Work() for _ in range(60)], LIVES)
    start = made.requests.client_start.copy()
    start[5] -= 300 * MS
    table = assess(replace(made, requests=replace(made.requests, client_start=start))).requests
    late = row(table, 5, "ttft")
    assert table.value[late] > 5 * table.by_work[late]
    assert table.value[late] == pytest.approx(table.by_load[late], rel=0.05)


def test_nothing_is_expected_of_requests_when_steps_and_peers_are_too_few() -> None:
    table = assess(served([Work() for _ in range(6)], [(0, 3), (1, 5)])).requests
    assert (table.by_work == UNKNOWN).all() and (table.by_load == UNKNOWN).all()
    assert np.isnan(table.residual).all()
    assert (table.value[[row(table, 0, "e2e"), row(table, 1, "tpot")]] != UNKNOWN).all()


def test_few_requests_are_judged_by_the_steps_of_the_capture() -> None:
    table = assess(
        served([Work(generation=4 + i % 5, context=9 * (i % 9 == 1)) for i in range(60)], LIVES[:3])
    ).requests
    one = row(table, 1, "e2e")
    assert np.isnan(table.residual[one])
    assert table.by_work[one] == pytest.approx(table.value[one], rel=0.5)


def test_times_nobody_recorded_stay_unknown() -> None:
    made = replace(service([Work() for _ in range(20)]), requests=requests_table(2))
    table = assess(made).requests
    assert (table.value == UNKNOWN).all() and (table.by_load == UNKNOWN).all() and np.isnan(table.residual).all()
    assert (table.by_work[[row(table, 0, "ttft"), row(table, 1, "e2e")]] == UNKNOWN).all()


def test_an_empty_capture_is_assessed() -> None:
    made = service([])
    found = assess(replace(made, ranks=[replace(made.ranks[0], tree=None)]))
    assert (len(found.steps.took), len(found.candidates.step), found.baselines.name) == (0, 0, [])
