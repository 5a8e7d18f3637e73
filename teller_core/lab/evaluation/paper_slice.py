"""A step as the paper's model is given it: its causal slice by the paper's constants, in the tokens of its encoding."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from teller_core.context.dependencies import dependencies
from teller_core.context.relevance import bearing, kept
from teller_core.context.tpe.reference import Stream, encode
from teller_core.data.table import Float64, Int64
from teller_core.data.tree import ROOT, Tree
from teller_core.lab.evaluation.operator_times import Profiled


def slice_of(part: Profiled, candidates: Sequence[int]) -> Tree:
    """The rows that bear on ``candidates`` (rows of the rank's tree), as a tree: a row hangs under the nearest kept row above it.

    The first 80 rows of the step where nothing is suspected: the paper's model sees every step.
    """
    step = part.tree.part(part.low, part.high)
    inside = np.array([row - part.low for row in candidates if part.low <= row < part.high], dtype=np.int64)
    if not len(inside):
        return pruned(step, np.arange(min(len(step), 80)))
    trace = step.trace
    found = bearing(trace.start, trace.end, dependencies(step), inside)
    return pruned(step, np.sort(kept(found, trace.dur)))


def pruned(tree: Tree, rows: Int64) -> Tree:
    """The tree of ``rows``, ascending, alone."""
    trace = tree.trace
    number = np.full(len(tree) + 1, ROOT, dtype=np.int32)
    number[rows] = np.arange(len(rows), dtype=np.int32)
    above = np.append(
        tree.parent, np.int32(ROOT)
    )  # the last entry stands for no row: ROOT is its position from the end
    nearest = above[rows]
    while len(gone := np.flatnonzero((nearest != ROOT) & (number[nearest] == ROOT))):
        nearest[gone] = above[nearest[gone]]
    parent = number[nearest]
    stop = np.searchsorted(rows, tree.stop[rows], "left").astype(np.int32)
    columns = ("start", "dur", "name", "lane", "category", "layer", "link", "arg")
    return Tree(replace(trace, **{name: getattr(trace, name)[rows] for name in columns}), parent, stop)


def bag(tree: Tree, stream: Stream) -> Float64:
    """float64 [2 * symbols]: how often each symbol stands in the tokens of ``tree``, and its seconds, both as log1p. The paper's
    durations are log1p of seconds; what is learned from them here is scaled first, so that they can be felt.
    """
    tokens = encode(tree, stream)
    size = len(stream)
    count = np.bincount(tokens.symbol, minlength=size)[:size].astype(np.float64)
    seconds = np.bincount(tokens.symbol, weights=tokens.dur * 1e-9, minlength=size)[:size]
    return np.concatenate([np.log1p(count), np.log1p(seconds)])
