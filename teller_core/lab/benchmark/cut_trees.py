"""The spans of a tree that lie inside some intervals, as a tree: what hung below a span that is gone hangs below the next one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64, Mask
from teller_core.data.tree import ROOT, Tree


class CutTree(NamedTuple):
    """``before`` int32: how many rows of ``tree`` lie before each row of the whole, one more than it has rows."""

    tree: Tree
    before: Int32

    def place(self, row: Int32) -> Int32:
        """Where each ``row`` of the whole is, -1 where it is gone."""
        here = self.before[row]
        return np.where(self.before[row + 1] > here, here, np.int32(-1)).astype(np.int32)


def cut_tree(tree: Tree, shift: int, inside: Callable[[Int64, Int64], Mask]) -> CutTree:
    """The rows of ``tree`` that are ``inside`` by the clock that is ``shift`` ns ahead of their own, with the names and arguments
    in use alone.
    """
    trace = tree.trace
    kept = inside(trace.start + shift, trace.end + shift)
    before = np.concatenate([np.zeros(1, dtype=np.int32), np.cumsum(kept, dtype=np.int32)])
    rows = np.flatnonzero(kept)
    above = _nearest(tree.parent, kept)[rows]
    parent = np.where(above == ROOT, np.int32(ROOT), before[above]).astype(np.int32)
    name, names = _used(trace.name[rows], trace.names)
    arg, args = _used(trace.arg[rows], trace.args)
    part = replace(
        trace,
        start=trace.start[rows],
        dur=trace.dur[rows],
        name=name,
        lane=trace.lane[rows],
        category=trace.category[rows],
        layer=trace.layer[rows],
        link=trace.link[rows],
        arg=arg,
        names=names,
        args=args,
    )
    return CutTree(replace(tree, trace=part, parent=parent, stop=before[tree.stop[rows]]), before)


def _nearest(parent: Int32, kept: Mask) -> Int32:
    """The nearest ancestor of each row that is kept, ROOT where none is."""
    above = parent.copy()
    while len(gone := np.flatnonzero((above != ROOT) & ~kept[above])):
        above[gone] = parent[above[gone]]
    return above


def _used(codes: Int32, table: Sequence[str]) -> tuple[Int32, list[str]]:
    """``codes`` as positions among those in use (-1 stays), and these."""
    present = np.unique(codes[codes >= 0])
    place = np.searchsorted(present, codes).astype(np.int32)
    numbers: list[int] = present.tolist()
    return np.where(codes < 0, np.int32(-1), place).astype(np.int32), [table[number] for number in numbers]
