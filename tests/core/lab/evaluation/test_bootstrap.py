"""Intervals by life: as wide as lives differ, however many rows each has."""

import numpy as np

from teller_core.lab.evaluation.bootstrap import by_life


def mean_of(value: np.ndarray):
    return lambda weight: float((value * weight).sum() / weight.sum()) if weight.sum() else float("nan")


def test_the_interval_is_that_of_the_means_of_lives() -> None:
    chance = np.random.default_rng(1)
    effect = chance.normal(0, 1, 25)
    life = np.repeat(np.arange(25), 40).astype(np.int32)
    value = effect[life] + chance.normal(0, 0.01, len(life))
    found = by_life(mean_of(value), life, draws=2000)
    half = 1.96 * effect.std(ddof=0) / np.sqrt(25)
    assert abs(found.value - effect.mean()) < 0.01
    assert abs((found.high - found.low) / 2 - half) < 0.15 * half


def test_repeating_the_rows_of_lives_makes_nothing_surer() -> None:
    value, life = np.array([0.0, 1.0, 1.0, 0.0, 1.0]), np.arange(5, dtype=np.int32)
    once = by_life(mean_of(value), life)
    again = by_life(mean_of(np.repeat(value, 50)), np.repeat(life, 50))
    assert np.allclose(once, again)


def test_two_lives_give_no_interval_and_the_same_seed_the_same_one() -> None:
    value, life = np.array([0.0, 1.0]), np.array([0, 1], dtype=np.int32)
    assert np.isnan(by_life(mean_of(value), life).low)
    many, lives = np.arange(9.0), np.arange(9, dtype=np.int32)
    assert by_life(mean_of(many), lives, seed=3) == by_life(mean_of(many), lives, seed=3)


def test_draws_in_which_nothing_can_be_said_are_left_out() -> None:
    life = np.arange(6, dtype=np.int32)
    found = by_life(lambda weight: 1.0 if weight[0] else float("nan"), life)
    assert (found.low, found.high) == (1.0, 1.0)


def test_a_row_that_counts_for_several_is_as_good_as_they_are() -> None:
    value, life = np.array([0.0, 1.0, 1.0, 0.3, 1.0]), np.arange(5, dtype=np.int32)
    count = np.array([3.0, 1.0, 2.0, 5.0, 1.0])
    times = count.astype(int)
    whole = by_life(mean_of(np.repeat(value, times)), np.repeat(life, times))
    assert np.allclose(by_life(mean_of(value), life, count), whole)
