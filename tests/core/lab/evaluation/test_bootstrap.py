"""Intervals by life: as wide as lives differ, however many rows each has."""

import numpy as np
import pytest

from teller_core.lab.evaluation.bootstrap import Interval, Sums, by_life, ratio, summed, tallied


def mean_of(value: np.ndarray, life: np.ndarray, *, draws: int = 400, seed: int = 0) -> Interval:
    (found,) = by_life(ratio(life, value, np.ones(len(value))), draws=draws, seed=seed)
    return found


def test_the_interval_is_that_of_the_means_of_lives() -> None:
    chance = np.random.default_rng(1)
    effect = chance.normal(0, 1, 25)
    life = np.repeat(np.arange(25), 40).astype(np.int32)
    value = effect[life] + chance.normal(0, 0.01, len(life))
    found = mean_of(value, life, draws=2000)
    half = 1.96 * effect.std(ddof=0) / np.sqrt(25)
    assert abs(found.value - effect.mean()) < 0.01
    assert abs((found.high - found.low) / 2 - half) < 0.15 * half


def test_drawing_lives_is_drawing_their_rows() -> None:
    chance = np.random.default_rng(2)
    life = chance.integers(0, 6, 80).astype(np.int32)
    value = chance.random(80)
    found = mean_of(value, life, draws=50, seed=7)
    again = np.random.default_rng(7).integers(0, 6, (50, 6))
    means = [np.concatenate([value[life == each] for each in drawn]).mean() for drawn in again]
    assert found[:3] == pytest.approx((value.mean(), *np.percentile(means, (2.5, 97.5))))
    assert found.drawn == pytest.approx(means)


def test_repeating_the_rows_of_lives_makes_nothing_surer() -> None:
    value, life = np.array([0.0, 1.0, 1.0, 0.0, 1.0]), np.arange(5, dtype=np.int32)
    assert mean_of(np.repeat(value, 50), np.repeat(life, 50))[:3] == pytest.approx(mean_of(value, life)[:3])


def test_two_lives_give_no_interval_and_the_same_seed_the_same_one() -> None:
    value, life = np.array([0.0, 1.0]), np.array([0, 1], dtype=np.int32)
    assert np.isnan(mean_of(value, life).low)
    many, lives = np.arange(9.0), np.arange(9, dtype=np.int32)
    assert mean_of(many, lives, seed=3) == mean_of(many, lives, seed=3)


def test_draws_in_which_nothing_can_be_said_are_left_out() -> None:
    life = np.arange(6, dtype=np.int32)
    of_first = Sums(summed(life, life == 0), lambda drawn: np.where(drawn > 0, 1.0, np.nan))
    (found,) = by_life(of_first)
    assert found[:3] == (1.0, 1.0, 1.0) and len(found.drawn) == 400 and np.isnan(found.drawn).any()


def test_cells_are_counted_by_life() -> None:
    life, cell = np.array([7, 9, 7, 7], np.int32), np.array([0, 2, 1, 0])
    assert tallied(life, cell, 3).tolist() == [[2, 1, 0], [0, 0, 1]]
    assert tallied(life, cell, 3, np.array([0.5, 1, 2, 4])).tolist() == [[4.5, 2, 0], [0, 0, 1]]
