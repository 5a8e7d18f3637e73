"""A piece with calls that were never made in it, and what these would have had to wait for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.context.linking import linked
from teller_core.data.capture import Capture
from teller_core.data.linked import Met
from teller_core.data.table import Int32, Int64, take
from teller_core.judge.replay import Network, network
from teller_core.judge.replay.network import in_order
from teller_core.lab.perturb.inserting import Added, with_rows
from teller_core.lab.perturb.pieces import Piece, made


class Altered(NamedTuple):
    """``piece`` with what was added; ``rows`` int64: where each row of the piece as it was is now; ``new`` int64: the rows that
    were added, in their order.
    """

    piece: Piece
    rows: Int64
    new: Int64


class Wait(NamedTuple):
    """A moment that comes no sooner than ``lag`` ns after another one."""

    before: int
    after: int
    lag: int


def as_it_is(piece: Piece) -> Altered:
    """``piece`` with nothing added."""
    return Altered(piece, np.arange(len(piece.linked), dtype=np.int64), np.empty(0, dtype=np.int64))


def altered(capture: Capture, given: Piece, part: int, added: Sequence[Added]) -> Altered:
    """``given`` with the rows ``added`` to one of its parts: in numbers of the graph's rows, on its clock."""
    parts, first = list(given.linked.parts), given.linked.first
    low, tree = int(first[part]), parts[part].tree
    moved = [
        one._replace(
            before=one.before - low,
            parent=one.parent if one.parent is None or one.parent < 0 else one.parent - low,
            start=one.start - parts[part].shift,
            like=one.like - low,
        )
        for one in added
    ]
    grown = with_rows(tree, moved)
    rows = np.arange(len(given.linked) + 1, dtype=np.int64)
    rows[low : low + len(tree) + 1] = grown.place + low
    rows[low + len(tree) + 1 :] += len(added)
    met = take(capture.collectives, np.isin(capture.collectives.step, given.steps))
    of_rank = met.rank == parts[part].rank
    here = met.row - parts[part].first
    inside = of_rank & (met.row >= 0) & (here >= 0) & (here < len(tree))
    row = met.row.copy()
    row[inside] = grown.place[here[inside]] + parts[part].first
    row[of_rank & ~inside] = -1
    parts[part] = parts[part]._replace(tree=grown.tree)
    graph = network(linked(parts, Met(replace(met, row=row.astype(np.int32)), capture.meetings)))
    bounds = tuple(_bound(rows, given.low, given.high, ends=ends) for ends in (False, True))
    return Altered(made(given.steps, graph, (bounds[0], bounds[1]), given.ticks), rows[:-1], grown.new + low)


def _bound(rows: Int64, low: Int32, high: Int32, *, ends: bool) -> Int32:
    """Where the rows of steps begin or end now: what was added behind their last row is in them."""
    return np.where(high > low, rows[high] if ends else rows[low], 0).astype(np.int32)


def with_waits(graph: Network, waits: Sequence[Wait]) -> Network | None:
    """``graph`` with ``waits`` besides, all else unchanged; None where moments would wait for one another in a circle."""
    target = np.repeat(np.arange(len(graph.time), dtype=np.int32), np.diff(graph.first))
    source = np.append(graph.source, np.array([one.before for one in waits], dtype=np.int32))
    target = np.append(target, np.array([one.after for one in waits], dtype=np.int32))
    lag = np.append(graph.lag, np.array([one.lag for one in waits], dtype=np.int64))
    used = np.append(graph.kept.used, np.ones(len(waits), dtype=np.uint8))
    found = in_order(graph.before, source, target)
    if not found.whole:
        return None
    kept, sort = graph.kept._replace(used=used[found.sort]), found.sort
    return replace(graph, first=found.first, source=source[sort], lag=lag[sort], order=found.order, kept=kept)


def waiting(given: Altered, waits: Sequence[Wait]) -> Altered | None:
    """``given`` with ``waits``, None where that cannot be."""
    graph = with_waits(given.piece.graph, waits) if waits else given.piece.graph
    return None if graph is None else given._replace(piece=replace(given.piece, graph=graph))
