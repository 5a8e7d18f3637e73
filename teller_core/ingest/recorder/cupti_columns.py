"""Columns of a trace gathered kind by kind: names, lanes and arguments are made once for each value, not once a row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Int32, Int64
from teller_core.data.trace import NO_LINK, Lane, Layer

Column = npt.NDArray[Any]
PARTS = ("start", "end", "name", "lane", "category", "layer", "link", "arg")
_ODD = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xD6E8FEB86659FD93)


def combined(columns: Sequence[Column]) -> Int64:
    """int64: a number for each row, the same for rows alike in all ``columns``, counted from 0."""
    with np.errstate(over="ignore"):
        mixed = np.zeros(len(columns[0]), dtype=np.uint64)
        for column in columns:
            mixed = (mixed + _ODD) ^ column.astype(np.uint64)
            mixed *= _MIX
            mixed ^= mixed >> np.uint64(32)
    _, first, code = np.unique(mixed, return_index=True, return_inverse=True)
    if all(np.array_equal(column[first[code]], column) for column in columns):
        return code.astype(np.int64)
    stacked = np.stack(
        [column.astype(np.int64) for column in columns], axis=1
    )  # two rows met by chance: once in 10^8 files
    return np.unique(stacked, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)


@dataclass
class Columns:
    """Rows of a trace to be. ``names``, ``lanes``, ``categories``: number by value. ``args``: by position."""

    parts: dict[str, list[Column]] = field(default_factory=lambda: {name: [] for name in PARTS})
    names: dict[str, int] = field(default_factory=dict[str, int])
    lanes: dict[Lane, int] = field(default_factory=dict[Lane, int])
    categories: dict[str, int] = field(default_factory=dict[str, int])
    args: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def __len__(self) -> int:
        return sum(len(part) for part in self.parts["start"])

    def add(
        self,
        rows: Column,
        category: str,
        layer: Layer,
        *,
        name: Int32,
        lane: Int32,
        link: Column | None,
        arg: Int32 | None,
    ) -> None:
        """Append ``rows``, whose ``start`` and ``end`` are ns of CUPTI's clock; without a ``link`` or ``arg`` where None."""
        count = len(rows)
        number = self.categories.setdefault(category, len(self.categories))
        new = {
            "start": rows["start"].astype(np.int64),
            "end": rows["end"].astype(np.int64),
            "name": name,
            "lane": lane,
            "category": np.full(count, number, dtype=np.uint8),
            "layer": np.full(count, layer, dtype=np.uint8),
            "link": np.full(count, NO_LINK, dtype=np.int64) if link is None else link.astype(np.int64),
            "arg": np.full(count, -1, dtype=np.int32) if arg is None else arg,
        }
        for part, column in new.items():
            self.parts[part].append(column)

    def whole(self) -> dict[str, Column]:
        """All rows, a column each."""
        return {name: np.concatenate(parts) for name, parts in self.parts.items()}

    def names_of(self, code: Column, name: Callable[[int], str]) -> Int32:
        """int32 numbers of the names that ``name`` gives the values of ``code``."""
        values, back = np.unique(code, return_inverse=True)
        return self._numbers(self.names, [name(value) for value in values.tolist()])[back]

    def names_of_rows(self, code: Int64, columns: Sequence[Column], name: Callable[..., str]) -> Int32:
        """As :meth:`names_of` for rows of several ``columns``, told apart by ``code``."""
        return self._numbers(self.names, [name(*row) for row in _firsts(code, columns)])[code]

    def lanes_of(self, columns: Sequence[Column], lane: Callable[..., Lane]) -> Int32:
        """int32 numbers of the lanes that ``lane`` gives the rows of ``columns``."""
        code = combined(columns)
        return self._numbers(self.lanes, [lane(*row) for row in _firsts(code, columns)])[code]

    def args_of(self, columns: Sequence[Column], said: Callable[..., dict[str, Any]]) -> Int32:
        """int32 positions of the arguments that ``said`` gives the rows of ``columns``."""
        code = combined(columns)
        first = len(self.args)
        self.args += [said(*row) for row in _firsts(code, columns)]
        return (code + first).astype(np.int32)

    def _numbers(self, table: dict[Any, int], values: Sequence[str | Lane]) -> Int32:
        return np.array([table.setdefault(value, len(table)) for value in values], dtype=np.int32)


def _firsts(code: Int64, columns: Sequence[Column]) -> list[tuple[int, ...]]:
    """The values of ``columns`` at the first row of each code."""
    first = np.unique(code, return_index=True)[1]
    return list(zip(*(column[first].tolist() for column in columns), strict=True))
