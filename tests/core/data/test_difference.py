"""How two groups differ, against counting all pairs and against SciPy; and how often an interval holds what is true."""

from math import erf

import numpy as np
import pytest

from teller_core.data.difference import more_or_less, so_or_not

stats = pytest.importorskip("scipy.stats")
GROUPS = [(seed, *np.random.default_rng(seed).integers(2, 40, 2).tolist()) for seed in range(40)]


@pytest.mark.parametrize(("seed", "m", "n"), GROUPS)
def test_the_effect_is_what_counting_all_pairs_gives_and_its_chance_that_of_the_rank_sum_test(
    seed: int, m: int, n: int
) -> None:
    random = np.random.default_rng(seed)
    first, second = (
        random.integers(0, 9, m).astype(np.float64) + int(random.integers(0, 4)),
        random.integers(0, 9, n).astype(np.float64),
    )
    found = more_or_less(np.append(first, np.nan), second)
    assert found is not None
    assert found.effect == pytest.approx(np.sign(first[:, None] - second[None]).mean())
    assert -1 <= found.low <= found.effect <= found.high <= 1
    same = len(set(first) | set(second)) == 1
    told = 1.0 if same else stats.mannwhitneyu(first, second, method="asymptotic").pvalue
    assert found.chance == pytest.approx(told, abs=1e-9)


@pytest.mark.parametrize(("seed", "m", "n"), GROUPS)
def test_of_what_is_or_is_not_so_the_effect_is_the_difference_of_shares_and_the_chance_is_fishers(
    seed: int, m: int, n: int
) -> None:
    random = np.random.default_rng(seed)
    a, b = int(random.integers(0, m + 1)), int(random.integers(0, n + 1))
    found = so_or_not(a, m, b, n)
    assert found is not None
    assert found.effect == pytest.approx(a / m - b / n)
    assert found.low <= found.effect <= found.high
    assert found.chance == pytest.approx(stats.fisher_exact([[a, m - a], [b, n - b]]).pvalue, abs=1e-9)


@pytest.mark.parametrize("apart", [0.0, 0.8, 1.2])
def test_an_interval_holds_the_true_effect_about_as_often_as_it_says(apart: float) -> None:
    random, true = np.random.default_rng(7), erf(apart / 2)
    found = [more_or_less(random.normal(apart, 1, 12), random.normal(0, 1, 36)) for _ in range(1000)]
    held = [one.low <= true <= one.high for one in found if one is not None]
    assert 0.92 < np.mean(held) < 0.98


def test_an_effect_of_all_against_all_has_an_interval_that_few_of_them_leave_wide() -> None:
    few = more_or_less(np.arange(10.0, 14), np.arange(8.0))
    many = more_or_less(np.arange(100.0, 140), np.arange(80.0))
    less = more_or_less(np.arange(8.0), np.arange(10.0, 14))
    assert few is not None
    assert many is not None
    assert less is not None
    assert (few.effect, few.high) == (many.effect, many.high) == (1.0, 1.0)
    assert few.low < 0.1
    assert many.low > 0.8
    assert (less.effect, less.low, less.high) == (-1.0, -1.0, -few.low)


def test_of_fewer_than_two_nothing_is_said() -> None:
    assert more_or_less(np.array([1.0, np.nan]), np.arange(9.0)) is None
    assert so_or_not(1, 1, 3, 9) is None
