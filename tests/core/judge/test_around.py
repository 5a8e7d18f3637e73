"""The steps around a step tell whether its engine was slow."""

from dataclasses import replace

import numpy as np

from teller_core.data.table import UNKNOWN
from teller_core.judge.around import AROUND_NS, IDLE_NS, SLOW, UNUSUAL, slowdown, unusual
from teller_core.judge.prepare import prepare
from tests.core.judge.serving import MS, ZERO, Ask, Trouble, serve

CROWD = [Ask(at * 60) for at in range(100)]


def test_all_steps_near_a_trouble_are_slow_and_those_far_from_it_are_not() -> None:
    capture, numbers = serve(CROWD, [Trouble("mystery", 2000, 3000, 60, 3)])
    ratio = np.exp(slowdown(prepare(capture, numbers)))
    begin = capture.steps.launched
    far = (begin < ZERO + 2000 * MS - AROUND_NS) | (begin > ZERO + 3000 * MS + 2 * AROUND_NS)
    assert far.sum() > 100
    assert np.allclose(ratio[far], 1.0)
    assert (ratio[(begin > ZERO + 2400 * MS) & (begin < ZERO + 2600 * MS)] >= SLOW).all()


def test_it_is_the_quotient_of_what_they_took_and_what_they_should_have_taken() -> None:
    capture, numbers = serve(CROWD, [Trouble("mystery", 700, 1300, 9, 2)])
    case = prepare(capture, numbers)
    found, begin = slowdown(case), capture.steps.launched
    for at in range(0, len(begin), 17):
        near = np.abs(begin - begin[at]) <= AROUND_NS
        taken, asked = numbers.steps.took[near].sum(), numbers.steps.expected[near].sum()
        assert found[at] == np.log(taken / asked)


def test_of_a_step_without_expectation_nothing_is_said() -> None:
    capture, numbers = serve(CROWD)
    expected = numbers.steps.expected.copy()
    expected[5] = UNKNOWN
    found = slowdown(prepare(capture, replace(numbers, steps=replace(numbers.steps, expected=expected))))
    assert np.flatnonzero(np.isnan(found)).tolist() == [5]


def test_steps_behind_an_idle_time_are_not_slow_for_what_was_before_it() -> None:
    asks = [*(Ask(at * 60, output=20) for at in range(20)), *(Ask(2100 + at * 60, output=20) for at in range(100))]
    capture, numbers = serve(asks, [Trouble("mystery", 0, 1900, 9)])
    case = prepare(capture, numbers)
    begin, level = capture.steps.launched, unusual(case)
    late = begin > ZERO + 2000 * MS
    assert begin[late].min() - capture.steps.finished[~late].max() > IDLE_NS
    assert (level[~late] >= np.log(UNUSUAL)).all()
    assert (level[late] < np.log(UNUSUAL)).all()
    assert (slowdown(case)[late] >= np.log(UNUSUAL)).any()


def test_what_all_steps_take_is_calm_whatever_was_expected() -> None:
    capture, numbers = serve(CROWD)
    half = replace(numbers.steps, expected=numbers.steps.expected // 2)
    level = unusual(prepare(capture, replace(numbers, steps=half)))
    assert np.median(np.abs(level)) < 0.05
    assert (level < np.log(UNUSUAL)).all()


def test_of_unknown_steps_nothing_is_said_beside_others_either() -> None:
    capture, numbers = serve(CROWD)
    expected = numbers.steps.expected.copy()
    expected[5] = UNKNOWN
    found = unusual(prepare(capture, replace(numbers, steps=replace(numbers.steps, expected=expected))))
    assert np.flatnonzero(np.isnan(found)).tolist() == [5]
