"""A simulation in which nothing is changed ends as what was recorded did."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from teller_core.judge.reschedule.background import background, ready
from teller_core.judge.reschedule.costs import features, took
from teller_core.judge.reschedule.scheduler import Limits
from teller_core.judge.reschedule.simulate import quiet, run
from tests.core.judge.reschedule.made import setting
from tests.core.judge.reschedule.served import BASE, CACHED, MS, OUTPUT, PROMPT, TURN, ZERO, Ask, Engine, crowd, served
from tests.core.judge.reschedule.test_batches import asks, engines


@given(asks, engines, st.integers(0, 9), st.integers(0, 2**16))
def test_from_any_decision_on_all_comes_as_it_was_recorded(
    wanted: list[Ask], engine: Engine, tenth: int, noise: int
) -> None:
    assume(all(ask.prompt + ask.output < 16 * (engine.blocks - 2) for ask in wanted))
    rng = np.random.default_rng(noise)
    happened = served(wanted, engine, lambda now: int(rng.exponential(2 * MS)))
    assume(len(happened.decided) >= 10)
    made = setting(happened)
    start = tenth * len(happened.decided) // 10
    left = [one for one in range(len(wanted)) if made.ran.last[one] >= start]
    found = run(made, background(made), start, left)
    assert found.ended == pytest.approx({one: happened.done[one] for one in left}, abs=1_000)
    assert [len(step.batch) for step in found.steps] == [len(rows) for rows in happened.rows[start:]]


def test_costs_are_learned_to_the_percent() -> None:
    happened = served(crowd(3, 80), Engine())
    made = setting(happened)
    truth = np.array([happened.work(step) for step in range(len(happened.decided))])
    assert np.array_equal(took(made.ran), truth)
    assert made.costs.predict(features(made.ran)) == pytest.approx(truth, rel=0.02)
    assert made.costs.cost[[0, 1, 3]] == pytest.approx([BASE, PROMPT, CACHED], rel=0.1)
    assert made.costs.cost[2] == pytest.approx(OUTPUT, rel=0.2)


def test_the_turnaround_is_what_the_engine_needs_between_steps_and_when_it_wakes() -> None:
    made = setting(served(crowd(5, 20, 80.0), Engine()))
    assert made.ran.decided - ready(made) == pytest.approx(TURN, abs=1)


def test_without_what_steps_met_a_simulation_takes_what_their_work_predicts() -> None:
    happened = served(crowd(4), Engine(), lambda now: 3 * MS if now % (50 * MS) < 10 * MS else 0)
    made = setting(happened)
    found = run(made, quiet(made, TURN), 0, [0])
    for step in found.steps:
        assert step.ended - step.decided == pytest.approx(made.costs.of(step.batch), abs=2)


def test_a_simulation_that_nobody_is_left_in_ends() -> None:
    made = setting(served(crowd(2, 10), Engine()))
    last = len(made.ran.step) - 1
    assert run(made, background(made), last, [999]).steps


def test_a_stall_strikes_once_where_steps_come_a_little_sooner() -> None:
    happened = served([Ask(0, 30, 60)], Engine(), lambda now: 80 * MS if 60 * MS <= now < 64 * MS else 0)
    made = setting(happened)
    (stalled,) = np.flatnonzero(took(made.ran) > 80 * MS).tolist()
    saved = np.zeros(len(made.ran.step), dtype=np.int64)
    saved[stalled - 3] = MS
    found = run(made, background(made, saved), 0, [0])
    assert sum(step.ended - step.decided > 40 * MS for step in found.steps) == 1
    assert happened.done[0] - found.ended[0] == pytest.approx(MS, abs=50_000)


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({"tokens": 512}, {"tokens": 48}),
        ({"tokens": 48}, {"tokens": 512}),
        ({"seats": 24}, {"seats": 4}),
        ({"seats": 4}, {"seats": 24}),
    ],
    ids=["smaller steps", "larger steps", "fewer seats", "more seats"],
)
def test_an_engine_with_other_limits_does_what_a_simulation_with_these_says(
    here: dict[str, Any], there: dict[str, Any]
) -> None:
    """Learned from what one engine did, it is said what another one does to the same requests."""
    wanted = crowd(6, 60)
    was, other = served(wanted, Engine(**here)), served(wanted, Engine(**there))
    made = setting(was)
    names = {"tokens": "tokens", "seats": "requests"}
    limits: Limits = replace(made.limits, **{names[name]: most for name, most in there.items()})
    each = range(len(wanted))
    found = run(replace(made, limits=limits), quiet(made, TURN), 0, each)
    truth, said = (np.array([one[at] - was.done[at] for at in each]) for one in (other.done, found.ended))
    felt = np.abs(truth) >= 0.1 * np.array([was.done[at] - ZERO - wanted[at].at for at in each])
    assert felt.sum() >= 20
    assert np.median(np.abs(said[felt] / truth[felt] - 1)) <= 0.15
