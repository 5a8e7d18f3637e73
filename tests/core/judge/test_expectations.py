"""What a step's work predicts, and what its time is taken to be."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.capture import Pauses
from teller_core.data.steps import Participation
from teller_core.data.table import UNKNOWN
from teller_core.judge.expectations import expect_steps, over, took
from teller_core.judge.regress import fit
from tests.core.judge.service import MS, Work, capture, requests_table, service, steps_table


@pytest.mark.parametrize("seed", range(8))
def test_costs_are_found_although_three_values_in_ten_are_slow(seed: int) -> None:
    rng = np.random.default_rng(seed)
    context = np.where(rng.random(80) < 0.2, rng.integers(10, 300, 80), 0)
    decoding = rng.integers(1, 9, 80)
    features = np.column_stack([np.ones(80), context, decoding]).astype(np.float64)
    truth = features @ np.array([5e6, 4e4, 3e5])
    taken = truth * np.exp(rng.normal(0, 0.08, 80)) * np.where(rng.random(80) < 0.3, rng.uniform(1.5, 10, 80), 1)
    found = fit(features, taken)
    assert found is not None
    assert np.abs(np.log(found.predict(features) / truth)).max() < 0.2
    assert found.spread < 0.25


def test_too_few_values_give_no_costs() -> None:
    assert fit(np.ones((7, 1)), np.full(7, 1e6)) is None
    assert fit(np.ones((8, 1)), np.full(8, 1e6)) is not None


def test_steps_of_too_few_peers_have_a_time_but_no_expectation() -> None:
    found, model = expect_steps(service([Work() for _ in range(7)]))
    assert model is None
    assert (found.took > 0).all()
    assert (found.expected == UNKNOWN).all() and (found.excess == UNKNOWN).all() and np.isnan(found.residual).all()


def test_excess_is_what_a_step_took_beyond_its_expectation() -> None:
    found, _ = expect_steps(service([Work(all_slow=3.0 if i == 20 else 1.0, generation=4 + i % 5) for i in range(60)]))
    assert np.array_equal(found.excess, found.took - found.expected)
    assert found.residual[20] > 6
    assert np.argmax(found.residual) == 20


def test_the_only_long_prefill_is_not_called_slow() -> None:
    steps = [Work(context=900 if i == 30 else 30 * (i % 11 == 5), generation=6, kv=2000) for i in range(60)]
    found, _ = expect_steps(service(steps))
    assert abs(found.residual[30]) < 3


def test_steps_that_the_recorder_stopped_teach_nothing_but_are_judged() -> None:
    steps = [Work(gap=50 * MS if i < 25 else 0, generation=4 + i % 5) for i in range(60)]
    plain = service(steps)
    stops = Pauses(
        start=plain.steps.launched[:25],
        dur=np.full(25, MS, dtype=np.int64),
        thread=np.zeros(25, dtype=np.int64),
        process=["host/1"] * 25,
        role=["worker"] * 25,
        kind=["profiler_stop"] * 25,
    )
    found, _ = expect_steps(replace(plain, pauses=stops))
    assert found.residual[:25].min() > 6
    assert np.abs(found.residual[25:]).max() < 4


def test_a_step_that_overlaps_the_one_before_counts_from_its_end() -> None:
    begin, end = np.array([0, 50, 100], dtype=np.int64) * MS, np.array([60, 110, 130], dtype=np.int64) * MS
    steps = steps_table([Work()] * 3, begin, end)
    assert took(steps, steps.end()).tolist() == [60 * MS, 50 * MS, 20 * MS]


def test_without_a_begin_a_decode_counts_from_the_end_before_and_a_prefill_is_unknown() -> None:
    begin, end = np.full(3, UNKNOWN, dtype=np.int64), np.array([60, 110, 130], dtype=np.int64) * MS
    steps = replace(steps_table([Work(), Work(), Work(context=5, generation=0)], begin, end), scheduled=begin)
    assert took(steps, steps.end()).tolist() == [UNKNOWN, 50 * MS, UNKNOWN]


def test_an_engine_that_waits_for_requests_is_not_at_work() -> None:
    begin, end = np.array([0, 100], dtype=np.int64) * MS, np.array([90, 130], dtype=np.int64) * MS
    ended = np.array([40], dtype=np.int64) * MS
    served = Participation(
        step=np.array([0], dtype=np.int32),
        request=np.array([0], dtype=np.int32),
        tokens=np.array([1], dtype=np.int32),
        recomputed=np.array([0], dtype=np.int32),
        role=np.array([1], dtype=np.uint8),
        mapping=np.array([2], dtype=np.uint8),
        confidence=np.ones(1),
    )
    plain = service([Work(), Work()])
    made = capture(
        steps_table([Work(), Work()], begin, end),
        plain.work,
        plain.ranks,
        requests=requests_table(1, client_end=ended),
        participation=served,
    )
    assert over(made).tolist() == [40 * MS, 130 * MS]
