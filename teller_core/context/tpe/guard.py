"""The guard of Trace Pair Encoding: which rows no token may swallow, because a diagnosis may need them.

One number decides, the share of its step that a slowdown must add to be felt. Open stays

- what takes that share: so no slowdown of one span that adds it can be swallowed, whatever is known of the span;
- of a place whose calls together add that share to what is normal for them, the call that adds most;
- what is surprising against its own baseline and adds a quarter of that share.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.context.tpe.light import extent_of
from teller_core.data.assessment import MATERIAL, SURPRISING
from teller_core.data.table import Int32, Int64
from teller_core.data.tree import Tree

ALONE = 0.25
"""Of what is felt: a single surprise is worth a token before it can be felt, as several may meet in one step."""
Mask = npt.NDArray[np.bool_]
Float32 = npt.NDArray[np.float32]


class Normal(NamedTuple):
    """What is normal for the rows of a step, as the judge learned it. A row each: ``log`` float32: log ns of own time expected;
    ``residual`` float32: robust standard deviations above it, NaN where too few calls tell; ``place`` int32: rows of one place
    have one number.
    """

    log: Float32
    residual: Float32
    place: Int32


def opened(tree: Tree, own: Int64, normal: Normal | None = None, felt: float = MATERIAL) -> Mask:
    """bool a row of ``tree``, a step on one rank: it stays a token of its own. ``own`` int64 ns a row: its self time. Without
    ``normal`` only what takes a ``felt`` share of the step stays open.
    """
    least = felt * extent_of(tree.trace)
    out = own >= max(least, 1.0)
    if normal is None or not len(tree):
        return out
    known = ~np.isnan(normal.residual)
    excess = np.where(known, own - np.exp(normal.log.astype(np.float64)), 0.0)
    out |= known & (normal.residual >= SURPRISING) & (excess >= ALONE * least)
    out[_worst_of_places(normal.place, excess, least)] = True
    return out


def _worst_of_places(place: Int32, excess: npt.NDArray[np.float64], least: float) -> Int64:
    """int64 rows: of each place that adds ``least`` ns, the call that adds most, the first of several."""
    _, of = np.unique(place, return_inverse=True)
    adds = np.bincount(of, excess) >= max(least, 1.0)
    rows = np.flatnonzero(adds[of])
    order = rows[np.lexsort((rows, -excess[rows], of[rows]))]
    return order[np.append(True, of[order][1:] != of[order][:-1])] if len(order) else order
