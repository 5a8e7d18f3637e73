"""What is normal for every operator at its place, learned from the capture itself, in log time.

A baseline's key is name, place (chain of operators, modules and annotations) and class of step (phase and padded tokens).
Its middle is a median and its width a median absolute deviation, so that a fault which strikes a minority of the steps
does not become the norm. Durations are regressed on the step's tokens (KV tokens for attention) where the steps differ
enough to learn the slope; where they do not, whatever a slope between 0 and 1 explains is taken as normal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from teller_core.data.assessment import Baselines
from teller_core.data.capture import GRAPH_CAPTURE, Capture
from teller_core.data.long_columns import PIECE, Column, kept, let_go, taken
from teller_core.data.table import Float64, Int32, Int64, Mask
from teller_core.data.tree import Tree
from teller_core.judge.classes import SLACK, Classes, capped
from teller_core.judge.grouping import Groups, RankSpans, Runs, join, rank_spans, slimmed
from teller_core.judge.robust import Float32, medians
from teller_core.judge.trends import Trend, bend, trends

LEAST_SPREAD = 0.05
"""A band narrower than 5 % would call a timer's rounding surprising."""
WIDER = 0.25
"""Added (in squares) to the spread for each covariate that nobody recorded."""
MIN_SPANS = 8
"""A baseline of fewer spans says nothing about what is surprising: one odd value among seven may be the norm."""
WIDE = 0.25
"""A place whose calls spread more than this holds several kinds of call: its n-th calls are told apart."""
STEADY = 0.7
"""They can be told apart where this share of the steps makes the same number of calls."""
MOST_NTH = 256
"""Calls of one place in a step that are told apart; more is a loop, not a place."""


@dataclass(frozen=True)
class Spans:
    """The rows of one rank beside their baselines. ``rank``: position in ``Capture.ranks``.

    A row each: ``step`` int32 (-1 none), ``own`` int64 ns, ``group`` int32: its place in a class of steps; ``baseline`` int32
    into Baselines; ``normal`` float32: log ns expected; ``residual`` float32: robust standard deviations above it, NaN where
    too few spans tell. ``order`` int32: rows by group and row; ``runs``: their calls a step; ``calls`` float64 a group; ``known``
    bool a group: what is normal for it was learned elsewhere.
    """

    rank: int
    tree: Tree
    step: Int32
    own: Int64
    group: Int32
    order: Int32
    runs: Runs
    baseline: Int32
    normal: Float32
    residual: Float32
    calls: Float64
    known: Mask


PER_ROW = ("step", "own", "group", "order", "baseline", "normal", "residual")
"""The columns of :class:`Spans` with an entry a row."""


@dataclass(frozen=True)
class _Parts:
    """What has a baseline: groups, then n-th calls of groups. ``of`` int32 a row (one array a rank); an entry a part: its
    ``group`` and ``nth`` (-1 for a whole group), ``median`` and ``spread`` float64 of log ns at the pivot, ``count`` and
    ``total`` ns.
    """

    of: Sequence[Int32]
    group: Int32
    nth: Int32
    median: Float64
    spread: Float64
    count: Int64
    total: Float64


def learn(capture: Capture, classes: Classes, known: Baselines | None = None) -> tuple[Baselines, list[Spans]]:
    """The baselines of ``capture`` and, for each rank that has a profile, its spans beside them. ``known``: those learned
    elsewhere, which stand for its own where they have them.
    """
    trees = [
        (r, rank.tree)
        for r, rank in enumerate(capture.ranks)
        if rank.tree is not None and len(rank.tree) and rank.role != GRAPH_CAPTURE
    ]
    if not trees:
        return _EMPTY, []
    ranks = [rank_spans(capture, r, tree, classes) for r, tree in trees]
    groups = join(ranks)
    ranks = list(map(slimmed, ranks))
    trend = trends(
        _joined(groups.of),
        _joined([spans.value for spans in ranks]),
        _joined([spans.step for spans in ranks]),
        cls=np.array([place.cls for place in groups.places], dtype=np.int32),
        names=groups.raw,
        classes=classes,
    )
    let_go(*groups.of, *(column for spans in ranks for column in (spans.value, spans.step)))
    bent = [bend(of, spans.step, trend, classes) for of, spans in zip(groups.of, ranks, strict=True)]
    parts = _capped(_parts(ranks, groups, [sure for sure, _ in bent], trend), groups, trend, classes)
    elsewhere = np.zeros(len(groups), dtype=np.bool_)
    if known is not None:
        parts = _replaced(parts, groups, trend, classes, known=known, elsewhere=elsewhere)
    beside = [replace(_beside(ranks[i], groups, parts, i, bent[i]), known=elsewhere) for i in range(len(ranks))]
    return _table(parts, groups, classes, trend), beside


def _parts(ranks: Sequence[RankSpans], groups: Groups, sure: Sequence[Float32], trend: Trend) -> _Parts:
    """Learn every group's middle and width; then those of n-th calls where the calls of a place differ."""
    level = _joined([np.maximum(spans.value - bent, 0) for spans, bent in zip(ranks, sure, strict=True)])
    median, spread, count = medians(_joined(groups.of), level, len(groups))
    nth = [_nth(spans, run, groups.calls, spread) for spans, run in zip(ranks, groups.runs, strict=True)]
    of, group, told = _told_apart(nth, groups)
    every = _joined(of)
    if len(group) > len(groups):
        rows = np.flatnonzero(every >= len(groups))
        more = medians(every[rows] - np.int32(len(groups)), level[rows], len(group) - len(groups))
        median, spread = np.append(median, more[0]), np.append(spread, more[1])
        count = np.bincount(every, minlength=len(group))
    shaped = np.array([place.shaped for place in groups.places], dtype=np.bool_)
    spread = np.hypot(np.maximum(spread, LEAST_SPREAD), np.where((trend.known | shaped)[group], 0.0, WIDER))
    total = np.zeros(len(group))
    for mine, spans in zip(of, ranks, strict=True):
        total += np.bincount(mine, weights=spans.own, minlength=len(group))
    used = count > 0
    number = np.cumsum(used, dtype=np.int32) - np.int32(1)
    of = [taken(number, mine) for mine in of]
    return _Parts(of, group[used], told[used], median[used], spread[used], count[used], total[used])


def _capped(parts: _Parts, groups: Groups, trend: Trend, classes: Classes) -> _Parts:
    """``parts`` with no class of steps out of proportion to the others of its phase."""
    enough = parts.count >= MIN_SPANS
    cls = np.array([groups.places[int(g)].cls for g in parts.group], dtype=np.int64)
    number: dict[tuple[str, str, int], int] = {}
    row = np.array(
        [
            number.setdefault((place.name, place.place, int(n)), len(number))
            for place, n in zip((groups.places[int(g)] for g in parts.group), parts.nth, strict=True)
        ],
        dtype=np.int64,
    )
    level = np.full((len(number), len(classes.text)), np.nan)
    level[row[enough], cls[enough]] = parts.median[enough]
    attention = np.zeros(len(number), dtype=np.bool_)
    attention[row] = trend.attention[parts.group]
    cap = np.where(
        attention[:, None], capped(level, classes, classes.kv.pivot), capped(level, classes, classes.tokens.pivot)
    )[row, cls]
    lower = enough & (cap < parts.median)
    narrow = np.full(len(number), np.inf)
    np.minimum.at(narrow, row[enough], parts.spread[enough])
    median = np.where(lower, cap, parts.median)
    spread = np.where(lower, np.minimum(parts.spread, np.hypot(narrow[row], SLACK)), parts.spread)
    return replace(parts, median=median, spread=spread)


def _replaced(
    parts: _Parts, groups: Groups, trend: Trend, classes: Classes, *, known: Baselines, elsewhere: Mask
) -> _Parts:
    """``parts`` with the middle and the width that are ``known`` of them, at the tokens of this capture's steps. Marks in
    ``elsewhere``, bool a group, those that have them.
    """
    row = {key: at for at, key in enumerate(zip(known.name, known.place, known.phase, strict=True))}
    mine = [groups.places[int(g)] for g in parts.group.tolist()]
    at = np.array(
        [
            row.get((place.name, _nth_text(place.place, n), classes.text[place.cls]), -1)
            for place, n in zip(mine, parts.nth.tolist(), strict=True)
        ],
        dtype=np.int64,
    )
    here = np.flatnonzero(at >= 0)
    there = at[here]
    here, there = here[known.count[there] >= MIN_SPANS], there[known.count[there] >= MIN_SPANS]
    moved = known.slope[there] * (trend.pivot[parts.group[here]] - known.pivot[there])
    median, spread, count = parts.median.copy(), parts.spread.copy(), parts.count.copy()
    median[here] = np.log(np.maximum(known.median[there], 1)) + np.nan_to_num(moved)
    spread[here], count[here] = known.spread[there], known.count[there]
    elsewhere[parts.group[here[parts.nth[here] < 0]]] = True
    return replace(parts, median=median, spread=spread, count=count)


def _joined(parts: Sequence[Column]) -> Column:
    """The columns of all ranks one after another. That of a single rank is not copied: it may be long."""
    return np.concatenate(parts) if len(parts) > 1 else parts[0]


def _nth(spans: RankSpans, runs: Runs, calls: Float64, spread: Float64) -> Int32:
    """int32 a row: which call of its place in its step it is, where the calls of the place differ and the steps agree on
    their number; -1 elsewhere.
    """
    length = runs.stop - runs.begin
    nth = np.arange(len(spans.order), dtype=np.int32)
    nth -= np.repeat(runs.begin.astype(np.int32), length)
    usual = calls[runs.group]
    able = (spread[runs.group] > WIDE) & (usual > 1) & (usual <= MOST_NTH) & (runs.step >= 0)
    agree = np.bincount(runs.group, weights=length == usual, minlength=len(calls))
    known = np.bincount(runs.group, minlength=len(calls))
    able &= ((agree >= STEADY * known) & (known >= MIN_SPANS))[runs.group]
    nth[nth >= np.repeat(np.where(able, usual, 0).astype(np.int32), length)] = -1
    apart = np.empty(len(spans.order), dtype=np.int32)
    apart[spans.order] = nth
    return apart


def _told_apart(nth: Sequence[Int32], groups: Groups) -> tuple[list[Int32], Int32, Int32]:
    """The key of every row, its group or, numbered behind the groups, its n-th call; and each key's group and n (-1)."""
    told = [np.flatnonzero(n >= 0) for n in nth]
    pairs = [g[rows].astype(np.int64) * MOST_NTH + n[rows] for g, n, rows in zip(groups.of, nth, told, strict=True)]
    used, index = np.unique(np.concatenate(pairs), return_inverse=True)
    cut = np.cumsum([0, *[len(rows) for rows in told]])
    key = [g.copy() for g in groups.of]
    for mine, rows, (low, high) in zip(key, told, pairwise(cut.tolist()), strict=True):
        mine[rows] = len(groups) + index[low:high]
    part_group = np.concatenate([np.arange(len(groups)), used // MOST_NTH]).astype(np.int32)
    return key, part_group, np.concatenate([np.full(len(groups), -1), used % MOST_NTH]).astype(np.int32)


def _beside(spans: RankSpans, groups: Groups, parts: _Parts, index: int, bent: tuple[Float32, Float32]) -> Spans:
    """The spans of one rank, ``index``-th of those profiled, beside their baselines."""
    of = parts.of[index]
    normal, residual = np.empty((2, len(of)), dtype=np.float32)
    median = parts.median.astype(np.float32)
    width = np.where(parts.count >= MIN_SPANS, parts.spread, np.nan).astype(np.float32)
    for low in range(0, len(of), PIECE):
        part = slice(low, low + PIECE)
        sure, free = (learned[part] for learned in bent)
        away = spans.value[part] - sure - median[of[part]]
        away -= np.clip(away, np.minimum(free, 0), np.maximum(free, 0))
        normal[part], residual[part] = spans.value[part] - away, away / width[of[part]]
    return Spans(
        rank=spans.rank,
        tree=spans.tree,
        step=spans.step,
        own=spans.own,
        group=groups.of[index],
        order=spans.order,
        runs=groups.runs[index],
        baseline=of,
        normal=kept(normal),
        residual=kept(residual),
        calls=groups.calls,
        known=np.zeros(len(groups), dtype=np.bool_),
    )


def _table(parts: _Parts, groups: Groups, classes: Classes, trend: Trend) -> Baselines:
    mine = [groups.places[int(g)] for g in parts.group.tolist()]
    return Baselines(
        name=[place.name for place in mine],
        place=[_nth_text(place.place, n) for place, n in zip(mine, parts.nth.tolist(), strict=True)],
        phase=[classes.text[place.cls] for place in mine],
        layer=np.array([place.layer for place in mine], dtype=np.uint8),
        count=parts.count.astype(np.int32),
        median=_whole(np.exp(parts.median)),
        spread=parts.spread,
        total=_whole(np.trunc(parts.total)),
        calls=np.where(parts.nth >= 0, 1.0, groups.calls[parts.group]),
        slope=trend.slope[parts.group],
        pivot=trend.pivot[parts.group],
    )


def _whole(ns: Float64) -> Int64:
    """int64 ns, at most the last float64 before 2**63: a damaged trace may claim spans of centuries."""
    return np.round(np.clip(ns, 0, np.nextafter(2.0**63, 0))).astype(np.int64)


def _nth_text(place: str, nth: int) -> str:
    return f"{place} #{nth + 1}" if nth >= 0 else place


_EMPTY = Baselines(
    name=[],
    place=[],
    phase=[],
    layer=np.empty(0, np.uint8),
    count=np.empty(0, np.int32),
    median=np.empty(0, np.int64),
    spread=np.empty(0),
    total=np.empty(0, np.int64),
    calls=np.empty(0),
    slope=np.empty(0),
    pivot=np.empty(0),
)
