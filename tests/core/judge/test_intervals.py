"""Sets of time intervals against counting every nanosecond by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.judge.intervals import Spans, clip, common, overlap, overlaps, paint, span, union, without

END = 60
pairs = st.lists(st.tuples(st.integers(0, END), st.integers(0, END)), max_size=12)


def made(rows: list[tuple[int, int]]) -> Spans:
    columns = np.array(rows, np.int64).reshape(-1, 2)
    return union(columns[:, 0], columns[:, 1])


def inside(rows: list[tuple[int, int]]) -> set[int]:
    return {at for low, high in rows for at in range(low, high)}


def points(spans: Spans) -> set[int]:
    return inside(list(zip(spans.start.tolist(), spans.stop.tolist(), strict=True)))


@given(pairs)
def test_a_union_covers_what_any_interval_covers_and_is_disjoint_and_in_order(rows: list[tuple[int, int]]) -> None:
    spans = made(rows)
    assert points(spans) == inside(rows)
    assert spans.length() == len(inside(rows))
    assert (spans.start[1:] > spans.stop[:-1]).all()


@given(pairs, pairs)
def test_common_and_without_are_set_intersection_and_difference(
    a: list[tuple[int, int]], b: list[tuple[int, int]]
) -> None:
    assert points(common(made(a), made(b))) == inside(a) & inside(b)
    assert points(without(made(a), made(b))) == inside(a) - inside(b)


@given(pairs, st.integers(0, END), st.integers(0, END))
def test_an_overlap_is_what_lies_inside_the_limits(rows: list[tuple[int, int]], low: int, high: int) -> None:
    expected = inside(rows) & set(range(low, high))
    assert points(clip(made(rows), low, high)) == expected
    assert overlap(made(rows), low, high) == len(expected)
    if low <= high:
        assert overlaps(made(rows), np.array([low]), np.array([high])).tolist() == [len(expected)]


@given(st.lists(pairs, max_size=4), st.integers(0, END), st.integers(0, END))
def test_every_instant_is_painted_once_in_the_first_color_that_covers_it(
    colors: list[list[tuple[int, int]]], low: int, more: int
) -> None:
    painted = paint(low, low + more, [made(rows) for rows in colors])
    free = set(range(low, low + more))
    for rows, ns in zip(colors, painted, strict=False):
        assert ns == len(free & inside(rows))
        free -= inside(rows)
    assert painted[-1] == len(free)
    assert sum(painted) == more


def test_an_empty_span_has_no_time() -> None:
    assert span(5, 5).length() == 0
    assert span(6, 5).length() == 0
    assert span(5, 9).length() == 4
