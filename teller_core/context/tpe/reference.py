"""Trace Pair Encoding as the paper has it (section 4.2): the rule to compare with.

A tree is a depth-first stream of two words a span, its layer and its name; neighbors in the stream merge as in byte-pair
encoding over words, whatever the tree says. A merge keeps the parent and depth of its left part and adds durations up.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from teller_core.context.tpe import pieces
from teller_core.context.tpe.forest import HIGH, LABEL, NONE, Pairs, pairs_of
from teller_core.context.tpe.planting import planted
from teller_core.context.tpe.train import Sample, merges_of
from teller_core.context.tpe.vocabulary import Merge, keys_of
from teller_core.context.tpe.words import words
from teller_core.data.table import Int32, Int64
from teller_core.data.tree import Tree

UNKNOWN = "?"


@dataclass(frozen=True)
class Stream:
    """What the rule learned: words (the last one stands for all others), then a symbol a merge of two symbols."""

    words: tuple[str, ...]
    merges: tuple[Merge, ...]

    def __len__(self) -> int:
        return len(self.words) + len(self.merges)

    @cached_property
    def pairs(self) -> Pairs:
        """The merges as tables of pairs, which nobody changes: numbers are ranks."""
        return pairs_of(keys_of(self.merges), len(self))


@dataclass(frozen=True)
class StreamTokens:
    """One row a token: ``symbol`` int32; ``row`` int32 and ``depth`` int32: of the first span it touches; ``spans`` int32: how
    many of the spans have their name in it; ``dur`` int64 ns: theirs together, nested time counted again.
    """

    symbol: Int32
    row: Int32
    depth: Int32
    spans: Int32
    dur: Int64

    def __len__(self) -> int:
        return len(self.symbol)


def train(given: Sequence[Sample], size: int) -> Stream:
    """The rule's vocabulary of at most ``size`` symbols, half of them words at most. Raises LimitError as ``merges_of``."""
    counts: Counter[str] = Counter()
    for sample in given:
        for text, times in zip(sample.words, np.bincount(sample.of).tolist(), strict=True):
            for part in text.split(" ", 1):
                counts[part] += times * sample.weight
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    known = (*ranked[: size // 2 - 1], UNKNOWN)
    number = {text: at for at, text in enumerate(known)}
    symbol = np.concatenate([np.empty(0, dtype=np.int32), *(_symbols(each.words, each.of, number) for each in given)])
    sizes = [2 * len(sample.of) for sample in given]
    parent = np.repeat(-1 - np.arange(len(given), dtype=np.int32), sizes)
    weight = np.repeat(np.array([sample.weight for sample in given], dtype=np.int32), sizes)
    stop = np.arange(1, len(symbol) + 1, dtype=np.int32)
    return Stream(known, tuple(merges_of((symbol, parent, stop, weight), len(known), size, runs=False)))


def _symbols(texts: Sequence[str], of: Int32, number: dict[str, int]) -> Int32:
    """Two symbols a row, whose word is ``texts[of]``; unknown ones get the last number."""
    pairs = [[number.get(part, len(number) - 1) for part in text.split(" ", 1)] for text in texts]
    return np.take(np.array(pairs, dtype=np.int32).reshape(-1, 2), of, axis=0).reshape(-1)


def encode(tree: Tree, stream: Stream) -> StreamTokens:
    """``tree`` as tokens of the rule."""
    found, of = words(tree.trace)
    symbol = _symbols(found, of, {text: at for at, text in enumerate(stream.words)})
    parent, stop = np.full(len(symbol), NONE, dtype=np.int32), np.arange(1, len(symbol) + 1, dtype=np.int32)
    forest = planted(symbol, parent, stop, stream.pairs, runs=False)
    pieces.look_everywhere(forest)
    pieces.merge_by_rank(forest, len(stream.merges), len(stream.words), np.empty(2 * len(symbol), dtype=np.int32))
    low = np.flatnonzero(forest.node[:, HIGH] != NONE).astype(np.int32)
    row = low // 2
    names = np.zeros(len(symbol), dtype=np.int32)
    names[1::2] = 1
    dur = np.zeros(len(symbol), dtype=np.int64)
    dur[1::2] = tree.trace.dur
    return StreamTokens(
        symbol=forest.node[low, LABEL] >> 1,
        row=row,
        depth=tree.depth()[row],
        spans=np.add.reduceat(names, low) if len(low) else names[:0],
        dur=np.add.reduceat(dur, low) if len(low) else dur[:0],
    )
