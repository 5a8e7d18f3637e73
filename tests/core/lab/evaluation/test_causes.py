"""Causes of requests: top-k, confusion and macro F1 beside scikit-learn's; look-alikes as the taxonomy has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.lab.evaluation.causes import (
    NOBODY,
    balanced,
    confusion,
    look_alikes,
    macro_f1_of,
    named,
    struck,
    within,
)

SOME = ("", "host.gc_pause", "host.cpu_starvation", "host.io_stall")
requests = st.lists(
    st.tuples(st.sampled_from(SOME), st.lists(st.sampled_from(SOME[1:]), max_size=4, unique=True), st.floats(0.1, 3)),
    min_size=1,
    max_size=40,
)
Drawn = list[tuple[str, list[str], float]]


def columns(drawn: Drawn) -> tuple[list[str], list[list[str]], np.ndarray]:
    truth, claims, weight = zip(*drawn, strict=True)
    return list(truth), list(claims), np.array(weight)


@given(requests)
def test_macro_f1_and_balance_are_those_of_scikit_learn(drawn: Drawn) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the lab extra")
    truth, claims, weight = columns(drawn)
    given_names = named(truth, claims)
    first = [mine[0] if mine else "" for mine in claims]
    hit = sorted(set(truth) - {""})
    if hit:
        expected = metrics.f1_score(truth, first, labels=hit, average="macro", sample_weight=weight, zero_division=0.0)
        assert macro_f1_of(confusion(given_names, weight)) == pytest.approx(expected)
    recalls = metrics.recall_score(
        truth, first, labels=sorted(set(truth)), average="macro", sample_weight=weight, zero_division=0.0
    )
    assert balanced(given_names, weight) == pytest.approx(recalls)
    if len(given_names.classes) > 1:  # of one class scikit-learn warns that it sees no other
        expected_table = metrics.confusion_matrix(truth, first, labels=list(given_names.classes), sample_weight=weight)
        assert confusion(given_names, weight) == pytest.approx(expected_table)


@given(requests, st.integers(1, 3))
def test_top_k_counts_struck_requests_alone(drawn: Drawn, k: int) -> None:
    truth, claims, _ = columns(drawn)
    found = named(truth, claims)
    expected = [cause in said[:k] for cause, said in zip(truth, claims, strict=True) if cause]
    assert within(found, k)[struck(found)].tolist() == expected


def test_a_cause_that_is_claimed_twice_takes_one_place() -> None:
    given_names = named(["host.io_stall"], [["host.gc_pause", "host.gc_pause", "host.io_stall"]])
    assert given_names.said[0].tolist() == [1, 2, NOBODY]
    assert within(given_names, 2).tolist() == [True]


def test_a_cause_is_told_beside_its_look_alikes() -> None:
    # The taxonomy has queue saturation as a look-alike of a slow front end, and no slow disk.
    cause = "frontend.input_processing"
    claims = [[cause], ["scheduler.queue_saturation"], ["host.io_stall"], []]
    (line,) = look_alikes(named([cause] * 4, claims), np.ones(4))
    assert (line.recall, line.look_alike, line.other, line.none, line.precision) == (0.25, 0.25, 0.25, 0.25, 1.0)
    assert [name for name, _ in line.taken_for] == ["host.io_stall", "scheduler.queue_saturation"]
