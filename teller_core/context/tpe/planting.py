"""The forest of a tree before anything is merged: every row a live token, those of a light piece one together."""

import numpy as np

from teller_core.context.tpe import forest as forests
from teller_core.context.tpe.forest import ABOVE, AFTER, BEFORE, FIRST, HIGH, LABEL, NONE, Forest, Pairs
from teller_core.context.tpe.light import HIDDEN
from teller_core.data.compiled import compiled, forget_stale
from teller_core.data.table import Int32, UInt8

PLACES = 10
"""Places of pairs a row: it has two slots, and each merge, which there are fewer of than rows, changes eight at most."""


def planted(
    symbol: Int32,
    parent: Int32,
    stop: Int32,
    pairs: Pairs,
    *,
    extent: Int32 | None = None,
    opened: UInt8 | None = None,
    weight: Int32 | None = None,
    room: int = 0,
    runs: bool = True,
) -> Forest:
    """The forest of all rows, with ``pairs`` known. ``extent`` int32 a row: what it stands for, see :mod:`light`; ``opened``
    uint8 a row: it merges with nothing. ``room``: the tables of pairs, which are not changed otherwise, are empty and
    hold so many; ``runs``: what is alike side by side is counted.
    """
    rows, known = len(symbol), len(pairs.known)
    mark = np.array([NONE, 0, 0, 0, 0, runs], dtype=np.int64)
    forest = Forest(
        node=np.empty((rows, 8), dtype=np.int32),
        opened=np.zeros(rows, dtype=np.uint8) if opened is None else opened,
        weight=np.empty(0, dtype=np.int32) if weight is None else weight,
        slot=np.full(2 * rows, NONE, dtype=np.int32),
        told=np.empty(rows, dtype=np.int64),
        link=np.empty(rows, dtype=np.int32),
        place=np.empty((PLACES * rows, 2), dtype=np.int32),
        mark=mark,
        key=pairs.key,
        at=pairs.at,
        side=pairs.side,
        known=pairs.known,
        times=np.zeros(room, dtype=np.int64),
        first=np.full(known, NONE, dtype=np.int32),
        heap=np.empty((2, room), dtype=np.int32),
        shown=np.empty(room, dtype=np.int64),
    )
    _plant(forest, symbol, parent, stop, np.arange(1, rows + 1, dtype=np.int32) if extent is None else extent)
    return forest


@compiled
def _plant(forest: Forest, symbol: Int32, parent: Int32, stop: Int32, extent: Int32) -> None:
    """Make every row, in pre-order, a live token, those of light pieces one together (``extent``: see :func:`light.extents`).
    Roots have negative parents: those of one tree the same, of others another.
    """
    node, rows = forest.node, len(symbol)
    for row in range(rows):
        for column in range(8):
            node[row, column] = NONE
        if extent[row] != HIDDEN:
            node[row, LABEL] = 2 * symbol[row]
            node[row, HIGH] = abs(extent[row])
    for row in range(rows):
        if extent[row] == HIDDEN:
            continue
        if extent[row] > 0 and stop[row] > row + 1:
            node[row, FIRST] = row + 1
            node[row + 1, ABOVE] = row
        following = stop[row] if extent[row] > 0 else -extent[row]
        if following < rows and parent[following] == parent[row]:
            node[row, AFTER] = following
            node[following, BEFORE] = row


forget_stale(_plant, __file__, forests.__file__)
