"""Two recordings of one thing are matched as a table of longest common subsequences would match them."""

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data.table import Int32
from teller_core.rebuild.sequences import MOST_EDITS, aligned, offsets

items = st.lists(st.integers(0, 4), max_size=24)


def column(values: list[int]) -> Int32:
    return np.array(values, dtype=np.int32)


def longest_common(one: list[int], other: list[int]) -> int:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one):
        for k, b in enumerate(other):
            table[i + 1][k + 1] = table[i][k] + 1 if a == b else max(table[i][k + 1], table[i + 1][k])
    return table[-1][-1]


@given(items, items)
@settings(max_examples=500)
def test_matches_are_equal_items_in_order_and_as_many_as_can_be(one: list[int], other: list[int]) -> None:
    found = aligned(column(one), column(other))
    matched = [(i, k) for i, k in enumerate(found.tolist()) if k >= 0]
    assert all(one[i] == other[k] for i, k in matched)
    assert all(a[1] < b[1] for a, b in pairwise(matched))
    assert len(matched) == longest_common(one, other)


@given(items, items)
def test_every_place_of_a_run_is_found(short: list[int], long: list[int]) -> None:
    expected = [i for i in range(len(long) - len(short) + 1) if short and long[i : i + len(short)] == short]
    assert offsets(column(short), column(long)) == expected


def test_recordings_that_differ_too_much_are_not_matched_at_all() -> None:
    one, other = column([0] * (MOST_EDITS + 2)), column([1] * (MOST_EDITS + 2))
    assert (aligned(one, other) == -1).all()
    assert (aligned(column([1, 2, 3]), np.append(column([1, 2]), np.zeros(MOST_EDITS + 9, dtype=np.int32))) == -1).all()
