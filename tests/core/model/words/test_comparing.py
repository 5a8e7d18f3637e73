"""How two ways of saying an answer are compared: by what they say, and by choices without names."""

from pathlib import Path

import pytest

from teller_core.errors import InputError
from teller_core.model.words.blind import CHOICES, Pair, chosen, left, pairs, shown, tally
from teller_core.model.words.completeness import completeness, told
from tests.core.model.words.making import finding, report

ANSWER = report(finding(step=17, rank=2))
WHOLE = (
    "Request 3 lost 412 ms at step 17 on rank 2: GC pause, confidence 0.9."
    " To mend it: gc.freeze after warm-up, raise thresholds, collect when idle, fix leaks."
)


def test_a_whole_explanation_says_six_things() -> None:
    assert set(told(WHOLE, ANSWER)) == {"request", "what", "where", "how_much", "how_sure", "next"}
    assert completeness(WHOLE, ANSWER) == 1.0


@pytest.mark.parametrize(
    ("taken", "missing"),
    [
        ("Request 3", "request"),
        ("GC pause", "what"),
        (" at step 17 on rank 2", "where"),
        ("412", "how_much"),
        (", confidence 0.9", "how_sure"),
        ("gc.freeze", "next"),
    ],
)
def test_what_is_not_said_is_missed(taken: str, missing: str) -> None:
    wanted = told(WHOLE.replace(taken, ""), ANSWER)
    assert [name for name, said in wanted.items() if not said] == [missing]
    assert completeness(WHOLE.replace(taken, ""), ANSWER) == pytest.approx(5 / 6)


def test_another_number_that_begins_alike_is_not_the_step() -> None:
    assert not told(WHOLE.replace("step 17 on rank 2", "step 170 on rank 23"), ANSWER)["where"]


def test_pairs_are_what_both_wrote_differently() -> None:
    found = list(pairs(("model", {"a": "x", "b": "y", "c": "z"}), ("plain", {"a": "x", "b": "w"})))
    assert found == [Pair("b", {"model": "y", "plain": "w"})]


def test_which_text_stands_first_is_settled_by_the_seed_and_is_even() -> None:
    every = [Pair(str(at), {"model": "a", "plain": "b"}) for at in range(400)]
    first = [shown(pair, 7)[0] for pair in every]
    assert first == [shown(pair, 7)[0] for pair in every]
    assert first != [shown(pair, 8)[0] for pair in every]
    assert 150 < first.count("model") < 250


def test_choices_stand_in_a_file_and_are_not_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "choices.jsonl"
    every = [Pair(str(at), {"model": "a", "plain": "b"}) for at in range(10)]
    for pair in every[:8]:
        chosen(file, pair, 7, "1" if shown(pair, 7)[0] == "model" else "2")
    chosen(file, every[8], 7, "=")
    assert left(every, file) == [every[9]]
    found = tally(file)
    assert (found.won, found.even) == ({"model": 8, "plain": 0}, 1)
    assert found.chance == pytest.approx(2 / 256)
    assert set(CHOICES) == {"1", "2", "="}


def test_nothing_chosen_yet_tells_nothing(tmp_path: Path) -> None:
    assert tally(tmp_path / "none").chance == 1.0


def test_a_file_that_was_cut_off_is_refused_and_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "choices.jsonl"
    file.write_text('{"key": "a", "shown": ["x", "y"], "cho', "utf-8")
    with pytest.raises(InputError, match="cut off"):
        tally(file)
