"""A service that stays slower after a window is told from one that varies, or has other work."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.slowdown import COMPARED, slowed
from teller_core.data.table import Int64

MS = 1_000_000


def _steps(rng: np.random.Generator, count: int, ms: float, spread: float, begin: int) -> Int64:
    """Starts of steps of about ``ms``, each within ``spread`` of it."""
    took = ms * MS * (1 + spread * rng.uniform(-1, 1, count))
    return begin + np.concatenate([[0], np.cumsum(took.astype(np.int64))])[:-1]


def _run(seed: int, before: float, after: float, spread: float) -> tuple[Int64, tuple[int, int]]:
    """Starts with a window between steps of ``before`` and of ``after`` ms."""
    rng = np.random.default_rng(seed)
    first = _steps(rng, 80, before, spread, 0)
    inside = _steps(rng, 10, 3 * before, spread, int(first[-1]) + int(before * MS))
    last = _steps(rng, 80, after, spread, int(inside[-1]) + int(3 * before * MS))
    return np.concatenate([first, inside, last]), (int(inside[0]), int(last[0]))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.5, 40), st.floats(0, 0.3))
def test_steps_that_only_vary_are_no_slowdown(seed: int, ms: float, spread: float) -> None:
    starts, window = _run(seed, ms, ms, spread)
    assert slowed(starts, np.full(len(starts), 4), [window]) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31), st.floats(0.5, 40), st.floats(0, 0.2))
def test_steps_that_take_a_third_longer_are_one(seed: int, ms: float, spread: float) -> None:
    starts, window = _run(seed, ms, 1.35 * ms, spread)
    (found,) = slowed(starts, np.full(len(starts), 4), [window])
    assert (found.start, found.stop) == window
    assert abs(found.share - 0.35) < 4 * found.spread + 0.02 + spread / 3
    assert found.steps == COMPARED


def test_steps_with_more_tokens_are_not_compared_with_those_with_fewer() -> None:
    starts, window = _run(1, 10, 20, 0.05)
    tokens = np.where(starts < window[0], 4, 8)
    assert slowed(starts, tokens, [window]) == []


@pytest.mark.parametrize("seen", [0, 1, 15])
def test_of_too_few_steps_nothing_is_said(seen: int) -> None:
    starts, window = _run(1, 10, 20, 0.05)
    few = starts[80 - seen : 90 + seen]
    assert slowed(few, np.full(len(few), 4), [window]) == []


def test_pieces_of_one_window_are_compared_as_one() -> None:
    starts, (begin, end) = _run(3, 10, 14, 0.05)
    middle = (begin + end) // 2
    (found,) = slowed(starts, np.full(len(starts), 4), [(middle + 5, end), (begin, middle)])
    assert (found.start, found.stop) == (begin, end)


def test_without_windows_or_steps_nothing_is_said() -> None:
    starts, window = _run(3, 10, 14, 0.05)
    assert slowed(starts, np.full(len(starts), 4), []) == []
    assert slowed(starts[:0], starts[:0], [window]) == []
