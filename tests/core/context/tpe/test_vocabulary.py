"""The file of a vocabulary: what is written is read again, and nothing else is."""

from collections.abc import Callable
from pathlib import Path

import pytest

from teller_core.context.tpe.default import FILE, default
from teller_core.context.tpe.train import train
from teller_core.context.tpe.vocabulary import Vocabulary, described, load
from teller_core.errors import FormatError
from tests.core.context.tpe.forests import sample_of

ROWS = [(0, -1), (1, 0), (2, 1), (1, 0), (2, 3), (1, 0), (2, 5)]


@pytest.fixture
def made() -> Vocabulary:
    return train([sample_of(ROWS, 2)], 64)


def test_what_is_written_is_read_again_with_its_hash(made: Vocabulary, tmp_path: Path) -> None:
    made.write(tmp_path / "v.tpe")
    again = load(tmp_path / "v.tpe")
    assert (again, again.hash) == (made, made.hash)
    assert made.merges


def test_a_person_can_read_what_each_symbol_stands_for(made: Vocabulary, tmp_path: Path) -> None:
    made.write(tmp_path / "v.tpe")
    lines = (tmp_path / "v.txt").read_text().splitlines()
    assert len(lines) == len(made)
    assert any("b(c)" in line for line in lines)
    assert described(made).splitlines() == lines


def test_the_vocabulary_that_comes_with_the_project_is_whole_and_the_words_beside_it_are_its_own() -> None:
    vocabulary = default()
    assert vocabulary.words and vocabulary.merges
    assert FILE.with_suffix(".txt").read_text(encoding="utf-8") == described(vocabulary)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text.replace("teller-tpe 2", "teller-tpe 1"),
        lambda text: text.replace("buckets 1", "buckets 2"),
        lambda text: text[: len(text) // 2],
        lambda text: text + "more\n",
        lambda text: "",
    ],
)
def test_a_file_that_was_changed_is_refused(made: Vocabulary, tmp_path: Path, damage: Callable[[str], str]) -> None:
    made.write(tmp_path / "v.tpe")
    (tmp_path / "v.tpe").write_text(damage((tmp_path / "v.tpe").read_text()))
    with pytest.raises(FormatError):
        load(tmp_path / "v.tpe")
