"""Sheets as the network takes them: numbers only, flat, with offsets. Text has become hashes, times have become logarithms."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from teller_core.data.sheets import Kind, View
from teller_core.data.table import Int8, Int32, Int64, Mask

Codes = np.ndarray[tuple[int, int], np.dtype[np.int32]]
Values = np.ndarray[tuple[int, int], np.dtype[np.float32]]
Clues = np.ndarray[tuple[int, int, int], np.dtype[np.float32]]
NAMES = ("suspects", "pieces", "said", "together", "facts")
"""The ragged parts, in the order in which they are read."""
PLAIN = ("numbers", "clues", "head", "tier")
"""The columns with a row a sheet."""
TOLD = ("abnormal", "cause", "barred")
"""The same of :class:`Wanted`."""
HEADS = len(Kind) * len(View)
"""What is asked whether it is abnormal: a step or a request, by view."""


@dataclass(frozen=True)
class Part:
    """What n sheets have of one kind. ``offsets`` int64 [n + 1] into the rest.

    ``codes`` int32 [p, c]: places in tables, -1 for none; ``values`` float32 [p, v], NaN for what is not known; ``bag`` int32:
    hashed words, those of item i from ``words[i]`` (int64 [p + 1]) on; ``target`` int8: 1 what a pointer should find, 0 what not,
    -1 nobody knows.
    """

    offsets: Int64
    codes: Codes
    values: Values
    words: Int64
    bag: Int32
    target: Int8

    def __len__(self) -> int:
        return len(self.codes)

    def check(self) -> None:
        """Raise ValueError where offsets do not fit what they are offsets into."""
        if self.offsets[0] != 0 or self.offsets[-1] != len(self) or np.any(np.diff(self.offsets) < 0):
            raise ValueError("offsets do not cover the items")
        if len(self.words) != len(self) + 1 or self.words[0] != 0 or self.words[-1] != len(self.bag):
            raise ValueError("offsets do not cover the words")
        if {len(self.values), len(self.target)} != {len(self)}:
            raise ValueError("columns differ in length")


@dataclass(frozen=True)
class Wanted:
    """What the network should say of n sheets.

    ``abnormal`` int8: 1, 0, or -1 where nobody judges; ``cause`` int32: its class, -1 where nobody judges; ``words`` int32: what
    to say, that of sheet i from ``offsets[i]`` (int64 [n + 1]) on; ``barred`` int32: a class that it must do without, as if
    training had never seen it, -1 for none.
    """

    abnormal: Int8
    cause: Int32
    offsets: Int64
    words: Int32
    barred: Int32


@dataclass(frozen=True)
class Inputs:
    """n sheets. ``numbers`` float32 [n, N] and ``clues`` float32 [n, causes, CLUE], NaN for what nobody recorded; ``head`` int32:
    below HEADS, twice its kind and its view; ``tier`` int32.
    """

    numbers: Values
    clues: Clues
    head: Int32
    tier: Int32
    suspects: Part
    pieces: Part
    said: Part
    together: Part
    facts: Part
    wanted: Wanted

    def __len__(self) -> int:
        return len(self.head)

    @property
    def requests(self) -> Mask:
        """bool: the sheets that are of requests."""
        return self.head // len(View) == Kind.REQUEST

    @property
    def parts(self) -> dict[str, Part]:
        """Its ragged parts by name, in the order in which they are read."""
        return {name: getattr(self, name) for name in NAMES}

    def check(self) -> None:
        """Raise ValueError where a part is not of these sheets."""
        for part in self.parts.values():
            part.check()
            if len(part.offsets) != len(self) + 1:
                raise ValueError("a part is of other sheets")
        if {len(self.numbers), len(self.clues), len(self.tier), len(self.wanted.cause)} != {len(self)}:
            raise ValueError("columns differ in length")


def spread(offsets: Int64, rows: Int64) -> tuple[Int64, Int64]:
    """The items of ``rows`` one behind the other (int64 positions), and the offsets that they have there."""
    length = offsets[rows + 1] - offsets[rows]
    stop = np.cumsum(length)
    first = np.repeat(offsets[rows] - (stop - length), length)
    return first + np.arange(len(first)), np.concatenate([np.zeros(1, dtype=np.int64), stop])


def taken(inputs: Inputs, rows: Int64) -> Inputs:
    """The sheets at ``rows``."""
    words, offsets = spread(inputs.wanted.offsets, rows)
    old = inputs.wanted
    told: dict[str, Any] = {name: getattr(old, name)[rows] for name in TOLD}
    wanted = Wanted(offsets=offsets, words=old.words[words], **told)
    columns: dict[str, Any] = {name: getattr(inputs, name)[rows] for name in PLAIN}
    columns |= {name: _of_sheets(part, rows) for name, part in inputs.parts.items()}
    return Inputs(wanted=wanted, **columns)


def _of_sheets(part: Part, rows: Int64) -> Part:
    items, offsets = spread(part.offsets, rows)
    return replace(_of_items(part, items), offsets=offsets)


def _of_items(part: Part, items: Int64) -> Part:
    bag, words = spread(part.words, items)
    return Part(part.offsets, part.codes[items], part.values[items], words, part.bag[bag], part.target[items])


def kept(part: Part, keep: Mask) -> Part:
    """``part`` with only the items where ``keep`` is true."""
    if keep.all():
        return part
    count = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(keep)])
    return replace(_of_items(part, np.flatnonzero(keep)), offsets=count[part.offsets])


def owners(part: Part) -> Int64:
    """int64: the sheet of each item."""
    return np.repeat(np.arange(len(part.offsets) - 1), np.diff(part.offsets))


def joined(several: Sequence[Inputs]) -> Inputs:
    """All sheets of ``several``, which must not be empty, in their order."""
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in several]) for name in PLAIN}
    columns |= {name: _joined_parts([getattr(one, name) for one in several]) for name in NAMES}
    told = [one.wanted for one in several]
    flat: dict[str, Any] = {
        field.name: np.concatenate([getattr(one, field.name) for one in told])
        for field in fields(Wanted)
        if field.name != "offsets"
    }
    return Inputs(wanted=Wanted(offsets=_stacked([one.offsets for one in told]), **flat), **columns)


def _joined_parts(several: Sequence[Part]) -> Part:
    names = ("codes", "values", "bag", "target")
    columns: dict[str, Any] = {name: np.concatenate([getattr(one, name) for one in several]) for name in names}
    columns |= {name: _stacked([getattr(one, name) for one in several]) for name in ("offsets", "words")}
    return Part(**columns)


def _stacked(several: Sequence[Int64]) -> Int64:
    """Offsets into what stands one behind the other."""
    base = np.cumsum([0, *(one[-1] for one in several)])
    later = [one[1:] + low for one, low in zip(several, base[:-1], strict=True)]
    return np.concatenate([np.zeros(1, dtype=np.int64), *later])
