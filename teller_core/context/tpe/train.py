"""Learning a vocabulary: the most frequent pair of all trees becomes a symbol, again and again.

Counts live in a heap and occurrences in linked lists, so that learning costs O(N log N) for N rows (the way of
byte-pair encoding, Sennrich, Haddow and Birch 2016, with a tree's pairs for a string's). Identical trees are one with a weight.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe import pieces
from teller_core.context.tpe.forest import FULL, NONE, most_frequent
from teller_core.context.tpe.structural import parts_of, planted
from teller_core.context.tpe.vocabulary import Merge, Vocabulary
from teller_core.context.tpe.words import words
from teller_core.data.table import Int32
from teller_core.data.tree import Tree
from teller_core.errors import LimitError

LEAST_COUNT = 2
"""A pair seen once is no pattern: the reference rule's minimum as well."""
MOST_PAIRS = 1 << 22
BUCKET_SHARE = 64
"""One in so many symbols of a vocabulary is, in each layer, for unknown words."""


class Sample(NamedTuple):
    """Trees alike: the words of their rows, where these hang, and how many trees there were."""

    words: tuple[str, ...]
    parent: tuple[int, ...]
    stop: tuple[int, ...]
    weight: int


def samples(trees: Iterable[Tree]) -> list[Sample]:
    """The trees, those with the same words and parents as one."""
    seen: Counter[tuple[tuple[str, ...], tuple[int, ...], tuple[int, ...]]] = Counter()
    for tree in trees:
        found, of = words(tree.trace)
        row_words = tuple(found[at] for at in of)
        seen[row_words, tuple(tree.parent.tolist()), tuple(tree.stop.tolist())] += 1
    return [Sample(*what, weight) for what, weight in seen.items()]


def train(given: Sequence[Sample], size: int) -> Vocabulary:
    """A vocabulary of at most ``size`` symbols, half of them words at most. Raises LimitError for more pairs than fit."""
    buckets = max(1, size // BUCKET_SHARE)
    bare = Vocabulary(_frequent(given, size // 2), buckets, ())
    return Vocabulary(bare.words, buckets, tuple(merges_of(_joined(given, bare), bare.base, size)))


def merges_of(
    columns: tuple[Int32, Int32, Int32, Int32], base: int, size: int, *, runs: bool = True
) -> Iterator[Merge]:
    """The merges that make symbols ``base`` to ``size`` out of a forest (symbols, parents, ends of subtrees, weights). Raises
    LimitError for more pairs than fit.
    """
    symbol, parent, stop, weight = columns
    room = min(MOST_PAIRS, 4 * len(symbol) + 16)
    none = np.empty(0, dtype=np.int64)
    forest = planted(symbol, parent, stop, None, none, weight=weight, learned=room, runs=runs)
    pieces.look_everywhere(forest)
    spare = np.empty(2 * len(symbol), dtype=np.int32)
    for made in range(base, size):
        number = int(most_frequent(forest))
        if forest.mark[FULL]:
            raise LimitError("training a vocabulary", f"there are over {room:,} pairs", "Give it fewer traces")
        if number == NONE or forest.times[number] < LEAST_COUNT:
            return
        pieces.merge_all(forest, number, made, spare)
        yield parts_of(int(forest.known[number]))


def _frequent(given: Sequence[Sample], most: int) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for sample in given:
        for text, times in Counter(sample.words).items():
            counts[text] += times * sample.weight
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    return tuple(ranked[:most])


def _joined(given: Sequence[Sample], bare: Vocabulary) -> tuple[Int32, Int32, Int32, Int32]:
    """All samples as one forest: symbols, parents (roots of sample k have -1 - k), ends of subtrees, weights."""
    known = {text: bare.symbol(text) for text in {text for sample in given for text in sample.words}}
    symbol = np.array([known[text] for sample in given for text in sample.words], dtype=np.int32)
    sizes = np.array([len(sample.words) for sample in given], dtype=np.int64)
    begin = np.repeat(np.append(0, np.cumsum(sizes))[:-1], sizes)
    which = np.repeat(np.arange(len(given)), sizes)
    parent = np.array([above for sample in given for above in sample.parent], dtype=np.int64)
    parent = np.where(parent < 0, -1 - which, parent + begin)
    stop = np.array([end for sample in given for end in sample.stop], dtype=np.int64) + begin
    weight = np.repeat(np.array([sample.weight for sample in given], dtype=np.int32), sizes)
    return symbol, parent.astype(np.int32), stop.astype(np.int32), weight
