"""Training sets of sheets: drawn from lives with their truth, which stands in no sheet."""

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.cli.lab import VERBS
from teller_core.data.sheet_parts import PARTS
from teller_core.data.sheets import NUMBERS, Kind
from teller_core.data.sheets_file import read_taught
from teller_core.data.table import columns
from teller_core.errors import InputError
from teller_core.lab import teaching
from teller_core.lab.benchmark.chosen import Chosen
from teller_core.lab.benchmark.episodes import Episode as Cut
from teller_core.lab.benchmark.labels import Labels as Told
from teller_core.lab.benchmark.pack import lives
from teller_core.lab.blocks import BlockTruth
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.injectors import injectors
from teller_core.lab.teaching import WITH_RANKS, draw, place_of, some, taught_of, write_sheets
from teller_core.sheets import step_sheets
from tests.core.lab.evaluation.made import episode, profiled
from tests.core.lab.evaluation.test_loading import made_strike, made_window

PACKED = Path(__file__).parents[2] / "lab"


def cut_of(one: Episode) -> Cut:
    """What the benchmark would say of a made episode: the struck windows are those that hold what is struck."""
    labels = one.labels
    numbers = sorted({*labels.request_window.tolist(), *labels.step_window.tolist()})
    hit = {int(at) for at, cause in zip(labels.request_window, labels.request, strict=True) if cause not in ("", "?")}
    hit |= {int(at) for at, hard in zip(labels.request_window, labels.hard, strict=True) if hard}
    windows = [made_window(0 if number in hit else -1, number) for number in numbers]
    block = BlockTruth(2, "b", windows, [made_strike(labels.cause or None)], {})
    place = {number: at for at, number in enumerate(numbers)}
    told = Told(
        request=np.zeros(len(labels.request), np.int8),
        cause=[""] * len(labels.request),
        step=labels.step,
        operators=[],
        ranks=[],
        request_window=np.array([place[int(at)] for at in labels.request_window], np.int32),
        step_window=np.array([place[int(at)] for at in labels.step_window], np.int32),
    )
    chosen = [Chosen(block, window) for window in windows]
    return Cut(one.life, 2, 0, block.strikes[0], 8.0, chosen, one.seen.capture, told)


def drawn(one: Episode, most: int = 40) -> teaching.Drawn:
    return draw(place_of(cut_of(one)), one, most, np.random.default_rng(1))


def test_each_sheet_has_the_truth_of_its_step_or_request() -> None:
    one = episode(1, "starved")
    sheets, truth = drawn(one)
    struck = {True: 0, False: 0}
    for at, (kind, position) in enumerate(zip(sheets.kind.tolist(), sheets.position.tolist(), strict=True)):
        if kind == Kind.REQUEST:
            wanted, window = one.labels.request[position], one.labels.request_window[position]
        else:
            wanted = {1: "host.cpu_starvation", 0: ""}[int(one.labels.step[position])]
            window = one.labels.step_window[position]
        assert truth["cause"][at] == wanted and truth["abnormal"][at] == int(wanted != "")
        assert truth["window"][at] == window and truth["block"][at] == 2
        if wanted:
            assert truth["strike"][at] == 0
        struck[bool(wanted)] += 1
    assert struck[True] >= 8 and 2 * struck[True] <= struck[False] <= 3 * struck[True]
    assert not truth["hard"].any() and set(truth["fault"]) == {"starved"} and set(truth["severity"]) == {"strong"}


def test_what_is_slow_and_no_fault_is_marked() -> None:
    sheets, truth = drawn(episode(2, "gc", hard=True))
    assert truth["hard"].any() and not truth["hard"].all() and not truth["abnormal"].any()
    assert set(truth["cause"]) == {""}
    np.testing.assert_array_equal(truth["hard"] == 1, truth["strike"] == 0)
    assert len(sheets) <= 41


def test_pieces_and_suspects_of_the_operator_at_fault_are_guilty() -> None:
    sheets, truth = drawn(profiled(0))
    abnormal = truth["abnormal"] == 1
    assert abnormal.any()
    assert {truth["operators"][at] for at in np.flatnonzero(abnormal)} == {"aten::sdpa"}
    names = np.array(sheets.pieces.name)
    mine = np.repeat(abnormal, np.diff(sheets.pieces_at))
    np.testing.assert_array_equal(truth["guilty"] == 1, mine & (names == "aten::sdpa"))
    assert truth["guilty_suspect"].sum() >= abnormal.sum()


def test_the_number_of_the_rank_at_fault_tells_nothing_and_all_that_is_said_of_it_moves_along() -> None:
    one = profiled(1, ranks=2)
    struck = np.flatnonzero(one.labels.step == 1).tolist()
    one = replace(one, labels=replace(one.labels, ranks=dict.fromkeys(struck, 1)))
    sheets, truth = drawn(one, 80)
    plain = step_sheets(one.seen.case, np.unique(sheets.position).astype(np.int64))
    np.testing.assert_array_equal(plain.position, sheets.position)
    for at in range(len(sheets)):
        anew = {-1: -1}
        for part in WITH_RANKS:
            mine = sheets.of(part, at)
            was, now = (getattr(each, part).rank[mine].tolist() for each in (plain, sheets))
            assert all(anew.setdefault(before, after) == after for before, after in zip(was, now, strict=True))
        assert sorted(anew) == sorted(anew.values()) == [-1, 0, 1]
        assert truth["rank"][at] == (anew[1] if truth["abnormal"][at] == 1 else -1)
    blamed = truth["rank"][truth["abnormal"] == 1]
    assert set(blamed.tolist()) == {0, 1}


@given(
    st.lists(st.integers(-1, 1), max_size=60),
    st.integers(0, 40),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_what_is_drawn_is_judged_and_no_more_than_was_asked_for(label: list[int], most: int, seed: int) -> None:
    column = np.array(label, np.int8)
    seen = np.arange(len(label)) % 3 == 0
    found = some(column, seen, most, np.random.default_rng(seed))
    assert len(found) == len(set(found.tolist())) <= most
    assert (column[found] >= 0).all() and (np.diff(found) > 0).all()
    struck = int((column[found] == 1).sum())
    assert struck == min(int((column == 1).sum()), most // 4)
    for label_of in (0, 1):
        mine = found[column[found] == label_of]
        left = np.setdiff1d(np.flatnonzero(column == label_of), mine)
        assert (
            not len(mine) or not len(left) or seen[mine].min() >= seen[left].max()
        )  # what there is little of comes first


@pytest.mark.slow
def test_sheets_of_a_packed_life_are_the_same_every_time_and_do_not_tell_what_was_done(tmp_path: Path) -> None:
    life = next((one for one in lives(PACKED) if one.about["side"] == "train"), None)
    if life is None:
        pytest.skip("no life is packed here")
    one, other = (taught_of(life, tiers=(1, 4), most=960) for _ in range(2))
    one.check()
    for name in NUMBERS:
        at = NUMBERS.index(name)
        np.testing.assert_array_equal(one.sheets.numbers[:, at], other.sheets.numbers[:, at], err_msg=name)
    words = [
        cell.lower()
        for part in PARTS
        for column in columns(getattr(one.sheets, part)).values()
        if isinstance(column, list)
        for cell in column
    ]
    assert not any(life.name in word for word in words)
    assert not {name for name in injectors() if any(name == word for word in words)}
    low, high = (one.sheets.tier == tier for tier in (1, 4))
    assert low.any() and high.any()
    known = ~np.isnan(one.sheets.numbers)
    assert known[low].mean() < known[high].mean()
    pieces = np.diff(one.sheets.pieces_at)
    assert not pieces[low].any() and pieces[high].any()
    assert {1, 0} <= set(one.abnormal.tolist())


def test_a_folder_of_lives_becomes_one_of_sheets_and_what_is_there_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = episode(0, "gc")
    packed: Any = [Namespace(name=name, about={"side": side}) for name, side in (("aa", "train"), ("bb", "test"))]
    monkeypatch.setattr(teaching, "lives", lambda folder: packed)
    monkeypatch.setattr(teaching, "captures_of", lambda life, tiers: [one.seen.capture] * len(tiers))
    monkeypatch.setattr(teaching.cut, "episodes", lambda life, capture, tier: [cut_of(one)])
    monkeypatch.setattr(teaching, "episode_of", lambda life, given: one)
    told: list[str] = []
    (path,) = write_sheets(tmp_path, tmp_path / "sheets", told.append, most=60)
    assert path.name == "aa.npz" and told == ["life 1 of 1"]
    taught = read_taught(path)
    assert taught.life == "aa" and taught.about == {"side": "train"} and len(taught.sheets) > 20
    before = path.read_bytes()
    assert write_sheets(tmp_path, tmp_path / "sheets", told.append, most=60) == [path]
    assert told == ["life 1 of 1"] and path.read_bytes() == before
    path.write_bytes(b"damaged")
    write_sheets(tmp_path, tmp_path / "sheets", told.append, most=60)
    assert path.read_bytes() == before


def test_the_verb_refuses_a_folder_without_lives_to_learn_from_and_json(tmp_path: Path) -> None:
    asked = Namespace(action="sheets", folder=tmp_path / "to", lives=tmp_path, most=None, json=False)
    with pytest.raises(InputError, match="no life of the training side"):
        VERBS["lab"](asked, lambda: None)
    asked.json = True
    with pytest.raises(InputError, match="writes files"):
        VERBS["lab"](asked, lambda: None)
