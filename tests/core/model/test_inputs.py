"""Sheets as numbers: what is taken, joined and left out stays with its sheet."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.table import UNKNOWN
from teller_core.model.inputs import NAMES, PLAIN, Inputs, Part, joined, kept, owners, taken
from teller_core.model.options import Parts
from teller_core.model.preparing import hashed, lessened, prepared, vertical
from tests.core.data.sheets_made import made
from tests.core.model.making import inputs_of, sheets_of


def items(part: Part, sheet: int) -> list[object]:
    """All that a sheet has of a part, item by item."""
    found: list[object] = []
    for at in range(part.offsets[sheet], part.offsets[sheet + 1]):
        bag = part.bag[part.words[at] : part.words[at + 1]]
        found.append((part.codes[at].tolist(), repr(part.values[at].tolist()), bag.tolist(), int(part.target[at])))
    return found


def everything(inputs: Inputs, sheet: int) -> object:
    """All that stands of a sheet, for comparing."""
    words = inputs.wanted.words[inputs.wanted.offsets[sheet] : inputs.wanted.offsets[sheet + 1]]
    columns = [repr(getattr(inputs, name)[sheet].tolist()) for name in PLAIN]
    told = [int(inputs.wanted.cause[sheet]), int(inputs.wanted.abnormal[sheet]), words.tolist()]
    return columns, told, [items(inputs.parts[name], sheet) for name in NAMES]


def some(count: int, seed: int) -> Inputs:
    return inputs_of(*sheets_of(count, seed), words=True)


@given(st.lists(st.integers(0, 19), max_size=30), st.integers(0, 9))
def test_what_is_taken_is_the_sheet_as_it_was(rows: list[int], seed: int) -> None:
    whole = some(20, seed)
    part = taken(whole, np.array(rows, dtype=np.int64))
    part.check()
    assert [everything(part, at) for at in range(len(part))] == [everything(whole, row) for row in rows]


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4))
def test_what_is_joined_stands_one_behind_the_other(counts: list[int]) -> None:
    several = [some(count, seed) for seed, count in enumerate(counts)]
    whole = joined(several)
    whole.check()
    apart = [everything(one, at) for one in several for at in range(len(one))]
    assert [everything(whole, at) for at in range(len(whole))] == apart


@given(st.integers(0, 9), st.floats(0.0, 1.0))
def test_items_that_are_not_kept_are_missed_by_their_own_sheet_alone(seed: int, share: float) -> None:
    part = some(12, seed).facts
    keep = np.random.default_rng(seed).random(len(part)) < share
    less = kept(part, keep)
    own = owners(part)
    for sheet in range(12):
        mine = items(part, sheet)
        assert items(less, sheet) == [each for each, stays in zip(mine, keep[own == sheet], strict=True) if stays]


def test_a_time_that_nobody_recorded_is_not_known_rather_than_short() -> None:
    sheets = made(30, 1)
    wait = sheets.pieces.wait.copy()
    wait[::2] = UNKNOWN
    values = prepared(replace(sheets, pieces=replace(sheets.pieces, wait=wait))).pieces.values
    assert np.isnan(values[::2, 2]).all() and not np.isnan(values[1::2, 2]).any()


@pytest.mark.parametrize(
    ("left_out", "empty"),
    [("tokens", "pieces"), ("logs", "said"), ("numbers", "suspects"), ("rules", "facts"), ("horizontal", "together")],
)
def test_what_is_left_out_is_not_there(left_out: str, empty: str) -> None:
    sheets = made(40, 2)
    less = lessened(prepared(sheets), Parts(**{left_out: False}))
    less.check()
    assert len(less.parts[empty]) == 0
    others = set(NAMES) - {empty}
    whole = prepared(sheets)
    assert all(len(less.parts[name]) == len(whole.parts[name]) > 0 for name in others)
    assert np.isnan(less.numbers).all() == (left_out == "numbers")
    assert np.isnan(less.clues).all() == (left_out == "rules")


def test_without_durations_no_time_of_a_piece_is_known() -> None:
    less = lessened(prepared(made(40, 3)), Parts(durations=False))
    assert np.isnan(less.pieces.values).all() and np.isnan(less.suspects.values).all()


def test_without_parent_and_depth_a_piece_says_nothing_of_its_place() -> None:
    whole = prepared(made(40, 3))
    less = lessened(whole, Parts(parent=False, depth=False))
    assert (less.pieces.codes[:, [0, -1]] == -1).all() and (whole.pieces.codes[:, 0] >= 0).any()
    np.testing.assert_array_equal(less.pieces.codes[:, 1:4], whole.pieces.codes[:, 1:4])


def test_without_the_horizontal_view_no_sheet_looks_across_ranks() -> None:
    sheets = made(40, 4)
    assert set(sheets.view[vertical(prepared(sheets))].tolist()) == {0} != set(sheets.view.tolist())


def test_numbers_in_texts_are_hashed_by_their_length_alone() -> None:
    assert hashed("took 123 ms") == hashed("took 456 ms") != hashed("took 45 ms")
    assert hashed("AtEn::MM") == hashed("aten::mm") and hashed("") == ()


def test_every_option_of_an_ablation_changes_what_is_read() -> None:
    whole = prepared(made(60, 5))
    for field in fields(Parts):
        less = lessened(whole, Parts(**{field.name: False}))
        less.check()
        assert any(everything(less, at) != everything(whole, at) for at in range(60)), field.name
