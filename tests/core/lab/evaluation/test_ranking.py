"""Ranked names: places, their accuracy, and macro F1 beside scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.evaluation.ranking import (
    NONE,
    accuracy_at,
    average_at,
    first_names,
    macro_f1,
    place,
    reciprocal,
)

names = st.sampled_from("abcd")
pairs = st.lists(st.tuples(names, names, st.floats(0.1, 3)), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("named", "right", "expected"), [("abc", "b", 2), ("abc", "cb", 2), ("abc", "d", 0), ("", "a", 0), ("aab", "b", 3)]
)
def test_the_place_is_that_of_the_first_right_name(named: str, right: str, expected: int) -> None:
    assert place(list(named), list(right)) == expected


@given(st.lists(st.integers(0, 7), min_size=1, max_size=30))
def test_accuracies_follow_from_places(drawn: list[int]) -> None:
    places, weight = np.array(drawn, np.int32), np.ones(len(drawn))
    at = {k: sum(1 <= each <= k for each in drawn) / len(drawn) for k in range(1, 6)}
    assert [accuracy_at(places, weight, k) for k in at] == pytest.approx(list(at.values()))
    assert average_at(places, weight, 5) == pytest.approx(sum(at.values()) / 5)
    assert reciprocal(places, weight) == pytest.approx(sum(1 / each if each else 0 for each in drawn) / len(drawn))


@given(pairs)
def test_macro_f1_is_that_of_scikit_learn_over_the_true_names(drawn: list[tuple[str, str, float]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the lab extra")
    true, said, weight = (list(column) for column in zip(*drawn, strict=True))
    expected = metrics.f1_score(
        true, said, labels=sorted(set(true)), average="macro", sample_weight=weight, zero_division=0.0
    )
    assert macro_f1(true, said, np.array(weight)) == pytest.approx(expected)


def test_any_right_name_counts_as_the_first_of_them_and_an_empty_list_as_none() -> None:
    assert first_names([["b"], ["x"], []], [("a", "b"), ("a",), ("a",)]) == (["a", "a", "a"], ["a", "x", NONE])


def test_without_lists_nothing_is_said() -> None:
    nothing = np.empty(0)
    assert np.isnan(accuracy_at(nothing.astype(np.int32), nothing, 1)) and np.isnan(macro_f1([], [], nothing))
