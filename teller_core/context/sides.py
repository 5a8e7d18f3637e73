"""What bears on the suspected spans of a step over all its ranks: also what the ranks waited for in their collectives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.context.dependencies import Met, StepSpans, across, dependencies, positions
from teller_core.context.relevance import RULE, Bearing, Rule, bearing
from teller_core.context.slicing import least_time, suspected
from teller_core.data.assessment import Candidates
from teller_core.data.graph import Graph, Kind, joined, with_edges
from teller_core.data.table import Int64, take

LONG_WAIT = 0.05
"""A wait in a collective of this share of the step bears on it by itself: less cannot be felt."""
TOLD = 3
"""Collectives that are told of at most."""


class Late(NamedTuple):
    """A collective to which a rank surely came last, as handles: the call of the rank that waited longest, that of the late one,
    and what kept it, empty where nobody knows.
    """

    waiting: str
    own: str
    kept: str


@dataclass(frozen=True)
class Sides:
    """``bears``: one for the rows of each rank. ``wanted``: positions of the ranks that came last to a collective which bears on
    a candidate, or in which a rank waited long, and of those that waited longest for them. ``told``: the longest of these waits.
    """

    bears: Sequence[Bearing]
    wanted: frozenset[int]
    told: Sequence[Late]


def side_by_side(spans: Sequence[StepSpans], found: Candidates, met: Met | None, rule: Rule = RULE) -> Sides:
    """What bears on the candidates ``found``, by the dependencies within each rank and, where ``met`` tells the step's
    collectives, between them. The longest wait of the step counts as if a candidate had waited.
    """
    first = np.cumsum([0, *(len(mine.tree) for mine in spans)])
    chosen = [
        row + int(at)
        for mine, at in zip(spans, first[:-1], strict=True)
        for row in suspected(take(found, found.rank == mine.rank), mine.first, len(mine.tree))
    ]
    rows = int(first[-1])
    between = across(spans, met) if met is not None else joined([])
    wait = _waits(spans, met, rows)
    long = _longest(between, wait, LONG_WAIT * max((mine.tree.trace.lasted for mine in spans), default=0))
    if not chosen and not len(long):
        nothing = Bearing(np.zeros(rows), np.zeros(rows, dtype=np.bool_))
        return Sides(_parted(nothing, first), frozenset(), [])
    whole = joined([dependencies(mine.tree) for mine in spans])
    start = np.concatenate([mine.tree.trace.start for mine in spans])
    end = np.concatenate([mine.tree.trace.end for mine in spans])
    least = min(least_time(mine.tree) for mine in spans)
    graph, picked = with_edges(whole, between), np.array(chosen, dtype=np.int64)
    bears = bearing(start, end, graph, picked, rule=rule, least_wait=least)
    for side in (between.before[long], between.after[long]):
        bears.value[side] = np.maximum(bears.value[side], rule.pair)
        bears.paired[side] = True
    pairs = _told(between, wait, bears)
    ends = [(int(between.after[edge]), int(between.before[edge])) for edge in pairs]
    wanted = frozenset(spans[_part(first, row)].rank for pair in ends for row in pair)
    return Sides(_parted(bears, first), wanted, [_late(between, edge, spans, first) for edge in pairs[:TOLD]])


def _waits(parts: Sequence[StepSpans], met: Met | None, rows: int) -> Int64:
    """int64 ns a row: how long its call waited for the last rank of its collective, 0 where nothing tells."""
    wait = np.zeros(rows, dtype=np.int64)
    if met is not None:
        at = positions(parts, met.collectives)
        np.maximum.at(wait, at[at >= 0], met.collectives.wait[at >= 0])
    return wait


def _longest(between: Graph, wait: Int64, least: float) -> Int64:
    """The edges to the call that waited longest, where it waited ``least`` ns."""
    sure = np.flatnonzero(between.of(Kind.COLLECTIVE, Kind.KEPT))
    if not len(sure) or int(wait[between.after[sure]].max()) < max(least, 1.0):
        return sure[:0]
    call = between.after[sure][np.argmax(wait[between.after[sure]])]
    return sure[between.after[sure] == call]


def _told(between: Graph, wait: Int64, bears: Bearing) -> list[int]:
    """Of each collective that bears on a candidate and whose last rank is sure, the edge to the call that waited longest; the
    longest waits first.
    """
    sure = np.flatnonzero(between.of(Kind.COLLECTIVE))
    near = bears.value > 0
    sure = sure[near[between.before[sure]] & near[between.after[sure]]]
    sure = sure[np.argsort(-wait[between.after[sure]], kind="stable")]
    best: dict[int, int] = {}
    for edge in sure.tolist():
        best.setdefault(int(between.before[edge]), edge)
    return list(best.values())


def _late(between: Graph, edge: int, parts: Sequence[StepSpans], first: npt.NDArray[np.integer]) -> Late:
    call = between.after[edge]
    kept = between.before[np.flatnonzero((between.after == call) & between.of(Kind.KEPT))]
    handles = [_handle(parts, first, int(row)) for row in (call, between.before[edge], *kept[:1])]
    return Late(handles[0], handles[1], handles[2] if len(kept) else "")


def _part(first: npt.NDArray[np.integer], row: int) -> int:
    return int(np.searchsorted(first, row, side="right")) - 1


def _handle(parts: Sequence[StepSpans], first: npt.NDArray[np.integer], row: int) -> str:
    at = _part(first, row)
    return f"{parts[at].rank}:{parts[at].first + row - int(first[at])}"


def _parted(bears: Bearing, first: npt.NDArray[np.integer]) -> list[Bearing]:
    """``bears`` for the rows of each rank."""
    ends = zip(first[:-1].tolist(), first[1:].tolist(), strict=True)
    return [Bearing(bears.value[low:high], bears.paired[low:high]) for low, high in ends]
