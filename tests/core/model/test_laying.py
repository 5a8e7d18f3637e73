"""Sequences: everything has a place of its own, in its sheet, in the order in which it is read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.model.batches import by_length, held_out, ordered
from teller_core.model.inputs import NAMES, owners
from teller_core.model.laying import PLACES, known_places, laid, lengths
from tests.core.model.making import inputs_of, sheets_of


@given(st.integers(1, 12), st.integers(0, 99))
def test_every_position_is_of_one_thing_and_the_verdict_comes_last_but_for_words(count: int, seed: int) -> None:
    inputs = inputs_of(*sheets_of(count, seed), words=True)
    batch = laid(inputs)
    at = np.concatenate([batch.places, *batch.items.values(), batch.verdict, batch.words])
    assert len(np.unique(at)) == len(at) == lengths(inputs).sum()
    used = np.bincount(at // batch.length, minlength=count)
    assert (used == lengths(inputs)).all() and batch.length == lengths(inputs).max()
    for sheet in range(count):
        mine = np.sort(at[at // batch.length == sheet]) - sheet * batch.length
        assert (mine == np.arange(len(mine))).all()
        before = np.concatenate(
            [batch.places[batch.place // PLACES == sheet]]
            + [batch.items[name][owners(inputs.parts[name]) == sheet] for name in NAMES]
        )
        assert (np.diff(before) > 0).all() and (before < batch.verdict[sheet]).all()


@given(st.integers(1, 12), st.integers(0, 99))
def test_each_word_is_told_by_the_position_before_it(count: int, seed: int) -> None:
    batch = laid(inputs_of(*sheets_of(count, seed), words=True))
    here = dict(zip(batch.words.tolist(), batch.given.tolist(), strict=True))
    for at, said in zip(batch.said_at.tolist(), batch.said.tolist(), strict=True):
        assert at in here or at in batch.verdict
        assert here.get(at + 1, said) == said or at + 1 in batch.verdict or (at + 1) % batch.length == 0


def test_a_group_of_which_nothing_is_known_has_no_position() -> None:
    inputs = inputs_of(*sheets_of(6, 1))
    inputs.numbers[2] = np.nan
    inputs.clues[2] = np.nan
    assert known_places(inputs)[2].sum() == 0
    assert known_places(inputs)[3].any() and 2 not in laid(inputs).place // PLACES


@given(st.lists(st.integers(1, 300), min_size=1, max_size=200), st.integers(0, 5), st.integers(0, 3))
def test_every_sheet_is_read_once_in_a_pass_and_no_batch_is_too_large(
    length: list[int], seed: int, number: int
) -> None:
    sizes = np.array(length, dtype=np.int64)
    for batches in (ordered(sizes, 512, seed, number), by_length(sizes, 512)):
        assert sorted(np.concatenate(batches).tolist()) == list(range(len(length)))
        assert all(len(rows) == 1 or len(rows) * sizes[rows].max() <= 512 for rows in batches)
    again = ordered(sizes, 512, seed, number)
    assert all((a == b).all() for a, b in zip(ordered(sizes, 512, seed, number), again, strict=True))


def test_one_more_life_leaves_most_others_on_their_side() -> None:
    names = [f"life {at}" for at in range(40)]
    kinds = [""] * 41
    before, after = held_out(names, kinds, 0.2, 0), held_out([*names, "one more"], kinds, 0.2, 0)
    assert sum(before) == 8 and sum(a != b for a, b in zip(before, after, strict=False)) <= 1
    assert held_out(names, kinds, 0.2, 1) != before and sum(held_out(["a", "b"], ["", ""], 0.2, 0)) == 1


@pytest.mark.parametrize("seed", range(5))
def test_of_each_kind_of_life_one_is_kept_before_a_second_one_and_never_the_only_one(seed: int) -> None:
    kinds = ["many"] * 9 + ["few"] * 2 + ["pair"] * 2 + ["one"]
    held = held_out([f"life {at}" for at in range(len(kinds))], kinds, 0.28, seed)
    kept = [kind for kind, out in zip(kinds, held, strict=True) if out]
    assert sorted(kept) == ["few", "many", "many", "pair"]


def test_what_did_not_happen_anywhere_is_learned_from_and_never_chosen_by() -> None:
    names, kinds = [f"life {at}" for at in range(20)], ["many"] * 10 + [""] * 10
    held = held_out(names, kinds, 0.2, 0)
    assert held[:10] == held_out(names[:10], kinds[:10], 0.2, 0) and not any(held[10:])
