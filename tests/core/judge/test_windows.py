"""Rows found by their time or their key are those that a look at every row finds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.judge.windows import keyed, windows

TIMES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 40)), max_size=30)


@given(TIMES, st.integers(-5, 110), st.integers(-5, 110))
def test_the_rows_that_touch_a_stretch_of_time_are_found(spans: list[tuple[int, int]], low: int, high: int) -> None:
    start = np.array([begin for begin, _ in spans], np.int64)
    stop = start + np.array([size for _, size in spans], np.int64)
    row = np.arange(len(spans), dtype=np.int64) * 3
    plain = [3 * i for i, (begin, size) in enumerate(spans) if begin <= high and begin + size >= low]
    assert windows(row, start, stop).touching(low, high).tolist() == plain


@given(st.lists(st.integers(-1, 9), max_size=30), st.lists(st.integers(-2, 11), max_size=5))
def test_the_rows_of_some_keys_are_found(keys: list[int], wanted: list[int]) -> None:
    found = keyed(np.array(keys, np.int64)).of(np.array(wanted, np.int64))
    assert found.tolist() == [row for row, key in enumerate(keys) if key in wanted]
