"""What had to happen before what: the dependencies between the spans of one or more ranks, as columns of edges."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Int32, Mask, UInt8


class Kind(IntEnum):
    """Why a row depends on another, and which moment of the first one allows which moment of the second."""

    CHILD = 0
    """A call and one that it made on a thread: start to start. The call ends no sooner than what it made."""
    ORDER = 1
    """Two calls of one caller, one after the other on a thread: end to start."""
    LAUNCH = 2
    """A call and the work that it gave to a device: start to start."""
    STREAM = 3
    """Two works of one stream, in the order in which they began: end to start. A device may let the second begin early."""
    WAIT = 4
    """Device work and the host's call that returned no sooner than it was done: end to end."""
    HOLD = 5
    """Device work and the first work of a stream that was told to wait for it: end to start."""
    COLLECTIVE = 6
    """The call of the rank that surely came last to a collective, and that of another rank there: start to end."""
    MET = 7
    """Two calls of one collective, of which the clocks do not tell who was waited for: the first is by no means the cause."""
    KEPT = 8
    """What kept the rank that came last to a collective, and the call of another rank there: end to end."""


Edges = tuple[Kind, npt.NDArray[np.integer], npt.NDArray[np.integer]]
"""Edges of one kind: the rows before, the rows after."""


@dataclass(frozen=True)
class Graph:
    """One row an edge: ``before`` int32 and ``after`` int32 are rows of the spans, of which there are ``rows``; ``kind`` uint8,
    a :class:`Kind`. Rows of several trees are numbered one tree behind the other.
    """

    rows: int
    before: Int32
    after: Int32
    kind: UInt8

    def __len__(self) -> int:
        return len(self.kind)

    def of(self, *kinds: Kind) -> Mask:
        """bool an edge: it is of one of ``kinds``."""
        wanted = np.zeros(len(Kind), dtype=np.bool_)
        wanted[list(kinds)] = True
        return wanted[self.kind]

    def check(self) -> None:
        """Raise ValueError where a column is too short, an edge points nowhere or at itself, or a kind is none."""
        if len({len(self.before), len(self.after), len(self.kind)}) != 1:
            raise ValueError("the columns of a graph differ in length")
        if not len(self):
            return
        if min(int(self.before.min()), int(self.after.min())) < 0:
            raise ValueError("an edge points before the first row")
        if max(int(self.before.max()), int(self.after.max())) >= self.rows:
            raise ValueError("an edge points behind the last row")
        if np.any(self.before == self.after):
            raise ValueError("a row depends on itself")
        if int(self.kind.max()) >= len(Kind):
            raise ValueError("an edge has a kind that is none")


def edges(rows: int, parts: Sequence[Edges]) -> Graph:
    """A graph of ``rows`` rows from (kind, before, after) of its edges."""
    few = np.empty(0, dtype=np.int32)
    return Graph(
        rows,
        np.concatenate([few, *(before.astype(np.int32, copy=False) for _, before, _ in parts)]),
        np.concatenate([few, *(after.astype(np.int32, copy=False) for _, _, after in parts)]),
        np.repeat(
            np.array([kind for kind, _, _ in parts], dtype=np.uint8), np.array([len(b) for _, b, _ in parts], dtype=int)
        ),
    )


def joined(graphs: Sequence[Graph]) -> Graph:
    """The edges of several trees as one graph, the rows of each behind those of the one before it."""
    first = np.cumsum([0, *(graph.rows for graph in graphs)])
    few = np.empty(0, dtype=np.int32)
    return Graph(
        int(first[-1]),
        np.concatenate([few, *(g.before + np.int32(at) for g, at in zip(graphs, first[:-1], strict=True))]),
        np.concatenate([few, *(g.after + np.int32(at) for g, at in zip(graphs, first[:-1], strict=True))]),
        np.concatenate([few.astype(np.uint8), *(graph.kind for graph in graphs)]),
    )


def with_edges(graph: Graph, more: Graph) -> Graph:
    """``graph`` with the edges of ``more`` between the same rows behind its own."""
    return Graph(
        graph.rows,
        np.concatenate([graph.before, more.before]),
        np.concatenate([graph.after, more.after]),
        np.concatenate([graph.kind, more.kind]),
    )
