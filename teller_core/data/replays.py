"""Kernels of replayed graphs in a tree: which stand under the operators that their graph was captured with."""

import re

import numpy as np

from teller_core.data.table import Mask
from teller_core.data.trace import CAPTURED
from teller_core.data.tree import ROOT, Tree

GRAPH_LAUNCH = re.compile(r"(?:cuda|hip|cu|mu)GraphLaunch")
"""Calls that replay a graph."""


def captured_rows(tree: Tree) -> Mask:
    """bool a row: an operator that a graph repeats without running it."""
    own = np.array([lane.thread == CAPTURED and not lane.device for lane in tree.trace.lanes], dtype=np.bool_)
    return own[tree.trace.lane] if own.any() else np.zeros(len(tree), dtype=np.bool_)


def replayed_kernels(tree: Tree) -> tuple[Mask, Mask]:
    """bool a row, twice: device work of a replay that has an operator, and such that stands right below its launch."""
    trace, parent = tree.trace, np.maximum(tree.parent, 0)
    device = trace.on_device & (tree.parent != ROOT)
    launch = np.array([GRAPH_LAUNCH.match(name) is not None for name in trace.names], dtype=np.bool_)
    below = launch[trace.name[parent]] if launch.any() else np.zeros(len(tree), dtype=np.bool_)
    return device & captured_rows(tree)[parent], device & below


def replays_note(trees: "list[Tree]") -> str:
    """How many kernels of the replays in ``trees`` have an operator, in words; empty where none has."""
    counts = [(int(own.sum()), int(bare.sum())) for own, bare in map(replayed_kernels, trees)]
    known, bare = sum(own for own, _ in counts), sum(less for _, less in counts)
    if not known:
        return ""
    return (
        f"{known} of {known + bare} kernels that graphs replayed stand under the operators that their graph was captured with; "
        "these operators did not run again and took no time"
    )
