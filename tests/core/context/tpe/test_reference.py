"""The paper's rule: byte-pair encoding of a depth-first stream, against the slow way."""

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from teller_core.context.tpe.reference import encode, train
from tests.core.context.tpe.forests import NAMES, sample_of, shapes, tree_of


def joined(stream: list[int], left: int, right: int, symbol: int) -> list[int]:
    """The stream with the pair merged wherever it stands, from the left."""
    out: list[int] = []
    at = 0
    while at < len(stream):
        if stream[at : at + 2] == [left, right]:
            out.append(symbol)
            at += 2
        else:
            out.append(stream[at])
            at += 1
    return out


def stream_of(rows: list[tuple[int, int]], words: tuple[str, ...]) -> list[int]:
    number = {text: at for at, text in enumerate(words)}
    return [number.get(part, len(words) - 1) for name, _ in rows for part in ("operator", NAMES[name])]


@given(st.lists(shapes(), min_size=1, max_size=4))
def test_each_merge_is_the_most_frequent_pair_that_is_left(corpus: list[list[tuple[int, int]]]) -> None:
    learned = train([sample_of(rows, 1 + at) for at, rows in enumerate(corpus)], 24)
    streams = [stream_of(rows, learned.words) for rows in corpus]
    for at, (_, left, right) in enumerate(learned.merges):
        one, other = left // 2, right // 2
        counts: Counter[tuple[int, int]] = Counter()
        for weight, stream in enumerate(streams, 1):
            for pair in pairwise(stream):
                counts[pair] += weight
        best = min(counts, key=lambda pair: (-counts[pair], pair))
        assert (one, other) == best
        streams = [joined(stream, one, other, len(learned.words) + at) for stream in streams]


@given(st.lists(shapes(), min_size=1, max_size=3), shapes())
def test_encoding_applies_the_merges_in_their_order(
    corpus: list[list[tuple[int, int]]], rows: list[tuple[int, int]]
) -> None:
    learned = train([sample_of(each) for each in corpus], 24)
    stream = stream_of(rows, learned.words)
    for at, (_, left, right) in enumerate(learned.merges):
        stream = joined(stream, left // 2, right // 2, len(learned.words) + at)
    tree = tree_of(rows)
    tokens = encode(tree, learned)
    assert tokens.symbol.tolist() == stream
    assert (int(tokens.spans.sum()), int(tokens.dur.sum())) == (len(rows), int(tree.trace.dur.sum()))
