"""What a slow request and its step are set beside: usual ones of like work, or none."""

from dataclasses import replace

import numpy as np

from teller_core.data.assessment import RequestExpectations, StepExpectations
from teller_core.data.steps import Requests, Steps
from teller_core.tell.timeline.beside import beside_request, beside_step
from tests.core.store.made import filled

MS = 1_000_000


def requests(prompts: list[int], outputs: list[int]) -> Requests:
    count = len(prompts)
    times = {"client_start": [10 * MS] * count, "client_end": [20 * MS] * count}
    return filled(
        Requests, count, number=np.arange(1, count + 1), prompt_tokens=prompts, output_tokens=outputs, **times
    )


def expected(values: list[int], by_work: list[int]) -> RequestExpectations:
    count = len(values)
    return filled(
        RequestExpectations, count, request=np.arange(count), metric=["e2e"] * count, value=values, by_work=by_work
    )


def test_the_request_beside_it_took_what_its_work_predicts_and_had_like_work() -> None:
    table = requests([100, 100, 90, 2000], [20, 21, 20, 20])
    numbers = expected([900 * MS, 500 * MS, 210 * MS, 200 * MS], [200 * MS] * 4)
    found = beside_request(0, "e2e", table, numbers)
    assert found.at == 2 and found.why == "request 3, of like work, which took what its work predicts"
    assert beside_request(0, "slo", table, numbers).at == 2


def test_a_failed_request_is_beside_nobody() -> None:
    table = requests([100, 100], [20, 20])
    numbers = expected([900 * MS, 200 * MS], [200 * MS] * 2)
    assert beside_request(0, "e2e", table, numbers).at == 1
    assert beside_request(0, "e2e", replace(table, failed=np.array([0, 1], dtype=np.uint8)), numbers).at is None


def test_the_fastest_has_nobody_beside_it() -> None:
    found = beside_request(0, "e2e", requests([10, 10], [5, 5]), expected([5 * MS, 9 * MS], [5 * MS] * 2))
    assert found == (None, "no request of like work was faster")


def test_a_request_of_very_different_work_is_not_set_beside() -> None:
    found = beside_request(0, "e2e", requests([10, 4000], [5, 5]), expected([50 * MS, 9 * MS], [5 * MS, 9 * MS]))
    assert found.at is None


def test_where_no_work_predicts_anything_one_of_the_faster_half_is_taken() -> None:
    numbers = expected([90 * MS, 10 * MS, 80 * MS], [0, 0, 0])
    found = beside_request(0, "e2e", requests([-1] * 3, [-1] * 3), numbers)
    assert found.at == 1 and "faster half" in found.why


def steps(prompts: list[int], answers: list[int]) -> Steps:
    return filled(
        Steps, len(prompts), context_tokens=prompts, generation_requests=answers, kv_tokens=[-1] * len(prompts)
    )


def taken(took: list[int], residual: list[float]) -> StepExpectations:
    return filled(StepExpectations, len(took), took=took, residual=residual)


def test_the_step_beside_it_is_of_its_phase_calm_and_of_like_work() -> None:
    table = steps([0, 0, 0, 64, 0], [4, 4, 40, 4, 5])
    numbers = taken([90 * MS, 80 * MS, 10 * MS, 10 * MS, 11 * MS], [9.0, 8.0, 0.1, 0.1, 0.2])
    assert beside_step(0, table, numbers, None, []).at == 4
    profiled = np.array([True, True, False, False, False])
    assert beside_step(0, table, numbers, profiled, []).at == 1
    assert beside_step(1, table, numbers, profiled, []).at is None


def test_of_equals_the_step_of_the_request_beside_is_taken() -> None:
    table = steps([0] * 9, [4] * 9)
    numbers = taken([90 * MS] + [10 * MS] * 8, [9.0] + [0.0] * 8)
    assert [beside_step(0, table, numbers, None, [liked]).at for liked in (3, 7)] == [3, 7]
