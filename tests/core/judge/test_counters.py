"""Growth of counters between any two moments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.judge.prepare import Counter

BASE = 1_796_000_000_000_000_000
intervals = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 900), st.integers(0, 10**9)), min_size=1, max_size=12)


def made(drawn: list[tuple[int, int, int]]) -> Counter:
    """A counter that was read in intervals of the given gaps, lengths (ms) and growths."""
    at, start, stop = BASE, list[int](), list[int]()
    for gap, length, _ in drawn:
        start.append(at + gap * 1_000_000)
        at = start[-1] + length * 1_000_000
        stop.append(at)
    delta = np.array([grown for *_, grown in drawn], np.int64)
    return Counter(np.array(start), np.array(stop), delta, np.zeros(len(delta)), 0.0)


@given(intervals, st.lists(st.tuples(st.integers(-100, 9000), st.integers(0, 9000)), min_size=1, max_size=8))
def test_growth_is_even_within_an_interval(drawn: list[tuple[int, int, int]], asked: list[tuple[int, int]]) -> None:
    one = made(drawn)
    low = np.array([BASE + begin * 1_000_000 for begin, _ in asked])
    high = low + np.array([length * 1_000_000 for _, length in asked])
    expected = [
        sum(
            int(grown) * max(0, min(int(b), int(end)) - max(int(a), int(begin))) / (int(end) - int(begin))
            for begin, end, grown in zip(one.start, one.stop, one.delta, strict=True)
        )
        for a, b in zip(low, high, strict=True)
    ]
    assert one.growth(low, high) == pytest.approx(expected, abs=1e-3)
    each = [one.grown(int(a), int(b)) for a, b in zip(low, high, strict=True)]
    assert each == pytest.approx(one.growth(low, high).tolist(), abs=1e-3)
