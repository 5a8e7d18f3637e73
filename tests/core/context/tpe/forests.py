"""Trees of calls for tests of Trace Pair Encoding, and the encoding done the slow and obvious way."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from teller_core.context.tpe.forest import ABSORB, EXTEND, JOIN
from teller_core.context.tpe.train import Sample, samples
from teller_core.data.trace import Lane, Origin, Trace
from teller_core.data.tree import Tree

NAMES = ("a", "b", "c", "d")


@st.composite
def shapes(draw: st.DrawFn, most: int = 24) -> list[tuple[int, int]]:
    """(name, parent) of each row, in pre-order."""
    rows: list[tuple[int, int]] = []
    path: list[int] = []
    for _ in range(draw(st.integers(1, most))):
        up = draw(st.integers(0, min(3, len(path))))
        path = path[: len(path) - up]
        rows.append((draw(st.integers(0, len(NAMES) - 1)), path[-1] if path else -1))
        path.append(len(rows) - 1)
    return rows


def tree_of(rows: list[tuple[int, int]], own: list[int] | None = None) -> Tree:
    """A tree on one lane in which every row has ``own`` ns of its own before its children, 10 by default."""
    mine = own or [10] * len(rows)
    parent = np.array([above for _, above in rows], dtype=np.int32)
    stop = np.arange(1, len(rows) + 1, dtype=np.int32)
    for row in range(len(rows) - 1, -1, -1):
        if parent[row] >= 0:
            stop[parent[row]] = max(stop[parent[row]], stop[row])
    start = np.concatenate([[0], np.cumsum(mine)[:-1]]).astype(np.int64)
    ends = np.cumsum(mine).astype(np.int64)
    trace = Trace(
        start=start,
        dur=ends[stop - 1] - start,
        name=np.array([name for name, _ in rows], dtype=np.int32),
        lane=np.zeros(len(rows), dtype=np.int32),
        category=np.zeros(len(rows), dtype=np.uint8),
        layer=np.full(len(rows), 3, dtype=np.uint8),
        link=np.full(len(rows), -1, dtype=np.int64),
        arg=np.full(len(rows), -1, dtype=np.int32),
        names=list(NAMES),
        lanes=[Lane("1", "1", False)],
        categories=["cpu_op"],
        args=[],
        origin=Origin("kineto", "unix"),
    )
    return Tree(trace, parent, stop)


def sample_of(rows: list[tuple[int, int]], weight: int = 1) -> Sample:
    return samples([tree_of(rows)])[0]._replace(weight=weight)


@dataclass
class Piece:
    """A live token of the slow way."""

    row: int
    symbol: int
    run: int = 1
    opened: bool = False
    children: "list[Piece]" = field(default_factory=list["Piece"])

    @property
    def label(self) -> int:
        return 2 * self.symbol + (self.run > 1)

    @property
    def whole(self) -> bool:
        return not self.children and not self.opened


def grown(symbols: list[int], parents: list[int], alone: set[int]) -> Piece:
    """A nameless root above the roots."""
    top = Piece(-1, -1, opened=True)
    made = [Piece(row, symbol, opened=row in alone) for row, symbol in enumerate(symbols)]
    for piece, above in zip(made, parents, strict=True):
        (made[above] if above >= 0 else top).children.append(piece)
    return top


def everyone(piece: Piece) -> list[Piece]:
    """All pieces below, in pre-order."""
    return [each for child in piece.children for each in (child, *everyone(child))]


def with_runs(top: Piece) -> None:
    """Make every run that can be made."""
    for piece in (top, *everyone(top)):
        kept: list[Piece] = []
        for child in piece.children:
            if kept and kept[-1].whole and child.whole and kept[-1].symbol == child.symbol:
                kept[-1].run += child.run
            else:
                kept.append(child)
        piece.children = kept


def pairs(top: Piece) -> list[tuple[int, int, int]]:
    """Every pair that may merge."""
    found: list[tuple[int, int, int]] = []
    for piece in (top, *everyone(top)):
        if piece.children and not piece.opened and not piece.children[0].opened:
            child = piece.children[0]
            if child.whole:
                found.append((ABSORB, piece.label, child.label))
            elif len(piece.children) == 1:
                found.append((EXTEND, piece.label, child.label))
        for one, other in zip(piece.children, piece.children[1:], strict=False):
            if one.whole and other.whole:
                found.append((JOIN, one.label, other.label))
    return found


def merged(top: Piece, merge: tuple[int, int, int], symbol: int) -> None:
    """Apply one merge wherever it fits, from the top and from the left; then make runs."""
    kind, left, right = merge
    queue = [top]
    while queue:
        piece = queue.pop(0)
        if kind != JOIN and not piece.opened and piece.label == left and piece.children:
            child = piece.children[0]
            fits = child.whole if kind == ABSORB else not child.opened and not child.whole and len(piece.children) == 1
            if fits and child.label == right:
                piece.children = child.children + piece.children[1:]
                piece.symbol = symbol
        elif kind == JOIN:
            at = 0
            while at + 1 < len(piece.children):
                one, other = piece.children[at : at + 2]
                if one.whole and other.whole and (one.label, other.label) == (left, right):
                    one.symbol, one.run = symbol, 1
                    del piece.children[at + 1]
                at += 1
        queue = [*piece.children, *queue]
    with_runs(top)


def most_frequent(tops: list[tuple[Piece, int]]) -> tuple[tuple[int, int, int], int]:
    """The pair to merge next, and its count, 0 for none."""
    counts: Counter[tuple[int, int, int]] = Counter()
    for top, weight in tops:
        for pair in pairs(top):
            counts[pair] += weight
    best = min(counts, key=lambda pair: (-counts[pair], pair), default=(0, 0, 0))
    return best, counts[best]
