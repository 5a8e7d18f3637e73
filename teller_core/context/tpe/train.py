"""Learning a vocabulary: the most frequent pair of all trees becomes a symbol, again and again.

Counts live in a heap and occurrences in linked lists, so that learning costs O(N log N) for N rows (the way of
byte-pair encoding, Sennrich, Haddow and Birch 2016, with a tree's pairs for a string's). Identical trees are one with a weight.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe import pieces
from teller_core.context.tpe.columns import self_times
from teller_core.context.tpe.forest import NONE, no_pairs
from teller_core.context.tpe.light import HIDDEN, extents
from teller_core.context.tpe.planting import planted
from teller_core.context.tpe.vocabulary import MOST_SYMBOLS, Merge, Vocabulary, parts_of
from teller_core.context.tpe.words import words
from teller_core.data.table import Int32
from teller_core.data.tree import Tree
from teller_core.errors import InputError, LimitError

LEAST_COUNT = 2
"""A pair seen once is no pattern: the reference rule's minimum as well."""
MOST_PAIRS = 1 << 22
LEAST_SYMBOLS = 32
"""In fewer there is no room for some words beside those for unknown words and for light pieces."""
LIGHT = 200
"""One in so many of a step's time is light: of 1,000 to 100 the finest at which steps of a producer that training has not seen
shrink by 95 % with 1,024 symbols, told by leaving out one training producer at a time (tests/bench/tpe_study.py --choose).
"""
BUCKET_SHARE = 64
"""One in so many symbols of a vocabulary is, in each layer, for unknown words."""


class Sample(NamedTuple):
    """Trees alike: their distinct words; a row, int32: its word among them, its parent, the end of its subtree, what it stands
    for (as in :func:`extents`) and its layer; and how many trees there were.
    """

    words: tuple[str, ...]
    of: Int32
    parent: Int32
    stop: Int32
    extent: Int32
    layer: Int32
    weight: int


def samples(trees: Iterable[Tree], share: int = 0) -> list[Sample]:
    """The trees, those with the same words, parents and light pieces as one. What takes less than one in ``share`` of a tree
    is light, 0 for nothing.
    """
    seen: dict[tuple[tuple[str, ...], bytes, bytes, bytes], Sample] = {}
    for tree in trees:
        found, of = words(tree.trace)
        extent = extents(tree, self_times(tree), np.zeros(len(tree), dtype=np.uint8), share)
        made = Sample(tuple(found), of, tree.parent, tree.stop, extent, tree.trace.layer.astype(np.int32), 1)
        # The parents say where subtrees end, and the words in which layers they are.
        alike = made.words, of.tobytes(), tree.parent.tobytes(), extent.tobytes()
        seen[alike] = made._replace(weight=seen[alike].weight + 1) if alike in seen else made
    return list(seen.values())


def learned(trees: Iterable[Tree], size: int, share: int = LIGHT) -> Vocabulary:
    """A vocabulary of at most ``size`` symbols, in which pieces of less than one in ``share`` of their tree are light. Raises
    InputError for a size that none has, LimitError for more pairs than fit.
    """
    return train(samples(trees, share), size, share)


def train(given: Sequence[Sample], size: int, share: int = 0) -> Vocabulary:
    """A vocabulary of at most ``size`` symbols, half of them words at most, of samples made with ``share``. Raises InputError
    for a size that none has, LimitError for more pairs than fit.
    """
    if not LEAST_SYMBOLS <= size <= MOST_SYMBOLS:
        raise InputError(
            "training a vocabulary", f"none has {size} symbols", f"Ask for {LEAST_SYMBOLS} to {MOST_SYMBOLS:,}"
        )
    bare = Vocabulary(_frequent(given, size // 2), max(1, size // BUCKET_SHARE), (), share)
    columns, extent = _joined(given, bare)
    return replace(bare, merges=merges_of(columns, bare.base, size, extent=extent))


def merges_of(
    columns: tuple[Int32, Int32, Int32, Int32],
    base: int,
    size: int,
    *,
    extent: Int32 | None = None,
    runs: bool = True,
) -> tuple[Merge, ...]:
    """The merges that make symbols ``base`` to ``size`` out of a forest (symbols, parents, ends of subtrees, weights). ``extent``
    and ``runs`` as in :func:`planted`. Raises LimitError for more pairs than fit.
    """
    symbol, parent, stop, weight = columns
    room = min(MOST_PAIRS, 4 * len(symbol) + 16)
    forest = planted(symbol, parent, stop, no_pairs(room), extent=extent, weight=weight, room=room, runs=runs)
    pieces.look_everywhere(forest)
    spare, made = np.empty(2 * len(symbol), dtype=np.int32), np.empty(max(0, size - base), dtype=np.int64)
    count = int(pieces.learn(forest, base, LEAST_COUNT, spare, made))
    if count == NONE:
        raise LimitError("training a vocabulary", f"there are over {room:,} pairs", "Give it fewer traces")
    return tuple(parts_of(key) for key in made[:count].tolist())


def _frequent(given: Sequence[Sample], most: int) -> tuple[str, ...]:
    counts: Counter[str] = Counter()
    for sample in given:
        for text, times in zip(sample.words, _times(sample), strict=True):
            counts[text] += times * sample.weight
    ranked = sorted(counts, key=lambda text: (-counts[text], text))
    return tuple(ranked[:most])


def _times(sample: Sample) -> list[int]:
    """How often each word occurs outside of light pieces."""
    return np.bincount(sample.of[sample.extent > HIDDEN], minlength=len(sample.words)).tolist()


def _joined(given: Sequence[Sample], bare: Vocabulary) -> tuple[tuple[Int32, Int32, Int32, Int32], Int32]:
    """All samples as one forest: symbols, parents (roots of sample k have -1 - k), ends of subtrees, weights; and extents."""
    sizes = [len(sample.of) for sample in given]
    symbol, parent, stop, weight, extent = (np.empty(sum(sizes), dtype=np.int32) for _ in range(5))
    high = 0
    for number, (sample, size) in enumerate(zip(given, sizes, strict=True)):
        low, high = high, high + size
        known = np.array([bare.symbol(text) for text in sample.words], dtype=np.int32)
        symbol[low:high] = np.where(sample.extent < HIDDEN, bare.light + sample.layer, known[sample.of])
        np.add(sample.parent, low, out=parent[low:high])
        parent[low:high][sample.parent < 0] = -1 - number
        np.add(sample.stop, low, out=stop[low:high])
        extent[low:high] = sample.extent + np.sign(sample.extent) * low
        weight[low:high] = sample.weight
    return (symbol, parent, stop, weight), extent
