"""What the same steps might as well have taken: recorded durations drawn again from their like, without any fault.

What was recorded is one draw among others. Spans that are alike in a step (one name below one name) change places with one
another; the others, and each step as a whole, take ``e ** (x - y)`` times as long, x and y being drawn from how much like
spans and like steps differ, and y being the same in all runs of an episode. So a recorded run put among replayed ones would be
one of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int64, Mask
from teller_core.lab.perturb.pieces import Piece

LEAST_ALIKE = 4
"""Spans that change places."""
LEAST_KNOWN = 30
"""Differences between spans of one kind from which more are drawn."""
WIDEST = 1.0
"""Log: what a span took more or less than its like counts up to this."""
USUAL_SPAN = 0.05
"""Log: standard deviation of a span where too little is known of its like."""
WIDEST_STEP = 0.2
HOST, DEVICE = 0, 1


class Spread(NamedTuple):
    """Logs of how much like steps differ, as a whole: their work on ``host`` and ``device``."""

    host: Float64
    device: Float64


class Like(NamedTuple):
    """Of a piece: ``group`` int64 a row, -1 for one that has too few like it; ``side`` int64 a row; ``known`` bool a row: its
    time is its own. ``rest``: by side, logs of how much like spans differ.
    """

    group: Int64
    side: Int64
    known: Mask
    rest: tuple[Float64, Float64]


class Drawn(NamedTuple):
    """``span`` float64 a row and ``step`` float64 [sides, steps, parts]: how many times as long it takes."""

    span: Float64
    step: Float64


def like(piece: Piece) -> Like:
    """Which rows of ``piece`` are alike, and how much like ones differ."""
    rows, graph = piece.linked, piece.graph
    owned = graph.kept.owned[: len(rows)]
    known = (rows.host | rows.work) & (owned > 0) & ~graph.unknown & (piece.of_row >= 0)
    side = np.where(rows.work, DEVICE, HOST).astype(np.int64)
    mine = np.flatnonzero(known)
    name = _names(piece)
    above = np.where(rows.parent[mine] >= 0, name[np.maximum(rows.parent[mine], 0)], -1)
    key = np.stack([piece.of_row[mine].astype(np.int64), rows.lane[mine].astype(np.int64), name[mine], above])
    _, of, count = np.unique(key, axis=1, return_inverse=True, return_counts=True)
    of = of.reshape(-1)
    group = np.full(len(rows), -1, dtype=np.int64)
    enough = count[of] >= LEAST_ALIKE
    group[mine[enough]] = of[enough]
    rest = _differences(group, owned, side)
    return Like(group, side, known, rest)


def drawn(piece: Piece, alike: Like, spread: Spread, chance: np.random.Generator) -> Drawn:
    """One draw: for what is not alike and for steps the logs alone, that is one side of their difference."""
    span = np.zeros(len(alike.group))
    for side in (HOST, DEVICE):
        single = np.flatnonzero(alike.known & (alike.group < 0) & (alike.side == side))
        rest = alike.rest[side]
        span[single] = chance.choice(rest, len(single)) if len(rest) else chance.normal(0, USUAL_SPAN, len(single))
    steps, parts = piece.low.shape
    step = np.stack([chance.choice(each, (steps, parts)) for each in spread])
    return Drawn(span, step)


def between(piece: Piece, alike: Like, draw: Drawn, center: Drawn, chance: np.random.Generator) -> Drawn:
    """How many times as long a run takes that has ``draw``, where what was recorded had ``center``. Like spans change places."""
    span = np.exp(draw.span - center.span)
    mine = np.flatnonzero(alike.group >= 0)
    owned = piece.graph.kept.owned[mine].astype(np.float64)
    was = np.lexsort((mine, alike.group[mine]))
    now = np.lexsort((chance.random(len(mine)), alike.group[mine]))
    taken = np.empty(len(mine))
    taken[was] = owned[now]
    span[mine] = taken / owned
    return Drawn(span, np.exp(draw.step - center.step))


def run(piece: Piece, rows: Int64, draw: Drawn) -> Int64:
    """int64 ns a moment of ``piece``, of which ``rows`` are those that ``draw`` is about: its own time in such a run. What nobody
    owns, and what may hold a wait for something unknown, stays as it was.
    """
    graph, linked = piece.graph, piece.linked
    nodes, owner = graph.nodes, graph.owner
    own = graph.kept.own
    mine = np.flatnonzero((owner >= 0) & (own > 0) & (piece.of_moment >= 0))
    at, step = owner[mine].astype(np.int64), piece.of_moment[mine]
    row = np.minimum(at, len(linked) - 1)
    is_row, is_meeting = at < nodes.rows, (at >= nodes.meeting_owner) & (at < nodes.lane_owner)
    side = np.where(is_row, linked.work[row], is_meeting).astype(np.int64)
    lane = np.where(at >= nodes.lane_owner, at - nodes.lane_owner, linked.lane[row])
    part = np.where(is_meeting, 0, linked.lane_part[lane])
    held = np.ones(len(linked))
    held[rows] = draw.span
    times = np.where(is_row, held[row], 1.0) * draw.step[side, step, part]
    times[is_row & graph.unknown[row]] = 1.0
    out = own.copy()
    out[mine] = np.rint(own[mine] * times).astype(np.int64)
    return out


def spread_of(given: Sequence[Sequence[Piece]]) -> Spread:
    """How much like steps of recordings differ: of each recording (a sequence of its pieces) with enough of them, the work of
    each step against the median of those at its place in its piece.
    """
    found: tuple[list[float], list[float]] = ([0.0], [0.0])
    for several in given:
        totals = [_totals(piece) for piece in several if piece.low.shape == several[0].low.shape]
        if len(totals) < LEAST_ALIKE:
            continue
        log = np.log(np.array(totals) + 1_000.0)  # pieces, sides, steps, parts
        away = (log - np.median(log, axis=0)).clip(-WIDEST_STEP, WIDEST_STEP)
        for side in (HOST, DEVICE):
            if np.ptp(log[:, side]) > 0:
                found[side].extend(away[:, side].reshape(-1).tolist())
    return Spread(*(np.sort(np.array(_mirrored(each))) for each in found))


def _mirrored(logs: Sequence[float]) -> list[float]:
    return [*logs, *(-log for log in logs)]


def _totals(piece: Piece) -> Float64:
    """float64 [sides, steps, parts] ns of own time."""
    rows, out = piece.linked, np.zeros((2, *piece.low.shape))
    mine = np.flatnonzero((piece.of_row >= 0) & (rows.host | rows.work) & ~piece.graph.unknown)
    side = rows.work[mine].astype(np.int64)
    np.add.at(out, (side, piece.of_row[mine], rows.lane_part[rows.lane[mine]]), piece.graph.kept.owned[mine])
    return out


def _differences(group: Int64, owned: Int64, side: Int64) -> tuple[Float64, Float64]:
    """Logs of the time of each row over the median of its group, by side; empty where too few are known."""
    mine = np.flatnonzero(group >= 0)
    out: list[Float64] = []
    for which in (HOST, DEVICE):
        own = mine[side[mine] == which]
        if len(own) < LEAST_KNOWN:
            out.append(np.empty(0))
            continue
        log = np.log(owned[own].astype(np.float64))
        order = np.lexsort((log, group[own]))
        cuts = np.flatnonzero(np.append(True, np.diff(group[own][order]) != 0))
        size = np.diff(np.append(cuts, len(own)))
        middle = np.repeat(log[order][cuts + size // 2], size)
        out.append((log[order] - middle).clip(-WIDEST, WIDEST))
    return out[0], out[1]


def _names(piece: Piece) -> Int64:
    """int64 a row: a number for its name, the same in all parts."""
    known: dict[str, int] = {}
    columns: list[Int64] = []
    for part in piece.linked.parts:
        trace = part.tree.trace
        number = np.array([known.setdefault(name, len(known)) for name in trace.names] or [0], dtype=np.int64)
        columns.append(number[trace.name])
    columns.append(np.full(len(piece.linked) - int(piece.linked.first[-1]), -1, dtype=np.int64))
    return np.concatenate(columns)
