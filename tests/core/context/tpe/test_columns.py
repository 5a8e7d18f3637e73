"""Columns of tokens: self times as the tree has them, words numbered as they occur, symbols whatever was asked about before."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.context.tpe.structural import encode
from teller_core.context.tpe.symbols import MOST_TRACES
from teller_core.context.tpe.vocabulary import Vocabulary
from teller_core.context.tpe.words import word, words
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from tests.core.context.tpe.forests import shapes, tree_of

BARE = Vocabulary(("operator a", "operator b", "operator c", "operator d"), 1, ())
"""Knows all words and no pair: every row that has no neighbor alike is a token."""


@given(shapes(), st.data())
def test_self_time_is_what_the_tree_says_where_children_overlap_or_run_elsewhere(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    tree = tree_of(rows)
    some = st.lists(st.integers(0, 40), min_size=len(rows), max_size=len(rows))
    lanes = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    trace = replace(
        tree.trace,
        start=np.cumsum(data.draw(some)).astype(np.int64),
        dur=np.array(data.draw(some), dtype=np.int64),
        lane=np.array(lanes, dtype=np.int32),
    )
    tree = Tree(trace, tree.parent, tree.stop)
    tokens = encode(tree, BARE, np.ones(len(rows), dtype=np.bool_)).tokens
    assert tokens.own.tolist() == tree.self_time().tolist()
    assert tokens.start.tolist() == (trace.start - trace.start[0]).tolist()
    depth = [0] * len(rows)
    for row, (_, above) in enumerate(rows):
        depth[row] = depth[above] + 1 if above >= 0 else 0
    assert (tokens.depth.tolist(), tokens.parent.tolist()) == (depth, [above for _, above in rows])


@given(shapes(), st.data())
def test_words_are_numbered_as_they_first_occur_and_names_of_one_word_are_one(
    rows: list[tuple[int, int]], data: st.DataObject
) -> None:
    names = data.draw(
        st.lists(st.sampled_from(["f<1>", "f<2>", "f(int)", "g", "step 1", "step 2"]), min_size=4, max_size=4)
    )
    layers = data.draw(st.lists(st.sampled_from(list(Layer)), min_size=len(rows), max_size=len(rows)))
    trace = replace(tree_of(rows).trace, names=names, layer=np.array(layers, dtype=np.uint8))
    found, of = words(trace)
    plain = [word(names[name], layer) for (name, _), layer in zip(rows, layers, strict=True)]
    assert [found[at] for at in of.tolist()] == plain
    assert found == list(dict.fromkeys(plain))


@given(st.lists(shapes(), min_size=1, max_size=3), st.data())
def test_symbols_are_those_of_the_words_whatever_traces_were_asked_about_before(
    drawn: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    traces = [tree_of(rows).trace for rows in drawn]
    asked = Vocabulary(("operator a", "operator b"), 3, ()).symbols
    vocabulary = Vocabulary(("operator a", "operator b"), 3, ())
    for at in data.draw(st.lists(st.integers(0, len(traces) - 1), max_size=6)):
        found, of = words(traces[at])
        texts = [found[number] for number in of.tolist()]
        assert asked.of(traces[at]).tolist() == [vocabulary.symbol(text) for text in texts]


def test_no_more_traces_are_remembered_than_it_says() -> None:
    asked = BARE.symbols
    for _ in range(3 * MOST_TRACES):
        asked.of(tree_of([(0, -1)]).trace)
    assert len(asked.remembered()) == MOST_TRACES + 1
