"""Ranked names: places, their accuracy, and macro F1 beside scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.evaluation.ranking import NONE, first_names, hits, macro_f1_of, numbered, place, reciprocals

names = st.sampled_from("abcd")
pairs = st.lists(st.tuples(names, names, st.floats(0.1, 3)), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("named", "right", "expected"), [("abc", "b", 2), ("abc", "cb", 2), ("abc", "d", 0), ("", "a", 0), ("aab", "b", 3)]
)
def test_the_place_is_that_of_the_first_right_name(named: str, right: str, expected: int) -> None:
    assert place(list(named), list(right)) == expected


@given(st.lists(st.integers(0, 7), min_size=1, max_size=30))
def test_accuracies_follow_from_places(drawn: list[int]) -> None:
    places = np.array(drawn, np.int32)
    for k in range(1, 6):
        assert hits(places, k).tolist() == [1 <= each <= k for each in drawn]
    assert reciprocals(places).tolist() == [1 / each if each else 0 for each in drawn]


def macro_f1(true: list[str], said: list[str], weight: np.ndarray) -> float:
    number = numbered(true, said)
    both = np.where(number.true == number.said, number.true, -1)
    sums = [np.bincount(at + 1, weight, number.names + 1)[1:] for at in (number.true, number.said, both)]
    return float(macro_f1_of(np.concatenate(sums).astype(np.float64)))


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
    assert np.isnan(macro_f1([], [], np.empty(0)))
