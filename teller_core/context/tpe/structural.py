"""Structural Trace Pair Encoding: merges that follow the tree, so that every token hangs together and decodes.

The paper's rule (section 4.2; :mod:`reference`) merges neighbors of a depth-first stream, which straddle unrelated subtrees.
Here a token is a piece of the tree: see :mod:`pieces` for the three pairs that may merge, and for runs.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from teller_core.context.tpe import pieces
from teller_core.context.tpe.forest import EXTEND, HEAD, HIGH, JOIN, LABEL, MOST_LABELS, NONE, TAIL, Forest, know
from teller_core.context.tpe.vocabulary import Merge, Vocabulary
from teller_core.context.tpe.words import words
from teller_core.data.table import Int32, Int64
from teller_core.data.tokens import Encoded, Tokens
from teller_core.data.tree import Tree

Mask = npt.NDArray[np.bool_]
PLACES = 10
"""Places of pairs a row: it has two slots, and each merge, which there are fewer of than rows, changes eight at most."""


def encode(tree: Tree, vocabulary: Vocabulary, opened: Mask | None = None) -> Encoded:
    """``tree`` as tokens. ``opened`` bool a row: rows that stay tokens of their own, whatever the vocabulary says."""
    # What is known is merged first: what is folded tells little.
    found, of = words(tree.trace)
    numbers = np.array([vocabulary.symbol(text) for text in found], dtype=np.int32)
    symbol = numbers[of] if len(of) else np.empty(0, dtype=np.int32)
    forest = planted(symbol, tree.parent, tree.stop, opened, vocabulary.keys)
    pieces.look_everywhere(forest)
    pieces.merge_by_rank(forest, len(vocabulary.merges), vocabulary.base, np.empty(2 * len(symbol), dtype=np.int32))
    pieces.fold(forest, vocabulary.known, vocabulary.layer, vocabulary.folded)
    known = np.array([text in vocabulary.number for text in found], dtype=np.bool_)
    strange = np.flatnonzero(~known[of]) if len(of) else np.empty(0, dtype=np.int64)
    unseen = [found[of[row]] for row in strange.tolist()]
    tokens, told, first = _tokens(tree, forest)
    return Encoded(tokens, told, first, unseen, vocabulary.hash)


def planted(
    symbol: Int32,
    parent: Int32,
    stop: Int32,
    opened: Mask | None,
    keys: Int64,
    *,
    weight: Int32 | None = None,
    learned: int = 0,
    runs: bool = True,
) -> Forest:
    """The forest of all rows, with the pairs ``keys`` known by their order. ``learned``: room for so many more pairs;
    ``runs``: what is alike side by side is counted.
    """
    rows, pairs = len(symbol), len(keys) + learned
    table = 1 << max(4, (2 * pairs).bit_length())
    mark = np.array([NONE, 0, 0, 0, 0, runs], dtype=np.int64)
    forest = Forest(
        node=np.empty((8, rows), dtype=np.int32),
        shut=np.zeros(rows, dtype=np.uint8) if opened is None else opened.astype(np.uint8),
        weight=np.ones(rows, dtype=np.int32) if weight is None else weight,
        slot=np.full(2 * rows, NONE, dtype=np.int32),
        told=np.empty(rows, dtype=np.int64),
        link=np.empty(rows, dtype=np.int32),
        place=np.empty((2, PLACES * rows), dtype=np.int32),
        mark=mark,
        key=np.empty(table, dtype=np.int64),
        at=np.full(table, NONE, dtype=np.int32),
        known=np.empty(pairs, dtype=np.int64),
        times=np.zeros(pairs, dtype=np.int64),
        first=np.full(pairs, NONE, dtype=np.int32),
        heap=np.empty((2, learned), dtype=np.int32),
        shown=np.empty(learned, dtype=np.int64),
    )
    pieces.plant(forest, symbol, parent, stop)
    for key in keys.tolist():
        know(forest, key)
    return forest


def _tokens(tree: Tree, forest: Forest) -> tuple[Tokens, Int64, Int32]:
    """The live tokens as a table, and what no symbol tells of them."""
    node, trace = forest.node, tree.trace
    low = np.flatnonzero(node[HIGH] != NONE).astype(np.int32)
    high = node[HIGH, low]
    owner = np.repeat(np.arange(len(low), dtype=np.int32), high - low)
    above = tree.parent[low]
    parent = np.where(above < 0, NONE, owner[np.maximum(above, 0)] if len(owner) else NONE).astype(np.int32)
    told, first = _told(forest, low)
    run = np.ones(len(low), dtype=np.int32)
    counted = (node[LABEL, low] & 1).astype(np.bool_)
    run[counted] = told[first[:-1][counted]]
    own = tree.self_time()
    where = _largest(own, low, owner)
    total = np.add.reduceat(own, low) if len(low) else np.empty(0, dtype=np.int64)
    start = trace.start[low] - (trace.start[0] if len(low) else 0)
    tokens = Tokens(
        symbol=node[LABEL, low] >> 1,
        run=run,
        parent=parent,
        depth=_depth(parent),
        low=low,
        high=high,
        own=total,
        largest=own[where],
        where=where,
        start=start,
    )
    return tokens, told, first


def _told(forest: Forest, low: Int32) -> tuple[Int64, Int32]:
    flat: list[int] = []
    first = [0]
    told, link = forest.told.tolist(), forest.link.tolist()
    ends = zip(forest.node[HEAD, low].tolist(), forest.node[TAIL, low].tolist(), strict=True)
    for head, tail in ends:
        at = head
        while at != NONE:
            flat.append(told[at])
            at = link[at] if at != tail else NONE
        first.append(len(flat))
    return np.array(flat, dtype=np.int64), np.array(first, dtype=np.int32)


def _largest(own: Int64, low: Int32, owner: Int32) -> Int32:
    """int32 a token: its row with the largest self time, the first of several."""
    if not len(low):
        return np.empty(0, dtype=np.int32)
    top = np.maximum.reduceat(own, low)
    hit = np.flatnonzero(own == top[owner])
    where = np.empty(len(low), dtype=np.int32)
    where[owner[hit][::-1]] = hit[::-1]
    return where


def _depth(parent: Int32) -> Int32:
    depth: list[int] = []
    above: int
    for above in parent.tolist():
        depth.append(0 if above < 0 else depth[above] + 1)
    return np.array(depth, dtype=np.int32)


def decode(encoded: Encoded, vocabulary: Vocabulary) -> tuple[list[str], list[int]]:
    """The word and the parent (-1 for none) of every row. Raises ValueError where the tokens are another vocabulary's."""
    if encoded.vocabulary != vocabulary.hash:
        raise ValueError("the tokens were made with another vocabulary")
    growth = _Growth(vocabulary, encoded.unseen)
    tokens = encoded.tokens
    hook: list[int] = []
    for at in range(len(tokens)):
        above = int(tokens.parent[at])
        low, high = encoded.first[at : at + 2].tolist()
        label = 2 * int(tokens.symbol[at]) + (int(tokens.run[at]) > 1)
        hook.append(growth.grow(label, NONE if above < 0 else hook[above], iter(encoded.told[low:high].tolist())))
    return growth.words, growth.parents


def parts_of(key: int) -> Merge:
    """Kind, left and right label of the key of a pair."""
    return key >> 60, (key >> 30) & (MOST_LABELS - 1), key & (MOST_LABELS - 1)


class _Growth:
    """Rows so far, of which a symbol makes more."""

    def __init__(self, vocabulary: Vocabulary, unseen: Sequence[str]) -> None:
        self.vocabulary = vocabulary
        self.unseen = iter(unseen)
        self.words: list[str] = []
        self.parents: list[int] = []

    def grow(self, label: int, below: int, told: Iterator[int]) -> int:
        """Add the rows of ``label`` below row ``below``; returns the row below which what remains of them hangs."""
        times = next(told) if label & 1 else 1
        hook = below
        for _ in range(times):
            hook = self._piece(label >> 1, below, told)
        return hook

    def _piece(self, symbol: int, below: int, told: Iterator[int]) -> int:
        base, folded = self.vocabulary.base, self.vocabulary.folded
        if symbol < folded:
            known = symbol < len(self.vocabulary.words)
            self.words.append(self.vocabulary.words[symbol] if known else next(self.unseen))
            self.parents.append(below)
            return len(self.words) - 1
        kind, left, right = parts_of(next(told)) if symbol < base else self.vocabulary.merges[symbol - base]
        hook = self.grow(left, below, told)
        under = self.grow(right, below if kind == JOIN else hook, told)
        return under if kind == EXTEND else hook
