"""Numbers for what repeats: keys of several columns, the strings behind ids, and what each of them means."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.table import Int32, Int64, UInt8
from teller_core.errors import LimitError
from teller_core.ingest.jsonl import text_of
from teller_core.ingest.nsight.cells import MISSING, number_keys
from teller_core.ingest.nsight.names import Meaning

LONGEST = 4096
"""Characters of a name: real kernel names reach a few thousand."""
MAX_CATEGORIES = 255
DENSE = 8
"""Ids up to this many times their count are looked up in a table; others are searched."""


class Keys:
    """Distinct rows of ``fields`` int64 columns under numbers from 0, in the order in which they were first seen."""

    def __init__(self, fields: int) -> None:
        self._slots = np.full(1 << 9, -1, dtype=np.int32)
        self._keys = np.zeros((1 << 8, fields), dtype=np.int64)
        self._used = np.zeros(2, dtype=np.int64)

    def __len__(self) -> int:
        return int(self._used[0])

    def numbers(self, columns: Int64) -> Int32:
        """int32 a row of ``columns`` (fields, rows): its number, new rows numbered on."""
        out = np.empty(columns.shape[1], dtype=np.int32)
        columns = np.ascontiguousarray(columns)
        done = number_keys(columns, out, self._slots, self._keys, self._used, 0)
        while done < len(out):
            self._grow()
            done = number_keys(columns, out, self._slots, self._keys, self._used, done)
        return out

    def rows(self) -> Int64:
        """int64 (keys, fields)."""
        return self._keys[: len(self)]

    def _grow(self) -> None:
        known = self.rows()
        self._slots = np.full(4 * len(self._keys), -1, dtype=np.int32)
        self._keys = np.zeros((2 * len(known), known.shape[1]), dtype=np.int64)
        self._used = np.zeros(2, dtype=np.int64)
        self.numbers(known.T)


class Strings:
    """The string behind each id of a StringIds table, as the number of its text."""

    def __init__(self, ids: Int64, texts: Int64) -> None:
        order = np.argsort(ids, kind="stable")
        self._ids, self._texts = ids[order], texts[order]
        self._table = np.empty(0, dtype=np.int64)
        if len(ids) and int(self._ids[0]) >= 0 and int(self._ids[-1]) < DENSE * len(ids) + (1 << 20):
            self._table = np.full(int(self._ids[-1]) + 1, MISSING, dtype=np.int64)
            self._table[self._ids] = self._texts

    def texts(self, ids: Int64) -> Int64:
        """int64: the number of the text of each id, MISSING where there is none."""
        if not len(self._ids):
            return np.full(len(ids), MISSING, dtype=np.int64)
        if len(self._table):
            inside = (ids >= 0) & (ids < len(self._table))
            return np.where(inside, self._table[np.where(inside, ids, 0)], MISSING)
        at = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[at] == ids, self._texts[at], MISSING)


@dataclass
class Words:
    """The names, categories and arguments of a file, each once, under the numbers that rows know them by."""

    names: dict[str, int] = field(default_factory=lambda: {"": 0})
    categories: dict[str, int] = field(default_factory=lambda: {"": 0})
    said: dict[str, int] = field(default_factory=lambda: {"": 0})

    def name(self, text: str) -> int:
        """The number of a name, cleaned."""
        return self.names.setdefault(text_of(text, LONGEST), len(self.names))

    def category(self, word: str) -> int:
        """The number of a category. Errors: LimitError over MAX_CATEGORIES."""
        number = self.categories.setdefault(word, len(self.categories))
        if number > MAX_CATEGORIES:
            raise LimitError("the export", f"over {MAX_CATEGORIES} kinds of tables", "Name an export of Nsight Systems")
        return number


@dataclass
class Rows:
    """What codes mean, a row each."""

    name: Int32
    layer: UInt8
    category: UInt8
    said: Int32


class Meanings:
    """What codes (numbers of texts, or of keys) mean, asked once for each. Code 0 and up; MISSING is a code as well."""

    def __init__(self, words: Words, of: Callable[[int], Meaning]) -> None:
        self._words, self._of = words, of
        self._rows = np.full((4, 1 << 8), -1, dtype=np.int32)

    def rows(self, codes: Int64 | Int32) -> Rows:
        """The meaning of each code."""
        at = np.maximum(codes, -1) + 1
        largest = int(at.max(initial=0))
        if largest >= self._rows.shape[1]:
            wider = np.full((4, 2 * largest), -1, dtype=np.int32)
            wider[:, : self._rows.shape[1]] = self._rows
            self._rows = wider
        name = np.take(self._rows[0], at)
        if np.any(new := name < 0):
            for code in np.unique(at[new]).tolist():
                self._rows[:, code] = self._numbers(self._of(code - 1))
            name = np.take(self._rows[0], at)
        layer, category, said = (np.take(column, at) for column in self._rows[1:])
        return Rows(name, layer.astype(np.uint8), category.astype(np.uint8), said)

    def _numbers(self, meaning: Meaning) -> tuple[int, int, int, int]:
        words = self._words
        said = words.said.setdefault(text_of(meaning.said, LONGEST), len(words.said))
        return words.name(meaning.text), int(meaning.layer), words.category(meaning.category), said
