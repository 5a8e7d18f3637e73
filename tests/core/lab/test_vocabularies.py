"""Codings of steps, to be compared: each writes sheets of its own, and what sets them apart is seen in them."""

from pathlib import Path

import numpy as np
import pytest

from teller_core.cli import main
from teller_core.context.tpe.codings import stream_tokens
from teller_core.context.tpe.reference import train as train_reference
from teller_core.context.tpe.train import samples
from teller_core.data.sheets import Kind
from teller_core.lab import vocabularies
from teller_core.lab.teaching import draw, place_of
from teller_core.lab.vocabularies import codings, some_steps, write_codings
from tests.core.judge.service import Work, service
from tests.core.lab.evaluation.made import profiled
from tests.core.lab.test_teaching import cut_of

STEPS = [Work(kv=800 + 10 * at) for at in range(24)]


def steps():
    return some_steps(service(STEPS, 1))


def test_steps_are_taken_evenly_over_a_capture() -> None:
    capture = service(STEPS, 1)
    assert len(some_steps(capture)) == 24
    few = some_steps(capture, 4)
    rows = [0, 7, 15, 23]
    assert [tree.trace.start[0] for tree in few] == [
        capture.ranks[0].tree.trace.start[capture.work.row[row]]  # pyright: ignore[reportOptionalMemberAccess]
        for row in rows
    ]


def test_all_codings_are_there_and_each_is_called_by_its_own_hash() -> None:
    found = dict(codings(steps(), (64, 128), lambda _: None))
    assert [*found] == [
        "64 symbols",
        "64 symbols without guard",
        "128 symbols",
        "128 symbols without guard",
        "128 symbols by the published rule",
    ]
    assert len({coding.hash for coding in found.values()}) == 5


def test_sheets_are_of_the_coding_they_are_written_in_and_without_the_guard_more_is_swallowed() -> None:
    one = profiled(1)
    found = dict(codings(some_steps(one.seen.capture), (128,), lambda _: None))
    pieces: dict[str, int] = {}
    for name, coding in found.items():
        sheets, truth = draw(place_of(cut_of(one)), one, 40, np.random.default_rng(1), coding)
        assert sheets.vocabulary == coding.hash and (sheets.kind == Kind.STEP).all()
        sheets.check()
        assert truth["guilty"].any() or name != "128 symbols"
        pieces[name] = len(sheets.pieces.symbol)
    assert pieces["128 symbols"] > pieces["128 symbols without guard"]


def test_tokens_of_the_published_rule_hang_below_those_that_hold_their_parents() -> None:
    trees = steps()
    stream = train_reference(samples(trees), 64)
    for tree in trees[:6]:
        tokens = stream_tokens(tree, stream)
        count = len(tokens)
        assert 0 < count < 2 * len(tree)
        assert (tokens.parent < np.arange(count)).all() and (np.diff(tokens.where) >= 0).all()
        for at in range(count):
            above = int(tree.parent[tokens.where[at]])
            if above < 0:
                assert tokens.parent[at] == -1
            else:
                holder = int(tokens.parent[at])
                later = tokens.where[holder + 1] if holder + 1 < count else len(tree)
                assert tokens.where[holder] <= above < later


def test_what_is_written_already_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Path, object]] = []
    monkeypatch.setattr(vocabularies, "lives", lambda _: [])
    monkeypatch.setattr(vocabularies, "_steps", lambda *_: steps())
    monkeypatch.setattr(
        vocabularies, "write_sheets", lambda folder, to, told, **how: asked.append((to, how["coding"].hash))
    )
    written = [*write_codings(tmp_path, tmp_path / "to", lambda _: None, sizes=(64,))]
    assert [each.folder.name for each in written] == [
        "64-symbols",
        "64-symbols-without-guard",
        "64-symbols-by-the-published-rule",
    ]
    assert [to for to, _ in asked] == [each.folder for each in written]
    again = list(asked)
    asked.clear()
    assert len([*write_codings(tmp_path, tmp_path / "to", lambda _: None, sizes=(64,))]) == 3 and asked == again


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([], "no sheets are named"),
        (["--vocabularies", "lives", "--paper"], "one thing at a time"),
        (["--vocabularies", "lives", "--sheets", "sheets"], "one thing at a time"),
    ],
)
def test_an_ablation_is_of_parts_or_of_vocabularies(
    tmp_path: Path, words: list[str], why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model", "ablate", "--to", str(tmp_path / "made"), *words]) == 2
    assert why in capsys.readouterr().err
