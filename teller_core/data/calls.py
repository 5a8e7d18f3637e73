"""The calls of a rank by name: its spans in the order of their names, so that those of one operator lie together.

A question about an operator then reads what is about it alone, instead of the tree it is spread over.
"""

from dataclasses import dataclass

import numpy as np

from teller_core.data.plain_names import is_frame
from teller_core.data.replays import captured_rows, replayed_kernels
from teller_core.data.table import Int32, Int64, Mask, UInt8, check_columns
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree

RAN, REPLAYED, BARE, REPEATED = 0, 1, 2, 3
"""How a call came to be: it ran; a graph replayed it below an operator, or right below its launch; a graph repeated it."""


@dataclass(frozen=True)
class Calls:
    """Spans by name and then by row. ``name`` int32 ascending, ``row`` int32 into the tree, ``own`` int64 ns of self time,
    ``above`` int32: the name of the nearest span over it that is no Python function, -1 for none, and ``layer`` uint8 of that
    one, 0 for none; ``arg`` int32: the arguments of its operator (of itself, or for device work of what launched it), -1 for
    none, and ``operator`` int32 the name of that one; ``came`` uint8: how it came to be.
    """

    name: Int32
    row: Int32
    own: Int64
    above: Int32
    layer: UInt8
    arg: Int32
    operator: Int32
    came: UInt8

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Edges:
    """Which name stands right below which how often: ``above`` and ``below`` int32 names, ``count`` int32, by ``above``."""

    above: Int32
    below: Int32
    count: Int32


def calls_of(tree: Tree) -> Calls:
    """Every span of ``tree``, by name."""
    trace = tree.trace
    replayed, bare = replayed_kernels(tree)
    came = np.where(replayed, REPLAYED, np.where(bare, BARE, np.where(captured_rows(tree), REPEATED, RAN)))
    order = np.argsort(trace.name, kind="stable").astype(np.int32)
    over, works = _above(tree)[order], _operators(tree)[order]
    return Calls(
        name=trace.name[order],
        row=order,
        own=tree.self_time()[order],
        above=np.where(over == ROOT, np.int32(-1), trace.name[over]),
        layer=np.where(over == ROOT, np.uint8(0), trace.layer[over]),
        arg=trace.arg[works],
        operator=trace.name[works],
        came=came[order].astype(np.uint8),
    )


def edges_of(tree: Tree) -> Edges:
    """The pairs of names in ``tree``, one right below the other."""
    name = tree.trace.name
    below = np.flatnonzero(tree.parent != ROOT)
    wide = max(len(tree.trace.names), 1)
    pairs, count = np.unique(name[tree.parent[below]].astype(np.int64) * wide + name[below], return_counts=True)
    above, under = np.divmod(pairs, wide)
    return Edges(above.astype(np.int32), under.astype(np.int32), count.astype(np.int32))


def _above(tree: Tree) -> Int32:
    """int32 a row: the nearest span over it that is no Python function, ROOT for none."""
    trace = tree.trace
    python = trace.layer == Layer.PYTHON
    named = np.array([is_frame(name, Layer.PYTHON) for name in trace.names], dtype=np.bool_)
    frame = python & (named[trace.name] if len(named) else False)
    return _climbed(tree, tree.parent.copy(), frame)


def _operators(tree: Tree) -> Int64:
    """int64 a row: itself, or for device work the nearest operator above it, itself where there is none."""
    trace = tree.trace
    works = np.isin(trace.layer, (Layer.OPERATOR, Layer.COMMUNICATION)) & ~trace.on_device
    itself = np.arange(len(tree), dtype=np.int64)
    device = np.flatnonzero(trace.on_device)
    over = _climbed(tree, tree.parent[device], ~works)
    itself[device] = np.where(over == ROOT, device, over)
    return itself


def _climbed(tree: Tree, at: Int32, passed: Mask) -> Int32:
    """``at``, each brought up to the first row that is not ``passed``."""
    climbing = np.flatnonzero(at != ROOT)
    while len(climbing := climbing[passed[at[climbing]]]):
        at[climbing] = tree.parent[at[climbing]]
        climbing = climbing[at[climbing] != ROOT]
    return at
