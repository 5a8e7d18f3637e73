"""Inference on counts that no engine would leave: it ends soon, claims nothing that it cannot, and says what it gave up."""

from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.rebuild.infer import MOST_REQUESTS, MOST_WORK, MOST_WORK_A_STEP, WORK_A_STEP, infer
from teller_core.rebuild.infer_moves import Count, Want

NUMBERS = st.one_of(st.integers(0, 6), st.sampled_from([308, MOST_REQUESTS, MOST_REQUESTS + 1, 1_700_000_000]))


def counted(context: int, generation: int, step: int = 0) -> Count:
    return Count(context, 10 * context, generation, generation, step, step)


def test_a_step_of_hundreds_that_nothing_names_is_followed() -> None:
    counts = [counted(0, 308), counted(1, 308, 1), counted(0, 309, 2)]
    inferred = infer(counts, [Want(1, True, prompt=10, output=5)])
    assert inferred.given_up == 0
    assert [(claim.step, claim.request) for claim in inferred.claims] == [(1, 0), (2, 0)]


def test_a_line_that_counts_more_than_any_engine_runs_is_a_lost_one() -> None:
    counts = [counted(1, 0), counted(0, 1_700_000_000, 1), counted(0, 1, 2)]
    inferred = infer(counts, [Want(0, True, prompt=10, output=9)])
    assert inferred.given_up == 1
    assert [claim.step for claim in inferred.claims] == [0, 2]


def test_steps_of_too_many_ways_are_given_up_and_nothing_is_claimed_from_there() -> None:
    counts = [counted(2000, 0)] + [counted(3, 1990 - 7 * step, step) for step in range(1, 100)]
    inferred = infer(counts, [Want(0, False)] * 3000)
    assert inferred.given_up > 0
    assert all(claim.step < len(counts) - inferred.given_up for claim in inferred.claims)


def test_nothing_is_claimed_where_no_work_is_left() -> None:
    counts = [counted(1, 0), *(counted(0, 60, step) for step in range(1, 50))]
    assert infer(counts, [Want(0, True)], most=0).given_up > 0


@settings(max_examples=40, deadline=None)
@given(
    counts=st.lists(st.one_of(st.none(), st.tuples(NUMBERS, NUMBERS)), min_size=1, max_size=8),
    requests=st.integers(0, 40),
    sure=st.booleans(),
)
def test_any_counts_are_weighed_within_bounds(counts: list[tuple[int, int] | None], requests: int, sure: bool) -> None:
    steps = [None if pair is None else counted(*pair, step=step) for step, pair in enumerate(counts)]
    inferred = infer(steps, [Want(0, sure)] * requests)
    assert all(0.5 <= claim.confidence <= 1.0 and steps[claim.step] is not None for claim in inferred.claims)
    assert inferred.work <= MOST_WORK + WORK_A_STEP * len(steps) + MOST_WORK_A_STEP
