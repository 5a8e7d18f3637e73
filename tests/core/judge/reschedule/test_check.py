"""A simulation that does not reproduce what was recorded is not used, and says why."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.table import UNKNOWN
from teller_core.judge.reschedule.plan import FEW_STEPS, NOT_SERVED, plan, savings
from tests.core.judge.reschedule.served import MS, Ask, Engine, Served, capture, crowd, served


def noisy(engine: Engine, seed: int = 1, size: int = 60) -> Served:
    rng = np.random.default_rng(seed)
    return served(crowd(seed, size, 20.0), engine, lambda now: int(rng.exponential(MS)))


@pytest.mark.parametrize("engine", [Engine(), Engine(tokens=64), Engine(seats=4), Engine(blocks=40)])
def test_an_engine_that_is_understood_passes(engine: Engine) -> None:
    made = plan(capture(noisy(engine)))
    found = made.checks[0]
    assert found.why == "" == made.why[0]
    assert min(found.decisions, found.prompts, found.batches, found.first_tokens) >= 0.9
    assert abs(found.bias) <= 0.1


def test_an_engine_that_serves_the_last_first_is_not_understood() -> None:
    made = plan(capture(noisy(Engine(seats=2, last_first=True))))
    assert "the scheduler's rules reproduce" in made.why[0]
    nothing = np.zeros(len(made.settings[0].ran.step), dtype=np.int64)
    found = savings(made, 5, nothing, nothing)
    assert found.rescheduled is None and found.why_not_new == made.why[0]
    assert found.same_schedule is not None and (found.same_schedule.low, found.same_schedule.high) == (0, 0)


def test_without_arrivals_nothing_is_batched_anew() -> None:
    whole = capture(noisy(Engine()))
    bare = replace(whole, requests=replace(whole.requests, queued=np.full_like(whole.requests.queued, UNKNOWN)))
    made = plan(bare)
    assert made.settings == {} and "reached the engine" in made.why[0]
    nothing = np.zeros(len(whole.steps.engine), dtype=np.int64)
    assert savings(made, 0, nothing, nothing).why_not_same == made.why[0]


def test_few_steps_teach_no_costs() -> None:
    assert plan(capture(served(crowd(1, 1, output=3), Engine()))).why[0] == FEW_STEPS


def test_first_tokens_that_learned_costs_do_not_predict_are_not_claimed() -> None:
    # Most requests come while every step takes four times what it takes in the other half of the steps.
    wanted = [Ask(at * 200 * MS, 60, 6) for at in range(40)] + [Ask((9_000 + at * 600) * MS, 60, 60) for at in range(4)]
    made = plan(capture(served(wanted, Engine(), lambda now: 15 * MS if now < 8_500 * MS else 0)))
    assert made.checks[0].batches == 1.0
    assert abs(made.checks[0].bias) > 0.1 and "learned costs" in made.why[0]


def test_a_request_that_no_step_served_has_no_saving() -> None:
    whole = capture(noisy(Engine(), size=20))
    kept = whole.participation.request != 3
    part = replace(
        whole.participation,
        **{name: column[kept] for name, column in vars(whole.participation).items()},
    )
    made = plan(replace(whole, participation=part))
    nothing = np.zeros(len(whole.steps.engine), dtype=np.int64)
    assert savings(made, 3, nothing, nothing).why_not_new == NOT_SERVED


def test_savings_are_bounds_with_what_they_take_for_granted() -> None:
    happened = noisy(Engine())
    made = plan(capture(happened))
    count = len(happened.decided)
    least, most = np.full(count, MS, dtype=np.int64), np.full(count, 3 * MS, dtype=np.int64)
    for which in ("end", "first_token"):
        found = savings(made, 30, least, most, which)
        for one in (found.same_schedule, found.rescheduled):
            # Batched anew, a request may meet others that it did not meet: it may even end later.
            assert one is not None and one.low <= one.high > 0 and one.assumes
        assert found.same_schedule is not None and found.same_schedule.low > 0
