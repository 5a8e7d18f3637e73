"""Marks of a row: nothing is lost, nothing blamed is hidden, and there are never more than can be drawn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from teller_core.data.report_timeline import Kind
from teller_core.tell.timeline.marks import PIXELS, Lane, Thing, lane, row_of, rows_of

spans = some.lists(
    some.tuples(some.integers(0, 10**7), some.integers(0, 10**6), some.sampled_from([0, 0, 0, 1])), max_size=60
)


def made(things: list[tuple[int, int, int]]) -> Lane:
    kind: Kind = "operator"
    rows: list[Thing] = [(start, dur, kind, f"op {start}") for start, dur, _ in things]
    return lane("rank 0", "operator", "operators", rows, [number for *_, number in things])


@given(spans, some.integers(1, 10**6))
def test_every_thing_is_in_one_mark_that_covers_it(things: list[tuple[int, int, int]], pixel: int) -> None:
    row = row_of(made(things), 0, pixel)
    assert sum(row.count) == len(things)
    assert row.start_ms == sorted(row.start_ms)
    ends = [start + dur for start, dur in zip(row.start_ms, row.dur_ms, strict=True)]
    for start, dur, _ in things:
        assert any(
            low <= start / 1e6 + 1e-3 and (start + dur) / 1e6 <= high + 1e-3
            for low, high in zip(row.start_ms, ends, strict=True)
        )


@given(spans, some.integers(1, 10**6))
def test_what_is_blamed_or_can_be_seen_stands_alone(things: list[tuple[int, int, int]], pixel: int) -> None:
    row = row_of(made(things), 0, pixel)
    alone = sorted((start, dur) for start, dur, number in things if number or dur >= pixel)
    marks = zip(row.start_ms, row.dur_ms, row.count, row.finding, strict=True)
    single = [(round(start * 1e6), round(dur * 1e6)) for start, dur, count, _ in marks if count == 1]
    for start, dur in alone:
        assert any(abs(a - start) <= 100 and abs(b - dur) <= 100 for a, b in single)
    assert sorted(row.finding).count(1) == sum(number for *_, number in things)


@pytest.mark.parametrize("most", [20, 200, 5000])
def test_a_million_short_spans_are_as_few_marks_as_asked_for(most: int) -> None:
    start = np.arange(1_000_000, dtype=np.int64) * 100
    kinds: list[Kind] = ["kernel"] * len(start)
    many = Lane("g", "kernel", "kernels", start, np.full(len(start), 50), kinds, ["k"] * len(start), start * 0)
    (row,), merged = rows_of([many], 0, 100_000_000, most)
    assert len(row.count) <= max(most, 1) and merged == 1_000_000 == sum(row.count)
    assert len(row.count) <= PIXELS


def test_things_that_all_last_as_long_as_the_panel_are_one_mark_where_there_are_too_many() -> None:
    kinds: list[Kind] = ["wait"] * 5000
    whole = np.zeros(5000, dtype=np.int64)
    many = Lane("g", "communication", "its waits", whole, whole + 1000, kinds, ["w"] * 5000, whole)
    (row,), merged = rows_of([many], 0, 1000, 700)
    assert row.count == [5000] and merged == 5000


def test_a_mark_of_several_says_how_many_and_how_long_they_took() -> None:
    row = row_of(made([(0, 2_000, 0), (3_000, 5_000, 0), (900_000_000, 1_000_000, 0)]), 0, 1_000_000)
    assert row.count == [2, 1]
    assert row.text == ["2 short ones, 0.007 ms in all, the longest: op 3000", "op 900000000"]


def test_rows_without_anything_are_left_out() -> None:
    assert rows_of([made([]), made([(5, 5, 0)])], 0, 10, 100)[0][0].label == "operators"
    assert rows_of([made([])], 0, 10, 100) == ([], 0)
