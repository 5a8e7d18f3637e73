"""Structural Trace Pair Encoding: merges that follow the tree, so that every token hangs together and decodes.

The paper's rule (section 4.2; :mod:`reference`) merges neighbors of a depth-first stream, which straddle unrelated subtrees.
Here a token is a piece of the tree: see :mod:`pieces` for the three pairs that may merge, and for runs.
"""

import numpy as np
import numpy.typing as npt

from teller_core.context.tpe import pieces
from teller_core.context.tpe.columns import self_times, tokens_of
from teller_core.context.tpe.forest import EXTEND, JOIN, NONE
from teller_core.context.tpe.light import HIDDEN, extents, inside
from teller_core.context.tpe.planting import planted
from teller_core.context.tpe.vocabulary import Vocabulary
from teller_core.context.tpe.words import word
from teller_core.data.table import Mask
from teller_core.data.tokens import Encoded
from teller_core.data.trace import Trace
from teller_core.data.tree import Tree

_GROW, _HANG, _KEEP_FIRST, _KEEP_LAST = 0, 1, -1, -2
"""What is to be done for rows to grow: below a row; below what has grown last; forget the last hook, or the one before it."""


def encode(tree: Tree, vocabulary: Vocabulary, opened: Mask | None = None) -> Encoded:
    """``tree`` as tokens. ``opened`` bool a row: rows that stay tokens of their own, whatever the vocabulary says."""
    own = self_times(tree)
    alone = np.zeros(len(tree), dtype=np.uint8) if opened is None else opened.astype(np.uint8)
    extent = extents(tree, own, alone, vocabulary.share)
    symbol = vocabulary.symbols.of(tree.trace)
    unseen = _unseen(tree.trace, np.flatnonzero((extent > HIDDEN) & (symbol >= len(vocabulary.words))))
    light = np.flatnonzero(extent < HIDDEN)
    symbol[light] = vocabulary.light + tree.trace.layer[light].astype(np.int32)
    forest = planted(symbol, tree.parent, tree.stop, vocabulary.pairs, extent=extent, opened=alone)
    pieces.look_everywhere(forest)
    pieces.merge_by_rank(forest, len(vocabulary.merges), vocabulary.base, np.empty(2 * len(symbol), dtype=np.int32))
    tokens, told = tokens_of(tree, forest, own)
    return Encoded(tokens, told, unseen, inside(tree, extent), vocabulary.hash)


def _unseen(trace: Trace, strange: npt.NDArray[np.intp]) -> list[str]:
    called = zip(trace.name[strange].tolist(), trace.layer[strange].tolist(), strict=True)
    return [word(str(trace.names[name]), layer) for name, layer in called]


def decode(encoded: Encoded, vocabulary: Vocabulary) -> tuple[list[str], list[int]]:
    """The word and the parent (-1 for none) of every row. Raises ValueError where the tokens are another vocabulary's."""
    if encoded.vocabulary != vocabulary.hash:
        raise ValueError("the tokens were made with another vocabulary")
    growth = _Growth(vocabulary, encoded)
    tokens = encoded.tokens
    hook: list[int] = []
    label = 2 * tokens.symbol.astype(np.int64) + (tokens.run > 1)
    above: int
    for each, above in zip(label.tolist(), tokens.parent.tolist(), strict=True):
        hook.append(growth.grow(each, NONE if above < 0 else hook[above]))
    return growth.words, growth.parents


class _Growth:
    """Rows so far, of which a label makes more. A merge may hold as many others as there are: a list says what is to come."""

    def __init__(self, vocabulary: Vocabulary, encoded: Encoded) -> None:
        self.vocabulary = vocabulary
        self.unseen = iter(encoded.unseen)
        self.told = iter(encoded.told.tolist())
        within = encoded.inside
        self.sizes = iter(within.rows.tolist())
        self.hidden = map(word, [str(within.names[int(at)]) for at in within.name], within.layer.tolist())
        self.above = iter(within.above.tolist())
        self.words: list[str] = []
        self.parents: list[int] = []

    def grow(self, label: int, below: int) -> int:
        """Add the rows of ``label`` below row ``below``; returns the row below which what remains of them hangs."""
        hooks: list[int] = []  # the like of what is returned, of all that is grown and not yet part of something larger
        coming = [(_GROW, label, below)]
        while coming:
            what, label, below = coming.pop()
            if what == _HANG:
                coming.append((_GROW, label, hooks[-1]))
            elif what == _GROW and label & 1 == 0 and not self._is_pair(label >> 1):
                hooks.append(self._rows(label >> 1, below))
            elif what == _GROW:
                coming += self._parts(label, below)
            else:
                del hooks[what]
        return hooks.pop()

    def _is_pair(self, symbol: int) -> bool:
        return symbol >= self.vocabulary.base

    def _rows(self, symbol: int, below: int) -> int:
        """Add the row of ``symbol``, or the rows of a light piece; returns the first."""
        first = len(self.parents)
        if symbol >= self.vocabulary.light:
            for row in range(first, first + next(self.sizes)):
                above = next(self.above)
                self.words.append(next(self.hidden))
                self.parents.append(row - above if above else below)
            return first
        known = symbol < len(self.vocabulary.words)
        self.words.append(self.vocabulary.words[symbol] if known else next(self.unseen))
        self.parents.append(below)
        return first

    def _parts(self, label: int, below: int) -> list[tuple[int, int, int]]:
        """What to do for a run or a merge, the first thing last."""
        if label & 1:
            one = (_GROW, label - 1, below)
            return [*[(_KEEP_LAST, 0, 0), one] * (next(self.told) - 1), one]
        kind, left, right = self.vocabulary.merges[(label >> 1) - self.vocabulary.base]
        keep = _KEEP_LAST if kind == EXTEND else _KEEP_FIRST
        return [(keep, 0, 0), (_GROW if kind == JOIN else _HANG, right, below), (_GROW, left, below)]
