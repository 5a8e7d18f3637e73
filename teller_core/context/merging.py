"""The rows of a step merged by place: calls of one name below one line are one entry, with a count and times in all."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.plain_names import DIGITS, MODULE
from teller_core.data.table import Float64, Int32, Int64, Mask
from teller_core.data.trace import Trace
from teller_core.data.tree import ROOT, Tree


@dataclass(frozen=True)
class Merged:
    """The step with like calls merged: one entry a line. ``of`` int32 a row: its entry, or, for a Python frame that is passed
    over, that of the nearest line above it (-1 for none). An entry each: ``row`` its first row, ``above`` the entry over it
    (-1), ``count``, ``dur`` and ``own`` ns in all, and ``weight``: the larger of its time and of the device work below it.
    """

    of: Int32
    row: Int64
    above: Int64
    count: Int64
    dur: Float64
    own: Float64
    weight: Float64


def merged_by_place(tree: Tree, times: tuple[Int64, Int64], pins: Int64, passed: Mask) -> Merged:
    """Rows with one chain of names become one entry; a pinned row, and what is below it, stays apart from its like. ``times``:
    int64 ns a row, its self time and its weight; ``pins`` rows; ``passed`` bool a row: no line is to stand for it.
    """
    trace, (own, weight) = tree.trace, times
    symbol = np.where(passed, 0, _names_alike(trace))
    symbol[pins] = -1 - pins
    of, first = _entries(tree.paths(symbol))
    row = np.full(len(first), len(tree), dtype=np.int64)
    shown_rows = np.flatnonzero(symbol)
    row[of[shown_rows][::-1]] = shown_rows[::-1]  # the first shown row of each entry is written last
    kept = row < len(tree)  # frames passed over at the top share an entry that no line stands for
    number = np.where(kept, np.cumsum(kept) - 1, -1)
    of = number[of]
    row = row[kept]
    parent = tree.parent[row]
    mine, lines = of[shown_rows], int(kept.sum())
    return Merged(
        of=of.astype(np.int32),
        row=row,
        above=np.where(parent == ROOT, -1, of[np.maximum(parent, 0)]),
        count=np.bincount(mine, minlength=lines).astype(np.int64),
        dur=np.bincount(mine, weights=trace.dur[shown_rows], minlength=lines).astype(np.float64),
        own=np.bincount(mine, weights=own[shown_rows], minlength=lines).astype(np.float64),
        weight=np.bincount(mine, weights=weight[shown_rows], minlength=lines).astype(np.float64),
    )


def _names_alike(trace: Trace) -> Int64:
    """int64 a row, from 1: its name, with modules of the model alike that differ in their number alone."""
    number: dict[str, int] = {}
    like = [number.setdefault(DIGITS.sub("#", n) if n.startswith(MODULE) else n, len(number) + 1) for n in trace.names]
    return np.array(like, dtype=np.int64)[trace.name]


def _entries(path: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> tuple[Int64, Int64]:
    """int64 a row: a number for its path; and where each number begins among the sorted rows. Path and row share one integer,
    because sorting values is five times as fast as sorting positions: the bits a row needs are lost to the path.
    """
    bits = np.uint64(max(1, (len(path) - 1).bit_length()))
    mask = (np.uint64(1) << bits) - np.uint64(1)
    packed = np.sort((path & ~mask) | np.arange(len(path), dtype=np.uint64))
    order = (packed & mask).astype(np.int64)
    packed &= ~mask
    fresh = np.append(True, packed[1:] != packed[:-1])
    of = np.empty(len(path), dtype=np.int64)
    of[order] = np.cumsum(fresh) - 1
    return of, np.flatnonzero(fresh).astype(np.int64)
