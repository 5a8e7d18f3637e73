"""Shares of requests side by side, against what counting all ways says."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.tell.compare_intervals import exact, shares


def some_of(hits: int, whole: int) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    return np.arange(whole) < hits


def test_what_happened_in_one_alone_is_sure_where_chance_does_not_part_it_so() -> None:
    (difference,) = shares("preempted", "request", some_of(0, 42), some_of(4, 26))
    assert (difference.before, difference.ratio, difference.sure) == (0.0, None, True)
    (difference,) = shares("preempted", "request", some_of(1, 20), some_of(2, 20))
    assert (difference.before, difference.after, difference.ratio, difference.sure) == (5.0, 10.0, 2.0, False)


def test_a_share_of_nothing_is_no_difference() -> None:
    assert not list(shares("failed", "request", some_of(0, 9), some_of(0, 9)))
    assert not list(shares("failed", "request", some_of(0, 0), some_of(3, 9)))
    (few,) = shares("failed", "request", some_of(0, 4), some_of(4, 4))
    assert not few.sure


@given(some.integers(1, 6), some.integers(1, 6), some.data())
def test_the_exact_test_counts_every_way(of_a: int, of_b: int, data: some.DataObject) -> None:
    a, b = data.draw(some.integers(0, of_a)), data.draw(some.integers(0, of_b))
    first = [sum(1 for at in way if at < of_a) for way in combinations(range(of_a + of_b), a + b)]
    ways = {k: first.count(k) for k in set(first)}
    counted = sum(n for n in ways.values() if n <= ways[a]) / len(first)
    assert exact(a, of_a, b, of_b) == pytest.approx(counted, rel=1e-9)


def test_the_exact_test_of_a_hundred_thousand_requests_agrees_with_the_normal_one_and_takes_no_time() -> None:
    whole, a, b = 100_000, 50_000, 50_300
    share = (a + b) / whole / 2
    deviation = (b - a - 1) / whole / math.sqrt(2 * share * (1 - share) / whole)  # Yates: steps have a width
    assert exact(a, whole, b, whole) == pytest.approx(math.erfc(deviation / math.sqrt(2)), rel=1e-3)
