"""What training hides: by chance, and of what a cause is told by."""

import numpy as np

from teller_core.model.classes import FIRST, UNTOLD
from teller_core.model.inputs import owners
from teller_core.model.masking import masked, other_gone, told, told_nothing, unseen, without
from teller_core.model.options import Masks
from tests.core.model.making import inputs_of, sheets_of
from tests.core.model.test_inputs import everything

WHOLE = inputs_of(*sheets_of(60, 3), words=True)
NOTHING = Masks(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def test_nothing_is_hidden_where_nothing_is_to_be() -> None:
    same = masked(WHOLE, NOTHING, np.random.default_rng(0))
    assert [everything(same, at) for at in range(60)] == [everything(WHOLE, at) for at in range(60)]


def test_hiding_is_decided_by_the_seed() -> None:
    one, other = (masked(WHOLE, Masks(), np.random.default_rng(4)) for _ in range(2))
    assert [everything(one, at) for at in range(60)] == [everything(other, at) for at in range(60)]
    third = masked(WHOLE, Masks(), np.random.default_rng(5))
    assert [everything(one, at) for at in range(60)] != [everything(third, at) for at in range(60)]


def test_what_lost_its_evidence_wants_no_cause_and_no_words() -> None:
    rows = told(WHOLE)
    bare = told_nothing(WHOLE, rows)
    bare.check()
    assert rows.any() and (bare.wanted.cause[rows] == UNTOLD).all()
    assert (bare.wanted.abnormal == WHOLE.wanted.abnormal).all()
    assert (np.diff(bare.wanted.offsets)[rows] == 0).all()
    cause = WHOLE.wanted.cause
    assert np.isnan(bare.clues[np.flatnonzero(rows), cause[rows] - FIRST]).all()
    for name in ("pieces", "together"):
        assert not ((bare.parts[name].target == 1) & rows[owners(bare.parts[name])]).any()
    own = owners(bare.facts)
    assert not ((bare.facts.codes[:, 0] == cause[own] - FIRST) & rows[own]).any()
    others = np.flatnonzero(~rows).tolist()
    assert [everything(bare, at) for at in others] == [everything(WHOLE, at) for at in others]


def test_a_sheet_that_nothing_tells_the_cause_of_cannot_lose_it() -> None:
    silent = without(WHOLE, told(WHOLE), WHOLE.wanted.cause.astype(np.int64))
    assert not told(silent).any()


def test_what_loses_something_else_keeps_what_tells_its_cause() -> None:
    rows = WHOLE.wanted.cause >= FIRST
    less = other_gone(WHOLE, rows, np.random.default_rng(1))
    cause = WHOLE.wanted.cause
    at = np.flatnonzero(rows)
    np.testing.assert_array_equal(less.clues[at, cause[at] - FIRST], WHOLE.clues[at, cause[at] - FIRST])
    assert (np.isnan(less.clues).any(axis=(1, 2)) == rows).all() and len(less.facts) < len(WHOLE.facts)
    mine = [(part.codes[:, 0] == cause[owners(part)] - FIRST).sum() for part in (less.facts, WHOLE.facts)]
    assert mine[0] == mine[1] and (less.wanted.cause == cause).all()


def test_whoever_lost_a_fact_says_nothing_that_might_cite_it() -> None:
    less = masked(WHOLE, Masks(0.0, 0.0, 0.5, 0.0, 0.0, 0.0), np.random.default_rng(2))
    changed = np.diff(less.facts.offsets) != np.diff(WHOLE.facts.offsets)
    words = np.diff(less.wanted.offsets)
    assert changed.any() and (words[changed] == 0).all()
    assert (words[~changed] == np.diff(WHOLE.wanted.offsets)[~changed]).all()


def test_a_cause_that_is_taken_for_unknown_may_not_be_said_though_all_that_tells_it_is_there() -> None:
    rows = WHOLE.wanted.cause >= FIRST
    strange = unseen(WHOLE, rows)
    np.testing.assert_array_equal(strange.clues, WHOLE.clues)
    assert (strange.wanted.cause[rows] == UNTOLD).all() and (
        strange.wanted.cause[~rows] == WHOLE.wanted.cause[~rows]
    ).all()
    np.testing.assert_array_equal(strange.wanted.barred, np.where(rows, WHOLE.wanted.cause, -1))
    assert not np.diff(strange.wanted.offsets)[rows].any()
