"""The file of a vocabulary: what is written is read again, and nothing else is."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.context.tpe.default import FILE, default
from teller_core.context.tpe.train import learned, train
from teller_core.context.tpe.vocabulary import MOST_BYTES, MOST_SYMBOLS, Vocabulary, described, load
from teller_core.errors import FormatError, InputError
from tests.core.context.tpe.forests import sample_of, tree_of

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


def sealed(lines: list[str]) -> str:
    """A file with the hash of its content."""
    text = "".join(f"{line}\n" for line in lines)
    return f"{text}sha256 {hashlib.sha256(text.encode()).hexdigest()}\n"


BASE = ["teller-tpe 2", "made by hand", "light 0", "buckets 1", "words 1", "operator a"]
NEXT = 2 * (1 + 8 + 8)
"""The label of the first merge of BASE."""


def test_what_is_written_by_hand_is_read_where_its_merges_are_of_symbols_before_them(tmp_path: Path) -> None:
    merges = ["join 0 0", *(f"join {NEXT + 2 * at} {NEXT + 2 * at}" for at in range(40))]
    (tmp_path / "v.tpe").write_text(sealed([*BASE, f"merges {len(merges)}", *merges]))
    assert max(map(len, load(tmp_path / "v.tpe").texts)) <= 400  # though the last stands for 2**41 calls


@pytest.mark.parametrize(
    "lines",
    [
        [*BASE, "merges 1", f"absorb 0 {NEXT}"],
        [*BASE, "merges 1", f"join {NEXT + 1} 0"],
        [*BASE, "merges 2", f"absorb 0 {NEXT + 2}", "absorb 0 0"],
        [*BASE, "merges 1", "extend 0 999999999"],
        [*BASE, "merges 1", f"extend 0 {1 << 70}"],
        [*BASE, "merges 1", "extend 0 -5"],
        [*BASE[:3], "buckets 0", *BASE[4:], "merges 0"],
        [*BASE[:3], "buckets -1", *BASE[4:], "merges 0"],
        [*BASE[:3], "buckets 1000000000", *BASE[4:], "merges 0"],
        [*BASE[:2], "light -3", *BASE[3:], "merges 0"],
        [*BASE[:2], f"light {10**30}", *BASE[3:], "merges 0"],
        [*BASE[:4], "words 2", "operator a", "operator a", "merges 0"],
        [*BASE[:5], "a", "merges 0"],
        [*BASE[:5], "operator \x1b[31m", "merges 0"],
        [*BASE[:5], "operator " + "a" * MOST_BYTES, "merges 0"],
    ],
)
def test_a_file_whose_hash_fits_is_refused_where_a_number_or_a_word_is_none(lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "v.tpe").write_text(sealed(lines))
    with pytest.raises(FormatError):
        load(tmp_path / "v.tpe")


@pytest.mark.parametrize(
    "name", ["\x1b[31mred", "two\nlines", "\ud800", "\u202eback", "", "light operator", "sha256 0", "a\x00"]
)
def test_whatever_spans_are_called_the_vocabulary_is_read_again_and_shows_nothing_odd(
    name: str, tmp_path: Path
) -> None:
    tree = tree_of(ROWS)
    tree = replace(tree, trace=replace(tree.trace, names=[name, "b", "c", "d"]))
    made = learned([tree, tree], 64, share=0)
    made.write(tmp_path / "v.tpe")
    assert load(tmp_path / "v.tpe") == made
    assert all(line.replace("\t", "").isprintable() for line in described(made).splitlines())
    assert len(described(made).splitlines()) == len(made)


@pytest.mark.parametrize("size", [-1, 0, 1, 31, MOST_SYMBOLS + 1])
def test_a_size_that_no_vocabulary_has_is_refused(size: int) -> None:
    with pytest.raises(InputError):
        learned([tree_of(ROWS)], size)


def test_from_nothing_a_vocabulary_without_words_is_learned_and_no_size_is_passed() -> None:
    assert learned([], 64).words == ()
    assert max(len(learned([tree_of(ROWS)] * 9, size)) - size for size in range(32, 200)) <= 0
