"""The tokens of a forest as columns, compiled: one pass over the live tokens, and one over all rows."""

from typing import NamedTuple

import numpy as np

from teller_core.context.tpe import forest as forests
from teller_core.context.tpe.forest import HEAD, HIGH, LABEL, NONE, TAIL, Forest
from teller_core.data.compiled import compiled, forget_stale
from teller_core.data.table import UNKNOWN, Int32, Int64
from teller_core.data.tokens import Tokens
from teller_core.data.tree import Tree

SYMBOL, RUN, PARENT, DEPTH, LOW, ENDS, WHERE = range(7)
"""Rows of ``Columns.number``."""
OWN, LARGEST, START = range(3)
"""Rows of ``Columns.time``."""


class Columns(NamedTuple):
    """What is filled in: ``number`` int32 [7, tokens]; ``time`` int64 [3, tokens]; ``told`` int64 as in
    :class:`Encoded`; a row, ``owner`` int32: its token, and ``own`` int64 ns: its self time.
    """

    number: Int32
    time: Int64
    told: Int64
    owner: Int32
    own: Int64


def self_times(tree: Tree) -> Int64:
    """int64 ns a row: what :meth:`Tree.self_time` gives, compiled."""
    trace, own, until = tree.trace, *(np.empty(len(tree), dtype=np.int64) for _ in range(2))
    _self_times(tree.parent, trace.lane, (trace.start, trace.dur), own, until)
    return own


def tokens_of(tree: Tree, forest: Forest, own: Int64) -> tuple[Tokens, Int64]:
    """The live tokens as a table, and what no symbol tells of them: ``told`` of :class:`Encoded`. ``own``: what
    :func:`self_times` gives.
    """
    rows, trace = len(tree), tree.trace
    owner = np.empty(rows, dtype=np.int32)
    count = int(_live(forest.node, owner))
    number = np.empty((7, count), dtype=np.int32)
    number[LOW] = owner[:count]
    time = np.empty((3, count), dtype=np.int64)
    told = np.empty(rows, dtype=np.int64)
    size = int(_fill(forest, tree.parent, trace.start, Columns(number, time, told, owner, own)))
    tokens = Tokens(
        symbol=number[SYMBOL],
        run=number[RUN],
        parent=number[PARENT],
        depth=number[DEPTH],
        low=number[LOW],
        high=number[ENDS],
        own=time[OWN],
        largest=time[LARGEST],
        where=number[WHERE],
        start=time[START],
    )
    return tokens, told[:size].copy()


@compiled
def _live(node: Int32, low: Int32) -> int:
    """The live tokens, which follow one another, into ``low``; returns how many."""
    count, token = 0, 0
    while token < len(low):
        low[count] = token
        count += 1
        token = node[token, HIGH]
    return count


@compiled
def _self_times(parent: Int32, lane: Int32, time: tuple[Int64, Int64], own: Int64, until: Int64) -> None:
    """Fill ``own`` in one pass: a child takes from the row above what no child before it has taken. ``until`` int64 ns a row:
    when the last of its children ends.
    """
    start, dur = time
    for row in range(len(own)):
        own[row] = dur[row]
        until[row] = UNKNOWN
        above = parent[row]
        if above >= 0 and lane[above] == lane[row]:
            begin, end = start[row], start[row] + dur[row]
            own[above] -= dur[row]
            if until[above] > begin:
                own[above] += min(until[above], end) - begin
            until[above] = max(until[above], end)


@compiled
def _fill(forest: Forest, parent: Int32, start: Int64, made: Columns) -> int:
    """Fill everything, from LOW; returns how much is told."""
    node, told, own = forest.node, forest.told, made.own
    number, time, size = made.number, made.time, 0
    for token in range(number.shape[1]):
        low = number[LOW, token]
        high, label = node[low, HIGH], node[low, LABEL]
        above = parent[low]
        up = made.owner[above] if above >= 0 else NONE
        number[SYMBOL, token], number[PARENT, token], number[ENDS, token] = label >> 1, up, high
        number[DEPTH, token] = 0 if up == NONE else number[DEPTH, up] + 1
        time[START, token] = start[low] - start[0]
        at, last = node[low, HEAD], node[low, TAIL]
        number[RUN, token] = told[at] if label & 1 else 1
        while at != NONE:
            made.told[size] = told[at]
            size += 1
            at = forest.link[at] if at != last else NONE
        total, where = own[low], low
        made.owner[low] = token
        for row in range(low + 1, high):
            made.owner[row] = token
            total += own[row]
            where = row if own[row] > own[where] else where
        number[WHERE, token], time[OWN, token], time[LARGEST, token] = where, total, own[where]
    return size


forget_stale(_fill, __file__, forests.__file__)
