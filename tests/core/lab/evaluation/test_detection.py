"""Figures of steps: beside scikit-learn's, with weights, ties and priors of any kind."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.evaluation.detection import (
    area_at,
    at_prior,
    average_precision,
    curve,
    curve_of_flags,
    detected_at,
    ranked,
    recall_within,
    thinned,
)

sklearn_metrics = pytest.importorskip("sklearn.metrics", reason="needs the lab extra")

rows = st.lists(
    st.tuples(st.booleans(), st.integers(0, 6), st.booleans(), st.floats(0.1, 4)), min_size=2, max_size=60
).filter(lambda found: len({label for label, *_ in found}) == 2)
Rows = list[tuple[bool, int, bool, float]]


def columns(given_rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    label, score, flag, weight = zip(*given_rows, strict=True)
    return np.array(label), np.array(score, float), np.array(flag), np.array(weight)


@given(rows, st.sampled_from([0.43, 0.1, 0.001]))
def test_precision_recall_and_f1_at_a_prior_are_those_of_scikit_learn(drawn: Rows, prior: float) -> None:
    label, _, flag, weight = columns(drawn)
    found = detected_at(curve_of_flags(label, flag, weight), prior)
    expected = sklearn_metrics.precision_recall_fscore_support(
        label, flag, average="binary", sample_weight=at_prior(label, weight, prior), zero_division=np.nan
    )[:3]
    assert found.precision == pytest.approx(expected[0], nan_ok=True)
    assert found.recall == pytest.approx(expected[1])
    assert found.f1 == pytest.approx(np.nan_to_num(expected[2]))


@given(rows)
def test_the_area_under_precision_and_recall_is_that_of_scikit_learn(drawn: Rows) -> None:
    label, score, _, weight = columns(drawn)
    expected = sklearn_metrics.average_precision_score(label, score, sample_weight=weight)
    assert average_precision(ranked(label, score), weight) == pytest.approx(expected)


@given(rows, st.floats(0, 1))
def test_recall_at_a_false_positive_rate_is_read_off_the_curve_of_scikit_learn(drawn: Rows, rate: float) -> None:
    label, score, _, weight = columns(drawn)
    rates, recalls, _ = sklearn_metrics.roc_curve(label, score, sample_weight=weight, drop_intermediate=False)
    if np.any(np.isclose(rates, rate, rtol=1e-9, atol=0) & (rates != 0)):
        return  # to the last bit, either side of the limit may be right
    assert recall_within(curve(ranked(label, score), weight), rate) == pytest.approx(recalls[rates <= rate].max())


@given(rows, st.sampled_from([0.43, 0.1, 0.01, 0.001]))
def test_a_prior_is_what_repeating_the_healthy_steps_would_make_it(drawn: Rows, prior: float) -> None:
    label, score, _, _ = columns(drawn)
    weight = at_prior(label, np.ones(len(label)), prior)
    assert weight[label].sum() / weight.sum() == pytest.approx(prior)
    times = (1 - prior) / prior * label.sum() / (~label).sum()
    repeated = np.where(label, 1.0, times)
    order = ranked(label, score)
    assert average_precision(order, weight) == pytest.approx(average_precision(order, repeated))


@given(rows, st.sampled_from([0.43, 0.1, 0.001]))
def test_an_area_read_off_a_curve_is_that_of_weighed_steps(drawn: Rows, prior: float) -> None:
    label, score, _, weight = columns(drawn)
    weighed = at_prior(label, weight, prior)
    order = ranked(label, score)
    assert area_at(curve(order, weight), prior) == pytest.approx(average_precision(order, weighed))


@given(rows)
def test_a_thinned_score_keeps_the_order(drawn: Rows) -> None:
    label, score, _, weight = columns(drawn)
    order = ranked(label, score)
    few = thinned(order)
    assert len(few) == len(score)
    for a, b in zip(np.argsort(score)[:-1], np.argsort(score)[1:], strict=True):
        assert few[a] <= few[b] and (score[a] != score[b] or few[a] == few[b])
    again = ranked(label, few.astype(float))
    assert average_precision(again, weight) == pytest.approx(
        average_precision(order, weight)
    )  # below LEVELS none is lost


def test_a_long_score_is_thinned_to_few_values_that_say_about_the_same() -> None:
    chance = np.random.default_rng(2)
    label = chance.random(60_000) < 0.02
    score = chance.normal(0, 1, len(label)) + 2.5 * label
    order = ranked(label, score)
    few = thinned(order)
    again, weight = ranked(label, few.astype(float)), np.ones(len(label))
    assert len(np.unique(few)) < 600
    for prior in (0.43, 0.01, 0.001):
        exact = area_at(curve(order, weight), prior)
        assert area_at(curve(again, weight), prior) == pytest.approx(exact, abs=0.01)


def test_a_step_of_which_a_method_cannot_tell_comes_last() -> None:
    label = np.array([True, False, True])
    order = ranked(label, np.array([np.nan, 0.0, 5.0]))
    assert average_precision(order, np.ones(3)) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)
    assert recall_within(curve(order, np.ones(3)), 0.0) == 0.5


@pytest.mark.parametrize("label", [[True, True], [False, False]])
def test_without_steps_of_both_kinds_nothing_is_said(label: list[bool]) -> None:
    weight = at_prior(np.array(label), np.ones(2), 0.1)
    assert np.isnan(weight).all()
    assert np.isnan(recall_within(curve(ranked(np.array(label), np.zeros(2)), np.ones(2)), 0.5))
    assert np.isnan(average_precision(ranked(np.array([], dtype=bool), np.array([])), np.array([])))
