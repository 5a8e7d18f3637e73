"""From scores to how sure, and figures of how good: against what is known or counted slowly."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.model.calibrating import Calibration, heads_scaled, scaled, sigmoid, softmax, tempered, threshold
from teller_core.model.classes import FIRST, NONE, classes
from teller_core.model.measured import Scores, judged_by
from teller_core.model.scores import average_precision, calibration_error, f1, first_right, macro_f1
from tests.core.model.making import inputs_of, sheets_of

PAIRS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30)


def test_scaling_finds_how_scores_were_stretched() -> None:
    chance = np.random.default_rng(0)
    truth = chance.normal(0.0, 2.0, 20_000)
    right = chance.random(20_000) < sigmoid(truth)
    slope, shift = scaled(4.0 * truth + 2.0, right)
    assert slope == pytest.approx(0.25, rel=0.05) and shift == pytest.approx(-0.5, abs=0.06)


def test_scores_that_tell_all_apart_do_not_make_one_sure_without_bound() -> None:
    score = np.array([-1.0] * 10 + [1.0] * 10)
    slope, shift = scaled(score, score > 0)
    assert 0.85 < sigmoid(np.array([slope + shift]))[0] < 0.97


def test_a_head_with_few_sheets_is_scaled_as_all_are() -> None:
    chance = np.random.default_rng(1)
    score = chance.normal(size=500)
    right = chance.random(500) < sigmoid(3.0 * score)
    head = np.where(np.arange(500) < 30, 1, 0).astype(np.int32)
    slope, shift = heads_scaled(score, right, head)
    assert (slope[1], shift[1]) == (slope[2], shift[2]) == scaled(score, right)
    assert slope[0] != slope[1]


def test_the_temperature_is_that_by_which_scores_were_too_sure() -> None:
    chance = np.random.default_rng(2)
    score = chance.normal(0.0, 2.0, (5_000, 6))
    wanted = np.array([chance.choice(6, p=row) for row in softmax(score)])
    assert tempered(3.0 * score, wanted) == pytest.approx(3.0, rel=0.08)
    assert tempered(score[:0], wanted[:0]) == 1.0


def test_the_threshold_is_the_lowest_from_which_on_most_are_right() -> None:
    sure = np.linspace(0.01, 1.0, 100)
    right = np.arange(100) >= 14
    level = threshold(sure, right)
    assert right[sure >= level].mean() >= 0.95
    assert right[sure >= level - 0.015].mean() < 0.95
    assert threshold(sure, np.zeros(100, dtype=np.bool_)) == pytest.approx(np.quantile(sure, 0.1))
    assert threshold(sure[:0], right[:0]) == 0.5


def test_probabilities_sum_to_one_and_stay_finite() -> None:
    likely = Calibration(temperature=0.5).causes(np.array([[1e4, -1e4, 0.0], [-1e4, -1e4, -1e4]]))
    assert np.isfinite(likely).all() and likely.sum(axis=1) == pytest.approx([1.0, 1.0])


def test_a_cause_is_named_where_it_is_sure_enough_and_likelier_than_that_nothing_is_wrong() -> None:
    likely = np.array([[0.1, 0.3, 0.6, 0.0], [0.1, 0.5, 0.0, 0.4], [0.5, 0.05, 0.45, 0.0]])
    assert Calibration(threshold=0.42).named(likely).tolist() == [True, False, False]


def test_the_card_counts_as_named_what_the_model_names() -> None:
    inputs = inputs_of(*sheets_of(60, 1))
    calm, struck = inputs.wanted.cause == NONE, inputs.wanted.cause >= FIRST
    score = np.full((len(inputs), classes()), -np.inf)
    score[:, NONE], score[:, FIRST] = np.log(0.55), np.log(0.45)
    none = {name: np.zeros(len(inputs.parts[name])) for name in ("suspects", "pieces", "together", "facts")}
    scores = Scores(np.zeros(len(inputs)), score, loss={}, **none)
    figures = judged_by(scores, inputs, Calibration(threshold=0.4))
    assert calm.any() and struck.any() and figures["cause of a struck request: named"] == 0.0
    score[:, NONE], score[:, FIRST] = np.log(0.45), np.log(0.55)
    for least, named in ((0.4, 1.0), (0.6, 0.0)):
        figures = judged_by(scores, inputs, Calibration(threshold=least))
        assert figures["cause of a struck request: named"] == figures["healthy requests: given a cause"] == named


@given(PAIRS)
def test_average_precision_is_what_counting_gives(pairs: list[tuple[int, bool]]) -> None:
    score, right = np.array([p[0] for p in pairs], dtype=np.float64), np.array([p[1] for p in pairs])
    found = average_precision(score, right)
    if right.all() or not right.any():
        assert np.isnan(found)
        return
    total, before = 0.0, 0.0
    for level in sorted(set(score.tolist()), reverse=True):
        taken = score >= level
        recall = (taken & right).sum() / right.sum()
        total += (recall - before) * (taken & right).sum() / taken.sum()
        before = recall
    assert found == pytest.approx(total)


def test_macro_f1_counts_each_class_alike() -> None:
    right = np.array([1, 1, 1, 1, 2])
    assert macro_f1(right, right) == 1.0
    assert macro_f1(np.array([1, 1, 1, 1, 1]), right) == pytest.approx((8 / 9 + 0.0) / 2)
    assert np.isnan(f1(np.zeros(2, dtype=np.bool_), np.zeros(2, dtype=np.bool_)))


def test_the_calibration_error_is_none_of_who_is_as_right_as_sure() -> None:
    sure = np.repeat([0.25, 0.75], 600)
    right = np.concatenate([np.arange(600) % 4 == 0, np.arange(600) % 4 != 0])
    assert calibration_error(sure, right) < 0.02 and calibration_error(sure, ~right) == pytest.approx(0.5, abs=0.04)


def test_the_first_is_right_where_the_highest_item_is() -> None:
    owner = np.array([0, 0, 1, 1, 3])
    target = np.array([1, 0, 0, 1, 0], dtype=np.int8)
    assert first_right(np.array([2.0, 1.0, 5.0, 1.0, 9.0]), target, owner, 4) == 0.5
    assert np.isnan(first_right(np.array([1.0]), np.array([0], dtype=np.int8), np.array([0]), 1))
