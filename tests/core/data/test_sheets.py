"""Sheets: columns and parts that stay together."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.data import sheets as module
from teller_core.data.sheet_parts import PARTS
from teller_core.data.sheets import COLUMNS, NUMBERS, Sheets, joined, layout_hash, no_sheets, numbers_of, taken
from teller_core.data.table import columns
from tests.core.data.sheets_made import made


def same(one: Sheets, other: Sheets) -> None:
    """Assert that all of two is alike."""
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for part in PARTS:
        np.testing.assert_array_equal(getattr(one, f"{part}_at"), getattr(other, f"{part}_at"), err_msg=part)
        for name, column in columns(getattr(one, part)).items():
            np.testing.assert_array_equal(column, getattr(getattr(other, part), name), err_msg=f"{part}.{name}")
    assert one.vocabulary == other.vocabulary


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=4), st.integers(0, 99))
def test_what_is_joined_comes_apart_again(counts: list[int], seed: int) -> None:
    several = [made(count, seed + at) for at, count in enumerate(counts)]
    whole = joined(several)
    whole.check()
    begin = 0
    for one in several:
        same(one, taken(whole, np.arange(begin, begin + len(one))))
        begin += len(one)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 6), st.integers(0, 99), st.data())
def test_sheets_are_taken_with_all_that_is_theirs(count: int, seed: int, data: st.DataObject) -> None:
    sheets = made(count, seed)
    sheets.check()
    index = data.draw(st.lists(st.integers(0, count - 1), max_size=5)) if count else []
    picked = taken(sheets, np.array(index, np.int64))
    picked.check()
    for at, whole in enumerate(index):
        for part in PARTS:
            of, here = sheets.of(part, whole), picked.of(part, at)
            for name, column in columns(getattr(sheets, part)).items():
                np.testing.assert_array_equal(column[of], getattr(getattr(picked, part), name)[here])
    same(taken(sheets, np.ones(count, np.bool_)), sheets)


def test_sheets_of_which_nothing_is_known_are_sheets() -> None:
    for count in (0, 3):
        empty = no_sheets(count)
        empty.check()
        assert len(empty) == count and np.isnan(empty.numbers).all()
    same(joined([]), no_sheets())


def test_sheets_of_two_vocabularies_are_not_joined() -> None:
    with pytest.raises(ValueError, match="two vocabularies"):
        joined([made(1, 0, "a"), made(1, 0, "b")])


def test_a_piece_below_itself_a_part_that_is_too_long_and_a_number_without_end_are_found() -> None:
    sheets = next(one for seed in range(99) if len((one := made(3, seed)).pieces.symbol))
    below = replace(sheets.pieces, parent=np.full(len(sheets.pieces.symbol), 200, np.int32))
    with pytest.raises(ValueError, match="hangs below none"):
        replace(sheets, pieces=below).check()
    with pytest.raises(ValueError, match="infinite"):
        replace(sheets, numbers=np.full_like(sheets.numbers, np.inf)).check()
    with pytest.raises(ValueError, match="rows of pieces"):
        replace(sheets, pieces_at=sheets.pieces_at + 1).check()
    with pytest.raises(ValueError, match="other shapes"):
        replace(sheets, numbers=sheets.numbers[:, 1:]).check()


def test_numbers_have_names_of_their_own_and_the_layout_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(set(NUMBERS)) == len(NUMBERS)
    given = numbers_of({"times.took": 1.5})
    assert given[NUMBERS.index("times.took")] == np.float32(1.5) and np.isnan(given).sum() == len(NUMBERS) - 1
    before = layout_hash()
    layout_hash.cache_clear()
    monkeypatch.setattr(module, "LAYOUT", 0)
    assert layout_hash() != before
    layout_hash.cache_clear()
