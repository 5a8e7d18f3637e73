"""Structural encoding: what it gives back, what it keeps, and that it is what the slow way makes."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from teller_core.context.tpe.structural import decode, encode
from teller_core.context.tpe.train import train
from teller_core.context.tpe.vocabulary import Vocabulary
from tests.core.context.tpe import forests
from tests.core.context.tpe.forests import NAMES, sample_of, shapes, tree_of

CORPUS = st.lists(shapes(), min_size=1, max_size=4)


def trained(corpus: list[list[tuple[int, int]]], size: int = 64) -> Vocabulary:
    """Without the fourth name, so that some rows are unknown."""
    known = [[(name % 3, above) for name, above in rows] for rows in corpus]
    return train([sample_of(rows, 1 + at) for at, rows in enumerate(known)], size)


@given(CORPUS, shapes())
def test_decoding_gives_words_parents_and_order_back(
    corpus: list[list[tuple[int, int]]], rows: list[tuple[int, int]]
) -> None:
    vocabulary = trained(corpus)
    encoded = encode(tree_of(rows), vocabulary)
    encoded.tokens.check()
    assert decode(encoded, vocabulary) == (
        [f"operator {NAMES[name]}" for name, _ in rows],
        [above for _, above in rows],
    )


@given(CORPUS, shapes(), st.data())
def test_self_time_is_kept_to_the_nanosecond_and_the_largest_is_where_it_was(
    corpus: list[list[tuple[int, int]]], rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    own = data.draw(st.lists(st.integers(0, 1 << 40), min_size=len(rows), max_size=len(rows)))
    tree = tree_of(rows, own)
    tokens = encode(tree, trained(corpus)).tokens
    for low, high, total, largest, where in zip(
        tokens.low.tolist(),
        tokens.high.tolist(),
        tokens.own.tolist(),
        tokens.largest.tolist(),
        tokens.where.tolist(),
        strict=True,
    ):
        assert (total, largest, own[where]) == (sum(own[low:high]), max(own[low:high]), max(own[low:high]))
    assert int(tokens.own.sum()) == sum(own)


@given(CORPUS, shapes(), st.data())
def test_an_opened_row_is_a_token_of_its_own_and_the_rest_still_decodes(
    corpus: list[list[tuple[int, int]]], rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    opened = np.array(data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))), dtype=np.bool_)
    vocabulary = trained(corpus)
    encoded = encode(tree_of(rows), vocabulary, opened)
    encoded.tokens.check()
    spans = set(zip(encoded.tokens.low.tolist(), encoded.tokens.high.tolist(), strict=True))
    assert {(row, row + 1) for row in np.flatnonzero(opened).tolist()} <= spans
    assert decode(encoded, vocabulary)[1] == [above for _, above in rows]


@given(CORPUS, shapes())
def test_a_longer_prefix_of_the_merges_never_makes_more_tokens(
    corpus: list[list[tuple[int, int]]], rows: list[tuple[int, int]]
) -> None:
    vocabulary = trained(corpus)
    tree = tree_of(rows)
    counts = [len(encode(tree, vocabulary.first(size)).tokens) for size in range(vocabulary.base, len(vocabulary) + 1)]
    assert all(more >= fewer for more, fewer in pairwise(counts))


@given(CORPUS, shapes(), st.data())
@settings(max_examples=200)
def test_encoding_is_what_applying_the_merges_one_by_one_makes(
    corpus: list[list[tuple[int, int]]], rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    alone = set(data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=2)))
    vocabulary = trained(corpus)
    symbols = [vocabulary.symbol(f"operator {NAMES[name]}") for name, _ in rows]
    top = forests.grown(symbols, [above for _, above in rows], alone)
    forests.with_runs(top)
    for at, merge in enumerate(vocabulary.merges):
        forests.merged(top, merge, vocabulary.base + at)
    slow = [(piece.row, piece.symbol, piece.run) for piece in forests.everyone(top)]
    opened = np.isin(np.arange(len(rows)), list(alone))
    tokens = encode(tree_of(rows), vocabulary, opened).tokens
    assert list(zip(tokens.low.tolist(), tokens.symbol.tolist(), tokens.run.tolist(), strict=True)) == slow


@given(CORPUS)
@settings(max_examples=200)
def test_training_takes_the_most_frequent_pair_each_time(corpus: list[list[tuple[int, int]]]) -> None:
    vocabulary = trained(corpus)
    bare = Vocabulary(vocabulary.words, vocabulary.buckets, ())
    tops: list[tuple[forests.Piece, int]] = []
    for at, rows in enumerate(corpus):
        symbols = [bare.symbol(f"operator {NAMES[name % 3]}") for name, _ in rows]
        tops.append((forests.grown(symbols, [above for _, above in rows], set()), 1 + at))
        forests.with_runs(tops[-1][0])
    for at, merge in enumerate(vocabulary.merges):
        best, count = forests.most_frequent(tops)
        assert (merge, count >= 2) == (best, True)
        for top, _ in tops:
            forests.merged(top, merge, vocabulary.base + at)
    assert len(vocabulary) == 64 or forests.most_frequent(tops)[1] < 2


def test_layers_alike_are_one_token_that_counts_them() -> None:
    rows = [(0, -1), *[(n, p) for k in range(5) for n, p in ((1, 0), (2, 1 + 3 * k), (0, 1 + 3 * k))]]
    vocabulary = trained([rows])
    tokens = encode(tree_of(rows), vocabulary.first(vocabulary.base + 2)).tokens
    assert tokens.run.tolist() == [1, 5]


def test_a_word_that_the_vocabulary_lacks_is_kept_beside_the_tokens() -> None:
    vocabulary = trained([[(0, -1), (0, 0)]])
    encoded = encode(tree_of([(0, -1), (3, 0), (0, 0)]), vocabulary)
    assert encoded.unseen == ["operator d"]
    assert decode(encoded, vocabulary)[0] == ["operator a", "operator d", "operator a"]


def test_tokens_of_another_vocabulary_are_refused() -> None:
    encoded = encode(tree_of([(0, -1)]), trained([[(0, -1)]]))
    with pytest.raises(ValueError, match="another vocabulary"):
        decode(encoded, trained([[(1, -1)]]))
