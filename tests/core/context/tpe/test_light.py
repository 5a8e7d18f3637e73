"""Light pieces: what is one, that nothing is lost in it, and that what is open stays open."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from teller_core.context.tpe.light import HIDDEN, extents
from teller_core.context.tpe.structural import decode, encode
from teller_core.context.tpe.train import learned
from teller_core.data.tree import Tree
from tests.core.context.tpe.forests import NAMES, shapes, tree_of

SHARE = 4


@st.composite
def timed(draw: st.DrawFn) -> Tree:
    """A tree whose rows have times of their own, zeros among them."""
    rows = draw(shapes())
    return tree_of(rows, draw(st.lists(st.integers(0, 40), min_size=len(rows), max_size=len(rows))))


def masks(tree: Tree) -> st.SearchStrategy[list[bool]]:
    return st.lists(st.booleans(), min_size=len(tree), max_size=len(tree))


def slow_pieces(tree: Tree, opened: list[bool]) -> list[list[int]]:
    """The light pieces, each the rows it holds, found from the top with sums anew for every subtree."""
    own, least = tree.self_time().tolist(), int(tree.trace.end.max() - tree.trace.start.min()) // SHARE

    def weight(row: int) -> int:
        rows = range(row, int(tree.stop[row]))
        return least if any(opened[each] for each in rows) else sum(own[each] for each in rows)

    def of_siblings(siblings: list[int]) -> list[list[int]]:
        found: list[list[int]] = []
        held = least
        for row in siblings:
            if weight(row) >= least:
                found += of_siblings(tree.children(row))
                held = least
            elif held + weight(row) >= least:
                found.append(list(range(row, int(tree.stop[row]))))
                held = weight(row)
            else:
                found[-1] += range(row, int(tree.stop[row]))
                held += weight(row)
        return found

    return of_siblings([row for row in range(len(tree)) if tree.parent[row] < 0])


@given(timed(), st.data())
def test_pieces_are_neighbors_that_stay_light_together(tree: Tree, data: st.DataObject) -> None:
    opened = data.draw(masks(tree))
    extent = extents(tree, tree.self_time(), np.array(opened, dtype=np.uint8), SHARE)
    begins = np.flatnonzero(extent < HIDDEN)
    ends = -extent[begins]
    assert [list(range(*each)) for each in zip(begins.tolist(), ends.tolist(), strict=True)] == slow_pieces(
        tree, opened
    )
    assert int((extent > HIDDEN).sum()) + sum(map(len, slow_pieces(tree, opened))) == len(tree)


@given(st.lists(timed(), min_size=1, max_size=3), timed(), st.data())
def test_what_is_light_is_neither_lost_nor_moved(corpus: list[Tree], tree: Tree, data: st.DataObject) -> None:
    opened = np.array(data.draw(masks(tree)), dtype=np.bool_)
    vocabulary = learned(corpus, 64, SHARE)
    encoded = encode(tree, vocabulary, opened)
    encoded.tokens.check()
    assert decode(encoded, vocabulary) == (
        [f"operator {NAMES[name]}" for name in tree.trace.name.tolist()],
        tree.parent.tolist(),
    )
    own = tree.self_time()
    assert encoded.tokens.own.tolist() == [
        int(own[low:high].sum()) for low, high in zip(encoded.tokens.low, encoded.tokens.high, strict=True)
    ]
    alone = set(zip(encoded.tokens.low.tolist(), encoded.tokens.high.tolist(), strict=True))
    assert {(row, row + 1) for row in np.flatnonzero(opened).tolist()} <= alone


@given(st.lists(timed(), min_size=1, max_size=3), timed())
def test_a_longer_prefix_of_the_merges_never_makes_more_tokens_of_light_pieces(corpus: list[Tree], tree: Tree) -> None:
    whole = learned(corpus, 64, SHARE)
    counts = [len(encode(tree, whole.first(size)).tokens) for size in range(whole.base, len(whole) + 1)]
    assert all(more >= fewer for more, fewer in pairwise(counts))
