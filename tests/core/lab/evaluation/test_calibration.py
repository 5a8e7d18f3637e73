"""Certainty: Brier beside scikit-learn's, the others beside a plain computation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.evaluation.calibration import (
    Certain,
    area,
    brier,
    coverage_at,
    expected_error,
    precision_at,
    risk_coverage,
)

answers = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.35, 0.5, 0.72, 1.0]), st.booleans(), st.floats(0.1, 3)),
    min_size=1,
    max_size=40,
)
Drawn = list[tuple[float, bool, float]]


def columns(drawn: Drawn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    sure, right, weight = zip(*drawn, strict=True)
    return np.array(sure), np.array(right), np.array(weight)


def certain(sure: np.ndarray, right: np.ndarray, weight: np.ndarray) -> Certain:
    """One row an answer -> one group for each ``sure`` that is there; one without weight where none is."""
    if not len(sure):
        return Certain(*np.zeros((3, 1)))
    level, of = np.unique(-sure, return_inverse=True)
    many, rights = (np.bincount(of, each).astype(np.float64) for each in (weight, weight * right))
    return Certain(-level, many, rights)


@given(answers)
def test_brier_is_that_of_scikit_learn(drawn: Drawn) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the lab extra")
    sure, right, weight = columns(drawn)
    expected = metrics.brier_score_loss(right, sure, sample_weight=weight, pos_label=True, labels=[False, True])
    assert brier(certain(sure, right, weight)) == pytest.approx(expected)


@given(answers)
def test_the_expected_error_is_the_mean_gap_of_ten_parts(drawn: Drawn) -> None:
    sure, right, weight = columns(drawn)
    total = 0.0
    for part in range(10):
        mine = (sure >= part / 10) & ((sure < (part + 1) / 10) | (part == 9))
        if mine.any():
            share = weight[mine].sum()
            total += share * abs(
                np.average(sure[mine], weights=weight[mine]) - np.average(right[mine], weights=weight[mine])
            )
    assert expected_error(certain(sure, right, weight)) == pytest.approx(total / weight.sum())


@given(answers)
def test_risk_at_full_coverage_is_the_share_of_wrong_answers(drawn: Drawn) -> None:
    sure, right, weight = columns(drawn)
    curve = risk_coverage(certain(sure, right, weight))
    assert curve.coverage[-1] == pytest.approx(1.0)
    assert curve.risk[-1] == pytest.approx(weight[~right].sum() / weight.sum())
    assert np.all(np.diff(curve.coverage) > 0)
    for at in np.unique(sure):
        kept = sure >= at
        assert np.any(np.isclose(curve.risk, weight[kept & ~right].sum() / weight[kept].sum()))


def test_the_surest_answers_are_given_first() -> None:
    sure, right = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, True, False, False])
    curve = risk_coverage(certain(sure, right, np.ones(4)))
    assert curve.risk.tolist() == pytest.approx([0, 0, 1 / 3, 0.5])
    assert coverage_at(curve, 0.0) == 0.5 and coverage_at(curve, 0.4) == 0.75
    assert area(curve) == pytest.approx((0 + 0 + 1 / 3 + 0.5) / 4)
    assert coverage_at(risk_coverage(certain(sure, ~right, np.ones(4))), 0.1) == 0.0


@pytest.mark.parametrize(("coverage", "right"), [(0.25, 1.0), (0.5, 1.0), (0.75, 2 / 3), (0.8, 0.5), (1.0, 0.5)])
def test_of_so_many_surest_answers_so_many_are_right(coverage: float, right: float) -> None:
    sure, good = np.array([0.9, 0.8, 0.3, 0.1]), np.array([True, True, False, False])
    assert precision_at(risk_coverage(certain(sure, good, np.ones(4))), coverage) == pytest.approx(right)


def test_without_answers_nothing_is_said() -> None:
    nothing = np.empty(0)
    curve = risk_coverage(certain(nothing, nothing.astype(bool), nothing))
    assert np.isnan(
        [area(curve), coverage_at(curve, 0.1), brier(certain(nothing, nothing.astype(bool), nothing))]
    ).all()
    assert np.isnan(expected_error(certain(nothing, nothing.astype(bool), nothing)))
