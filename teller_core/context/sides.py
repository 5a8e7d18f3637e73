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
    and what kept it, empty where nobody knows; and the ``ns`` that it was waited for.
    """

    waiting: str
    own: str
    kept: str
    ns: int


class Long(NamedTuple):
    """A call of the host that waited for its device, as handles: ``call``, and the ``work`` done ``ns`` after it began."""

    call: str
    work: str
    ns: int


@dataclass(frozen=True)
class Sides:
    """``bears``: one for the rows of each rank. ``wanted``: positions of the ranks that came last to a collective which bears on
    a candidate, or in which a rank waited long, and of those that waited longest for them, or for their device. ``told``: the
    longest of these waits. ``long``: the longest wait of a host for its device, where it can be felt.
    """

    bears: Sequence[Bearing]
    wanted: frozenset[int]
    told: Sequence[Late]
    long: Sequence[Long] = ()


def side_by_side(spans: Sequence[StepSpans], found: Candidates, met: Met | None, rule: Rule = RULE) -> Sides:
    """What bears on the candidates ``found``, by the dependencies within each rank and, where ``met`` tells the step's
    collectives, between them. The longest wait of the step for a rank, and that for a device, count as if a candidate had waited.
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
    least_felt = LONG_WAIT * max((mine.tree.trace.lasted for mine in spans), default=0)
    long = _longest(between, wait, least_felt)
    if not rows:
        return Sides(_parted(Bearing(np.zeros(0), np.zeros(0, dtype=np.bool_)), first), frozenset(), [])
    whole = joined([dependencies(mine.tree) for mine in spans])
    start = np.concatenate([mine.tree.trace.start for mine in spans])
    end = np.concatenate([mine.tree.trace.end for mine in spans])
    least = min(least_time(mine.tree) for mine in spans)
    graph, picked = with_edges(whole, between), np.array(chosen, dtype=np.int64)
    bears = bearing(start, end, graph, picked, rule=rule, least_wait=least)
    held, took = _held(whole, start, end, least_felt)
    for side in (between.before[long], between.after[long], whole.before[held], whole.after[held]):
        bears.value[side] = np.maximum(bears.value[side], rule.pair)
        bears.paired[side] = True
    pairs = _told(between, wait, bears)
    ends = [(int(between.after[edge]), int(between.before[edge])) for edge in pairs]
    ends += [(int(whole.after[edge]), int(whole.before[edge])) for edge in held.tolist()]
    wanted = frozenset(spans[_part(first, row)].rank for pair in ends for row in pair)
    told = [_late(between, edge, wait, spans, first) for edge in pairs[:TOLD]]
    call_and_work = [[_handle(spans, first, row) for row in pair] for pair in ends[len(pairs) :]]
    return Sides(_parted(bears, first), wanted, told, [Long(call, work, took) for call, work in call_and_work])


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


def _held(whole: Graph, start: Int64, end: Int64, least: float) -> tuple[Int64, int]:
    """The edge to the call of a host that waited longest for its device, where it waited ``least`` ns, and those ns."""
    edge = np.flatnonzero(whole.of(Kind.WAIT))
    if not len(edge):
        return edge, 0
    call = whole.after[edge]
    took = np.minimum(end[whole.before[edge]], end[call]) - start[call]
    longest = int(np.argmax(took))
    felt = took[longest] >= max(least, 1.0)
    return (edge[[longest]] if felt else edge[:0]), int(took[longest])


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


def _late(between: Graph, edge: int, wait: Int64, parts: Sequence[StepSpans], first: npt.NDArray[np.integer]) -> Late:
    call = between.after[edge]
    kept = between.before[np.flatnonzero((between.after == call) & between.of(Kind.KEPT))]
    handles = [_handle(parts, first, int(row)) for row in (call, between.before[edge], *kept[:1])]
    return Late(handles[0], handles[1], handles[2] if len(kept) else "", int(wait[call]))


def _part(first: npt.NDArray[np.integer], row: int) -> int:
    return int(np.searchsorted(first, row, side="right")) - 1


def _handle(parts: Sequence[StepSpans], first: npt.NDArray[np.integer], row: int) -> str:
    at = _part(first, row)
    return f"{parts[at].rank}:{parts[at].first + row - int(first[at])}"


def _parted(bears: Bearing, first: npt.NDArray[np.integer]) -> list[Bearing]:
    """``bears`` for the rows of each rank."""
    ends = zip(first[:-1].tolist(), first[1:].tolist(), strict=True)
    return [Bearing(bears.value[low:high], bears.paired[low:high]) for low, high in ends]
