"""What is too light to matter on its own: neighboring subtrees that together take less than a share of their step are a piece.

The paper's rule (section 4.2) knows no times; a step of fifty thousand calls of a microsecond stays as long as nobody has
learned them. Here what is light goes first and merges come second, so that a longer vocabulary never makes more tokens.
"""

from dataclasses import replace

import numpy as np

from teller_core.context.tpe.forest import NONE
from teller_core.data.compiled import compiled
from teller_core.data.table import Int32, Int64, UInt8
from teller_core.data.tokens import Inside
from teller_core.data.tree import Tree

HIDDEN = 0


def extents(tree: Tree, own: Int64, opened: UInt8, share: int) -> Int32:
    """int32 a row of ``tree``: where what it stands for ends. For a row that stands for itself alone, the next row; for the
    first row of a light piece, the end of that, negative; HIDDEN for the other rows of a piece.

    Light are neighboring subtrees, all below one row, that take less than one in ``share`` of the tree's time together. ``own``
    int64 ns a row: its self time; nothing is light that has a row in it that is ``opened``. A ``share`` of 0 makes nothing light.
    """
    extent = np.arange(1, len(tree) + 1, dtype=np.int32)
    if share and len(tree):
        least = tree.trace.lasted // share
        weight = np.zeros(len(tree), dtype=np.int64)
        _weigh((own, opened), tree.parent, least, weight)
        _lighten(weight, tree.parent, tree.stop, least, extent)
    return extent


@compiled
def _weigh(rows: tuple[Int64, UInt8], parent: Int32, least: int, weight: Int64) -> None:
    """Fill ``weight`` (zeros) with the time of each subtree, ``least`` at most: no more is asked, and no sum overflows."""
    own, opened = rows
    for row in range(len(weight) - 1, -1, -1):
        weight[row] = least if opened[row] else min(weight[row] + max(own[row], 0), least)
        if parent[row] >= 0:
            weight[parent[row]] = min(weight[parent[row]] + weight[row], least)


@compiled
def _lighten(weight: Int64, parent: Int32, stop: Int32, least: int, extent: Int32) -> None:
    """Fill ``extent``: light subtrees side by side are a piece as long as they stay light together."""
    begin, end, held, row = NONE, NONE, 0, 0
    while row < len(extent):
        if weight[row] >= least:
            row += 1
            continue
        if row != end or parent[row] != parent[begin] or held + weight[row] >= least:
            begin, held = row, 0
        held += weight[row]
        end = stop[row]
        extent[row:end] = HIDDEN
        extent[begin] = -end
        row = end


def inside(tree: Tree, extent: Int32) -> Inside:
    """What the light pieces of ``tree`` hold."""
    trace, rows = tree.trace, len(tree)
    held, name, above = (np.empty(rows, dtype=np.int32) for _ in range(3))
    layer = np.empty(rows, dtype=np.uint8)
    made = Inside(held, trace.names, name, layer, above)
    pieces, size = _hidden(extent, tree.parent, (trace.name, trace.layer), (held, name, above), layer)
    return replace(
        made, rows=held[:pieces].copy(), name=name[:size].copy(), layer=layer[:size].copy(), above=above[:size].copy()
    )


@compiled
def _hidden(
    extent: Int32, parent: Int32, called: tuple[Int32, UInt8], made: tuple[Int32, Int32, Int32], layers: UInt8
) -> tuple[int, int]:
    """Fill the columns of :class:`Inside`; returns how many pieces and how many rows."""
    held, name, above = made
    pieces, size, row = 0, 0, 0
    while row < len(extent):
        if extent[row] > HIDDEN:
            row += 1
            continue
        begin, end = row, -extent[row]
        for row in range(begin, end):
            name[size], layers[size] = called[0][row], called[1][row]
            above[size] = row - parent[row] if parent[row] >= begin else 0
            size += 1
        held[pieces] = end - begin
        pieces += 1
        row = end
    return pieces, size
