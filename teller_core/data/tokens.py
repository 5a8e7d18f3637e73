"""A tree of calls as tokens of Trace Pair Encoding."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teller_core.data.table import Int32, Int64, UInt8, check_columns


@dataclass(frozen=True)
class Tokens:
    """One row a token, in pre-order. A token stands for rows ``low`` to ``high`` of its tree, which hang together.

    ``symbol`` int32 into the vocabulary; ``run`` int32: how many neighbors alike it counts, 1 for one; ``parent`` int32: the
    token it hangs below, -1 for none; ``depth`` int32: tokens above it; ``low``, ``high`` int32; ``own`` int64 ns: the self time
    of its rows together; ``largest`` int64 ns and ``where`` int32: the largest of them and its row; ``start`` int64 ns after the
    tree's first row.
    """

    symbol: Int32
    run: Int32
    parent: Int32
    depth: Int32
    low: Int32
    high: Int32
    own: Int64
    largest: Int64
    where: Int32
    start: Int64

    def __len__(self) -> int:
        return len(self.symbol)

    def check(self) -> None:
        """Raise ValueError where the tokens do not cover rows one after another, below tokens that come before them."""
        check_columns(self)
        if not len(self):
            return
        if self.low[0] != 0 or np.any(self.low[1:] != self.high[:-1]) or np.any(self.low >= self.high):
            raise ValueError("the rows of the tokens do not follow one another")
        if np.any(self.parent >= np.arange(len(self))) or np.any(self.parent < -1):
            raise ValueError("a parent must come before its child")
        above = np.append(self.depth, -1)[self.parent]
        if np.any(self.depth != above + 1):
            raise ValueError("a token does not lie one below its parent")
        if np.any((self.where < self.low) | (self.where >= self.high)):
            raise ValueError("the largest self time lies outside its token")


@dataclass(frozen=True)
class Inside:
    """What light pieces hold, in pre-order. ``rows`` int32 a piece: how many; then a row: ``name`` int32 into ``names``,
    ``layer`` uint8, and ``above`` int32: how many rows before it its parent lies, 0 where it hangs where the piece does.
    """

    rows: Int32
    names: Sequence[str]
    name: Int32
    layer: UInt8
    above: Int32


@dataclass(frozen=True)
class Encoded:
    """The tokens of one tree with what no symbol holds.

    ``told`` int64: the lengths of runs, token by token, in pre-order. ``unseen``: the words of rows
    that the vocabulary does not know, in pre-order, those of light pieces apart, which ``inside`` has. ``vocabulary``: its hash.
    """

    tokens: Tokens
    told: Int64
    unseen: Sequence[str]
    inside: Inside
    vocabulary: str
