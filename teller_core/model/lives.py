"""Sheets with their truth, as files of the training side, to what training takes."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from teller_core.data.sheets import Kind, cause_ids
from teller_core.data.sheets_file import HEALTHY, Taught, read_taught
from teller_core.data.table import Int8, Int32, Int64
from teller_core.errors import InputError
from teller_core.model.card import Reads
from teller_core.model.classes import FIRST, NONE
from teller_core.model.inputs import Inputs, owners
from teller_core.model.preparing import CAUSE_CODE, marked, prepared, unjudged
from teller_core.model.training import Life

if TYPE_CHECKING:
    from teller_core.data.report import Verdict

SUFFIX = ".npz"
KIND = ("engine", "ranks", "cache")
"""What a life is told by that makes it of another kind than others: lives of each are kept to choose by. Of a replayed recording
nothing of it is told.
"""
TRAIN = "train"
MOST_LESSONS = 400
"""Sheets of a life that are told in words: one after another they say much the same."""
CALM: "tuple[Verdict, ...]" = ("typical_here", "typical_here", "normal", "could_not_tell")
"""What is said of a healthy request, drawn by chance: which of them holds is decided elsewhere, and each has words."""


def lives_in(folder: Path, seed: int, progress: Callable[[str], None]) -> tuple[list[Life], Reads]:
    """The lives whose sheets are in ``folder``, and what a model of them reads and speaks.

    Raises InputError where there are none, where one is not of the training side, or where their tokens are of different
    vocabularies; FormatError for a damaged file.
    """
    from teller_core.model.words.grammar import grammar, words_hash

    paths = sorted(folder.glob(f"*{SUFFIX}"))
    if not paths:
        raise InputError(f"--sheets {folder.name}", "no sheets are in it", "Write some: teller lab sheets")
    lives: list[Life] = []
    vocabularies, symbols = set[str](), 0
    for at, path in enumerate(paths, 1):
        progress(f"life {at} of {len(paths)}")
        taught = read_taught(path)
        if taught.about.get("side") != TRAIN:
            raise InputError(f"--sheets {folder.name}", f"{path.name} is not of the training side", "Take it away")
        vocabularies |= {taught.sheets.vocabulary} - {""}
        symbols = max(symbols, int(taught.sheets.pieces.symbol.max(initial=-1)) + 1)
        chance = np.random.default_rng([seed, *taught.life.encode()])
        inputs = inputs_of(taught, chance)
        kind = " ".join(taught.about.get(name, "") for name in KIND).strip()
        lives.append(Life(taught.life, sha256(path.read_bytes()).hexdigest(), inputs, kind))
    if len(vocabularies) > 1:
        raise InputError(
            f"--sheets {folder.name}", "they are of different vocabularies", "Write them again, all together"
        )
    vocabulary = next(iter(vocabularies), "")
    return lives, Reads(vocabulary, max(symbols, 1), words_hash(), len(grammar().words))


def inputs_of(taught: Taught, chance: np.random.Generator | None = None) -> Inputs:
    """``taught`` as numbers; with ``chance`` also with what is to be said of some of its requests."""
    cause = classes_of(taught.cause)
    words, offsets = lessons(taught, cause, chance)
    told = {"abnormal": taught.abnormal, "cause": cause, "words": words, "offsets": offsets}
    plain = prepared(taught.sheets, replace(unjudged(len(cause)), **told))
    guilty = {"pieces": taught.guilty, "suspects": taught.guilty_suspect}
    some = np.zeros(len(cause), dtype=np.bool_)
    for name, each in guilty.items():
        some[owners(plain.parts[name])[each == 1]] = True
    parts = {
        name: marked(plain.parts[name], np.where(some[owners(plain.parts[name])], each, -1).astype(np.int8))
        for name, each in guilty.items()
    }
    facts, own = plain.facts, owners(plain.facts)
    cited = np.where(cause[own] >= NONE, facts.codes[:, CAUSE_CODE] == cause[own] - FIRST, -1).astype(np.int8)
    late = _late(taught.sheets.together.rank, owners(plain.together), taught.rank)
    return replace(plain, facts=marked(facts, cited), together=marked(plain.together, late), **parts)


def _late(rank: Int32, own: Int64, blamed: Int32) -> Int8:
    """1 for the rank to blame, 0 for others of its sheet, -1 where none is or it is not among them."""
    right = (rank == blamed[own]) & (blamed[own] >= 0)
    told = np.zeros(len(blamed), dtype=np.bool_)
    told[own[right]] = True
    return np.where(told[own], right, -1).astype(np.int8)


def classes_of(causes: Sequence[str]) -> Int32:
    """int32: the class of each, -1 where nobody judges."""
    number = {HEALTHY: NONE, **{key: FIRST + at for at, key in enumerate(cause_ids())}}
    return np.array([number.get(key, -1) for key in causes], dtype=np.int32)


def lessons(taught: Taught, cause: Int32, chance: np.random.Generator | None) -> tuple[Int32, Int64]:
    """int32 words of all sheets, and int64 [n + 1] where those of each begin: none but of MOST_LESSONS requests."""
    offsets = np.zeros(len(cause) + 1, dtype=np.int64)
    if chance is None:
        return np.empty(0, dtype=np.int32), offsets
    from teller_core.model.words.lessons import lesson

    may = np.flatnonzero((taught.sheets.kind == Kind.REQUEST) & (cause >= NONE))
    rows: Int64 = np.sort(chance.permutation(may)[:MOST_LESSONS])
    said: list[Int32] = []
    for row in rows.tolist():
        key = taught.cause[int(row)] if cause[row] >= FIRST else ""
        verdict: Verdict = "cause" if key else CALM[int(chance.integers(len(CALM)))]
        words = lesson(taught.sheets, row, verdict, key, chance)
        said.append(words)
        offsets[row + 1] = len(words)
    return np.concatenate([np.empty(0, dtype=np.int32), *said]), np.cumsum(offsets)
