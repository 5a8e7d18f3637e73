"""Learning a vocabulary: the most frequent pair of all trees becomes a symbol, again and again.

Counts live in a heap and occurrences in linked lists, so that learning costs O(N log N) for N rows (the way of
byte-pair encoding, Sennrich, Haddow and Birch 2016, with a tree's pairs for a string's). Identical trees are one with a weight.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe import pieces
from teller_core.context.tpe.forest import NONE, no_pairs
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
    """Trees alike: their distinct words, int32 a row its word among them, its parent and the end of its subtree, and how many
    trees there were.
    """

    words: tuple[str, ...]
    of: Int32
    parent: Int32
    stop: Int32
    weight: int


def samples(trees: Iterable[Tree]) -> list[Sample]:
    """The trees, those with the same words and parents as one."""
    seen: dict[tuple[tuple[str, ...], bytes, bytes], Sample] = {}
    for tree in trees:
        found, of = words(tree.trace)
        made = Sample(tuple(found), of, tree.parent, tree.stop, 1)
        alike = made.words, of.tobytes(), tree.parent.tobytes()  # which say where subtrees end
        seen[alike] = made._replace(weight=seen[alike].weight + 1) if alike in seen else made
    return list(seen.values())


def train(given: Sequence[Sample], size: int) -> Vocabulary:
    """A vocabulary of at most ``size`` symbols, half of them words at most. Raises LimitError for more pairs than fit."""
    buckets = max(1, size // BUCKET_SHARE)
    bare = Vocabulary(_frequent(given, size // 2), buckets, ())
    return Vocabulary(bare.words, buckets, merges_of(_joined(given, bare), bare.base, size))


def merges_of(
    columns: tuple[Int32, Int32, Int32, Int32], base: int, size: int, *, runs: bool = True
) -> tuple[Merge, ...]:
    """The merges that make symbols ``base`` to ``size`` out of a forest (symbols, parents, ends of subtrees, weights). Raises
    LimitError for more pairs than fit.
    """
    symbol, parent, stop, weight = columns
    room = min(MOST_PAIRS, 4 * len(symbol) + 16)
    forest = planted(symbol, parent, stop, None, no_pairs(room), weight=weight, learned=room, runs=runs)
    pieces.look_everywhere(forest)
    spare, made = np.empty(2 * len(symbol), dtype=np.int32), np.empty(max(0, size - base), dtype=np.int64)
    count = int(pieces.learn(forest, base, LEAST_COUNT, spare, made))
    if count == NONE:
        raise LimitError("training a vocabulary", f"there are over {room:,} pairs", "Give it fewer traces")
    return tuple(parts_of(key) for key in made[:count].tolist())


def _frequent(given: Sequence[Sample], most: int) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for sample in given:
        for text, times in zip(sample.words, np.bincount(sample.of).tolist(), strict=True):
            counts[text] += times * sample.weight
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    return tuple(ranked[:most])


def _joined(given: Sequence[Sample], bare: Vocabulary) -> tuple[Int32, Int32, Int32, Int32]:
    """All samples as one forest: symbols, parents (roots of sample k have -1 - k), ends of subtrees, weights."""
    sizes = [len(sample.of) for sample in given]
    symbol, parent, stop, weight = (np.empty(sum(sizes), dtype=np.int32) for _ in range(4))
    high = 0
    for number, (sample, size) in enumerate(zip(given, sizes, strict=True)):
        low, high = high, high + size
        known = np.array([bare.symbol(text) for text in sample.words], dtype=np.int32)
        np.take(known, sample.of, out=symbol[low:high])
        np.add(sample.parent, low, out=parent[low:high])
        parent[low:high][sample.parent < 0] = -1 - number
        np.add(sample.stop, low, out=stop[low:high])
        weight[low:high] = sample.weight
    return symbol, parent, stop, weight
