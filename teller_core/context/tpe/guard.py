"""The guard of Trace Pair Encoding: which rows no token may swallow, because a diagnosis may need them.

One number decides, the share of its step that a slowdown must add to be felt. Open stays

- what takes that share: so no slowdown of one span that adds it can be swallowed, whatever is known of the span;
- of a place whose calls together add that share to what is normal for them, the call that adds most;
- what is surprising against its own baseline and adds a quarter of that share.
"""

from typing import NamedTuple

import numpy as np

from teller_core.context.tpe.forest import NONE
from teller_core.data.assessment import MATERIAL, SURPRISING
from teller_core.data.compiled import compiled
from teller_core.data.table import Float32, Float64, Int32, Int64, Mask
from teller_core.data.tree import Tree

ALONE = 0.25
"""Of what is felt: a single surprise is worth a token before it can be felt, as several may meet in one step."""


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
    least = felt * tree.trace.lasted
    if normal is None or not len(tree):
        return own >= max(least, 1.0)
    out, excess = np.empty(len(tree), dtype=np.bool_), np.exp(normal.log, dtype=np.float64)
    _open(own, normal.residual, (max(least, 1.0), SURPRISING, ALONE * least), excess, out)
    out[_worst_of_places(normal.place, excess, least)] = True
    return out


@compiled
def _open(own: Int64, residual: Float32, least: tuple[float, float, float], excess: Float64, out: Mask) -> None:
    """Fill ``out`` by what each row takes, or surprises by and adds; ``excess``: what is normal before, what it adds after."""
    takes, surprises, adds = least
    for row in range(len(own)):
        excess[row] = 0.0 if np.isnan(residual[row]) else own[row] - excess[row]
        out[row] = own[row] >= takes or (residual[row] >= surprises and excess[row] >= adds)


def _worst_of_places(place: Int32, excess: Float64, least: float) -> Int32:
    """int32 rows: of each place that adds ``least`` ns, the call that adds most, the first of several."""
    table = np.full(1 << max(4, (2 * len(place)).bit_length()), NONE, dtype=np.int32)
    first, of = np.empty((2, len(place)), dtype=np.int32)
    adds = np.empty(len(place), dtype=np.float64)
    return first[: int(_worst(place, excess, max(least, 1.0), (table, first, of), adds))]


@compiled
def _worst(place: Int32, excess: Float64, least: float, room: tuple[Int32, Int32, Int32], adds: Float64) -> int:
    """Write the worst calls into the second array of ``room``; returns how many. The others have no content, but for the first,
    a hash table of places, all NONE and a power of two long.
    """
    table, first, of = room
    mask, count = len(table) - 1, 0
    for row in range(len(place)):
        mixed = (int(place[row]) & 0xFFFFFFFF) * 0x1E3779B9
        at = (mixed ^ (mixed >> 32)) & mask
        while table[at] >= 0 and place[first[table[at]]] != place[row]:
            at = (at + 1) & mask
        if table[at] < 0:
            table[at], first[count], adds[count] = count, row, 0.0
            count += 1
        number = table[at]
        of[row] = number
        adds[number] += excess[row]
    for row in range(len(place)):
        if excess[row] > excess[first[of[row]]]:
            first[of[row]] = row
    kept = 0
    for number in range(count):
        if adds[number] >= least:
            first[kept] = first[number]
            kept += 1
    return kept
