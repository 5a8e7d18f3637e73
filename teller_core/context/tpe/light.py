"""What is too light to matter on its own: neighboring subtrees that together take less than a share of their step are a piece.

The paper's rule (section 4.2) knows no times; a step of fifty thousand calls of a microsecond stays as long as nobody has
learned them. Here what is light goes first and merges come second, so that a longer vocabulary never makes more tokens.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.context.tpe.forest import NONE
from teller_core.data.compiled import compiled
from teller_core.data.table import Int32, Int64, UInt8
from teller_core.data.tokens import Inside
from teller_core.data.trace import Trace
from teller_core.data.tree import Tree

HIDDEN = 0


class Extents(NamedTuple):
    """``of`` int32 a row: where what it stands for ends. For a row that stands for itself alone, the next row; for the first
    row of a light piece, the end of that, negative; HIDDEN for the other rows of a piece.
    """

    of: Int32

    @property
    def plain(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """bool a row: it stands for itself alone."""
        return self.of > HIDDEN

    @property
    def piece(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """bool a row: it is the first of a light piece."""
        return self.of < HIDDEN


def extents(tree: Tree, own: Int64, shut: UInt8, share: int) -> Extents:
    """What is light in ``tree``: pieces of neighboring subtrees, all below one row, that take less than one in ``share`` of the
    tree's time together. ``own`` int64 ns a row: its self time; nothing is light that has a row in it that is ``shut``. A
    ``share`` of 0 makes nothing light.
    """
    of = np.arange(1, len(tree) + 1, dtype=np.int32)
    if share and len(tree):
        least = extent_of(tree.trace) // share
        weight = np.zeros(len(tree), dtype=np.int64)
        _weigh((own, shut), tree.parent, least, weight)
        _lighten(weight, tree.parent, tree.stop, least, of)
    return Extents(of)


def extent_of(trace: Trace) -> int:
    """ns from the first start to the last end of ``trace``."""
    return int(trace.end.max()) - int(trace.start.min()) if len(trace) else 0


@compiled
def _weigh(rows: tuple[Int64, UInt8], parent: Int32, least: int, weight: Int64) -> None:
    """Fill ``weight`` (zeros) with the time of each subtree, ``least`` at most: no more is asked, and no sum overflows."""
    own, shut = rows
    for row in range(len(weight) - 1, -1, -1):
        weight[row] = least if shut[row] else min(weight[row] + max(own[row], 0), least)
        if parent[row] >= 0:
            weight[parent[row]] = min(weight[parent[row]] + weight[row], least)


@compiled
def _lighten(weight: Int64, parent: Int32, stop: Int32, least: int, of: Int32) -> None:
    """Fill ``of``: light subtrees side by side are a piece as long as they stay light together."""
    begin, end, held, row = NONE, NONE, 0, 0
    while row < len(of):
        if weight[row] >= least:
            row += 1
            continue
        if row != end or parent[row] != parent[begin] or held + weight[row] >= least:
            begin, held = row, 0
        held += weight[row]
        end = stop[row]
        of[row:end] = HIDDEN
        of[begin] = -end
        row = end


def inside(tree: Tree, light: Extents) -> Inside:
    """What the light pieces of ``tree`` hold."""
    trace, rows = tree.trace, len(tree)
    held, name, above = (np.empty(rows, dtype=np.int32) for _ in range(3))
    layer = np.empty(rows, dtype=np.uint8)
    made = Inside(held, trace.names, name, layer, above)
    pieces, size = _hidden(light.of, tree.parent, (trace.name, trace.layer), (held, name, above), layer)
    return replace(
        made, rows=held[:pieces].copy(), name=name[:size].copy(), layer=layer[:size].copy(), above=above[:size].copy()
    )


@compiled
def _hidden(
    of: Int32, parent: Int32, called: tuple[Int32, UInt8], made: tuple[Int32, Int32, Int32], layers: UInt8
) -> tuple[int, int]:
    """Fill the columns of :class:`Inside`; returns how many pieces and how many rows."""
    held, name, above = made
    pieces, size, row = 0, 0, 0
    while row < len(of):
        if of[row] > 0:
            row += 1
            continue
        begin, end = row, -of[row]
        for row in range(begin, end):
            name[size], layers[size] = called[0][row], called[1][row]
            above[size] = row - parent[row] if parent[row] >= begin else 0
            size += 1
        held[pieces] = end - begin
        pieces += 1
        row = end
    return pieces, size
