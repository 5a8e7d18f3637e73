"""The rows of the answer about a fleet: what kinds of requests, and which replicas, its tail is of."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.difference import so_or_not
from teller_core.data.report import Cell
from teller_core.data.tails import SIZES, Measured, Sort, Sums
from teller_core.tell.layout import plain
from teller_core.tell.tail import FEW, LEVEL, Cut, Group, cohorts, groups, quantile_of, stands_out

COLUMNS = ("of", "what", "in_tail", "tail_share", "in_middle", "middle_share", "effect", "low", "high", "ns", "named")
REPLICA_COLUMNS = (
    "replica", "name", "requests", "p50_ms", "quantile_ms", "in_tail", "tail_share", "share", "times", "without_ms", "named",
)  # fmt: skip
KEPT = 8
"""Rows of a kind, and replicas; what is named is kept besides."""
TIMES = 2.0
"""An outlier has so many times its share of all requests in the tail."""
UNNAMED = frozenset({"none named", "unknown"})
LONGEST = 48

Sides = tuple[dict[str, tuple[int, int]], dict[str, tuple[int, int]]]
"""Of the tail and of the middle: how many requests and ns in all, by what they are."""


class Replica(NamedTuple):
    """What a replica is called, and the capture that it was recorded in."""

    label: str
    name: str
    host: str
    service: str


class Kind(NamedTuple):
    """The groups of one kind; ``named``: which of them stand out."""

    of: str
    groups: list[Group]
    named: list[Group]


def kinds(sums: Sequence[Sums], sorts: Sequence[Sort], replicas: Mapping[tuple[int, int], Replica]) -> list[Kind]:
    """The groups that the cohorts fall into, by kind; kinds of which there is one sort alone are left out."""
    sides = {of: _told(sorts, of) for of in ("cause", "rank")}
    for of in ("label", "host", "service"):
        sides["replica" if of == "label" else of] = _of_replicas(sums, replicas, of)
    sides |= {of: _told(sorts, of) for of in ("prompt", "output", "ended by")}
    found = {of: groups(*side) for of, side in sides.items() if len(side[0].keys() | side[1].keys()) > 1}
    tried = sum(len(several) for several in found.values())
    return [
        Kind(of, several, [one for one in several if one.what not in UNNAMED and stands_out(one, tried)])
        for of, several in found.items()
    ]


def kind_rows(kind: Kind) -> list[list[Cell]]:
    """A row a group, the largest parts first, and one for all others: their ns sum to the gap."""
    of_tail, of_middle = (sum(getattr(one, side) for one in kind.groups) for side in ("tail", "middle"))
    kept = [one for at, one in enumerate(kind.groups) if at < KEPT or one in kind.named]
    left = [one for one in kind.groups if one not in kept]
    rows = [_row(kind.of, one, of_tail, of_middle, one in kind.named) for one in kept]
    if left:
        counts = [sum(getattr(one, side) for one in left) for side in ("tail", "middle", "ns")]
        others = Group(f"{len(left)} others", *counts, differs=None)
        rows.append(_row(kind.of, others, of_tail, of_middle, False))
    return rows


def replica_rows(measured: Measured, cut: Cut, replicas: Mapping[tuple[int, int], Replica]) -> list[list[Cell]]:
    """A row a replica, those that stand out first, then who has most of the tail; KEPT of them."""
    in_tail = measured.value >= cut.bounds.tail
    size, tail, count = len(measured.value), int(in_tail.sum()), len(measured.replicas)
    all_of = np.bincount(measured.replica, minlength=count)
    tail_of = np.bincount(measured.replica[in_tail], minlength=count)
    times = (tail_of / tail) / (all_of / size)
    named = {
        at
        for at in np.flatnonzero((tail_of >= FEW) & (times >= TIMES)).tolist()
        if (differs := so_or_not(int(tail_of[at]), tail, int(all_of[at] - tail_of[at]), size - tail))
        and differs.chance * count < LEVEL
    }
    first = sorted(range(count), key=lambda at: (at not in named, -int(tail_of[at]), at))[:KEPT]
    rows: list[list[Cell]] = []
    for at in first:
        mine = measured.replica == at
        known = replicas[measured.replicas[at]]
        without = None if at not in named else _ms(quantile_of(measured.value[~mine], cut.quantile))
        middles = [_ms(quantile_of(measured.value[mine], quantile)) for quantile in (0.5, cut.quantile)]
        shares = [round(float(tail_of[at]) / tail, 3), round(float(all_of[at]) / size, 3), round(float(times[at]), 2)]
        rows.append(
            [known.label, known.name, int(all_of[at]), *middles, int(tail_of[at]), *shares, without, at in named]
        )
    return rows


def _told(sorts: Sequence[Sort], of: str) -> Sides:
    """The cohorts by one of the kinds that SQL tells apart, in words."""
    sides: Sides = ({}, {})
    for one in sorts:
        if one.of == of:
            sides[0 if one.tail else 1][_called(of, one.what)] = (one.requests, one.value)
    return sides


def _of_replicas(sums: Sequence[Sums], replicas: Mapping[tuple[int, int], Replica], by: str) -> Sides:
    sides: Sides = ({}, {})
    for side, cohort in zip(sides, cohorts(sums), strict=True):
        for one in cohort:
            what = getattr(replicas[(one.capture, one.engine)], by) or "unknown"
            count, value = side.get(what, (0, 0))
            side[what] = (count + one.requests, value + one.value)
    return sides


def _called(of: str, what: str | int) -> str:
    if of in ("prompt", "output"):
        at = int(what)
        low, high = (SIZES[at - 1] if at > 0 else 0), (SIZES[at] if 0 <= at < len(SIZES) else None)
        return "unknown" if at < 0 else f"{low:,} to {high - 1:,} tokens" if high else f"{low:,} tokens or more"
    if of == "rank":
        return "none named" if what == -1 else f"rank {what}"
    return plain(str(what), LONGEST) or ("none named" if of == "cause" else "unknown")


def _row(of: str, one: Group, of_tail: int, of_middle: int, named: bool) -> list[Cell]:
    shares = [one.tail, round(one.tail / of_tail, 3), one.middle, round(one.middle / of_middle, 3)]
    effect: list[Cell] = [None] * 3 if one.differs is None else [round(value, 3) for value in one.differs[:3]]
    return [of, one.what, *shares, *effect, one.ns, named]


def _ms(ns: int) -> float:
    return round(ns / 1e6, 3)
