"""Files of sheets with their truth, as training takes them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.sheets import Kind, cause_ids
from teller_core.data.sheets_file import HEALTHY, NOT_JUDGED, Taught, write_taught
from teller_core.errors import FormatError, InputError
from teller_core.model.classes import FIRST, NONE, key_of
from teller_core.model.inputs import owners
from teller_core.model.lives import MOST_LESSONS, inputs_of, lives_in
from tests.core.model.making import GUILTY, VOCABULARY, sheets_of


def taught(count: int, seed: int, **about: str) -> Taught:
    """Sheets with a truth that fits them: guilty are the pieces of one symbol, late is a rank of each struck sheet."""
    sheets, wanted = sheets_of(count, seed)
    struck = wanted >= FIRST
    cause = [key_of(each) if each >= FIRST else HEALTHY for each in wanted.tolist()]
    cause[0] = NOT_JUDGED
    rank = np.full(count, -1, dtype=np.int32)
    some = struck & (np.diff(sheets.together_at) > 0)
    rank[some] = sheets.together.rank[sheets.together_at[:-1][some]]
    told: Mapping[str, str] = {"side": "train", **about}
    none = np.zeros(count, dtype=np.int32)
    return Taught(
        life=f"life{seed}",
        about=told,
        sheets=sheets,
        abnormal=np.where(np.arange(count) == 0, -1, struck).astype(np.int8),
        cause=cause,
        hard=none.astype(np.uint8),
        block=none,
        strike=none,
        window=none,
        fault=[""] * count,
        severity=[""] * count,
        d_prime=none.astype(np.float32),
        rank=rank,
        operators=[""] * count,
        guilty=(sheets.pieces.symbol == GUILTY).astype(np.uint8),
        guilty_suspect=np.zeros(len(sheets.suspects.row), dtype=np.uint8),
    )


def folder_of(path: Path, *several: Taught) -> Path:
    for one in several:
        write_taught(one, path / f"{one.life}.npz")
    return path


def test_the_truth_becomes_what_is_wanted() -> None:
    given = taught(40, 1)
    inputs = inputs_of(given)
    inputs.check()
    assert inputs.wanted.cause[0] == -1 and inputs.wanted.abnormal[0] == -1
    for at in range(1, 40):
        cause = inputs.wanted.cause[at]
        assert given.cause[at] == (cause_ids()[cause - FIRST] if cause >= FIRST else HEALTHY)
    facts = inputs.facts
    own = np.array(given.cause)[owners(facts)]
    judged = own != NOT_JUDGED
    assert (facts.target[~judged] == -1).all()
    assert (facts.target[judged] == (np.array(given.sheets.facts.cause) == own)[judged]).all()


def test_where_nobody_knows_whom_to_blame_no_pointer_learns() -> None:
    inputs = inputs_of(taught(40, 1))
    for part in (inputs.pieces, inputs.together):
        own = owners(part)
        told = np.isin(own, own[part.target == 1])
        assert told.any() and not told.all()
        assert (part.target[~told] == -1).all() and (part.target[told] >= 0).all()
    one = np.bincount(owners(inputs.together)[inputs.together.target == 1], minlength=40)
    assert one.max() >= 1


def test_some_requests_say_what_is_true_of_them() -> None:
    given = taught(60, 2)
    inputs = inputs_of(given, np.random.default_rng(0))
    spoken = np.diff(inputs.wanted.offsets) > 0
    requests = given.sheets.kind == Kind.REQUEST
    assert spoken.sum() == min((requests & (inputs.wanted.cause >= NONE)).sum(), MOST_LESSONS)
    assert not (spoken & ~requests).any() and not spoken[0]
    ends = inputs.wanted.words[inputs.wanted.offsets[1:][spoken] - 1]
    assert (ends == 0).all()
    assert not np.diff(inputs_of(given).wanted.offsets).any()


def test_lives_come_with_what_a_model_of_them_reads(tmp_path: Path) -> None:
    folder_of(tmp_path, taught(20, 1), taught(20, 2))
    told: list[str] = []
    lives, reads = lives_in(tmp_path, 0, told.append)
    assert [life.name for life in lives] == ["life1", "life2"] and len(told) == 2
    assert reads.vocabulary == VOCABULARY and reads.symbols == GUILTY + 22 and reads.spoken > 50
    again, _ = lives_in(tmp_path, 0, told.append)
    assert [life.hash for life in lives] == [life.hash for life in again]
    assert all((a.inputs.wanted.words == b.inputs.wanted.words).all() for a, b in zip(lives, again, strict=True))


def test_a_life_of_the_test_side_is_never_learned_from(tmp_path: Path) -> None:
    folder_of(tmp_path, taught(5, 1), taught(5, 2, side="test"))
    with pytest.raises(InputError, match="not of the training side"):
        lives_in(tmp_path, 0, lambda text: None)


def test_sheets_of_two_vocabularies_are_refused_together(tmp_path: Path) -> None:
    other = taught(5, 2)
    folder_of(tmp_path, taught(5, 1), replace(other, sheets=replace(other.sheets, vocabulary="other")))
    with pytest.raises(InputError, match="different vocabularies"):
        lives_in(tmp_path, 0, lambda text: None)


def test_a_folder_without_sheets_and_a_damaged_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no sheets are in it"):
        lives_in(tmp_path, 0, lambda text: None)
    (tmp_path / "broken.npz").write_bytes(b"nothing")
    with pytest.raises(FormatError):
        lives_in(tmp_path, 0, lambda text: None)
