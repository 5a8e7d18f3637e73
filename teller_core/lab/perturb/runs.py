"""One run of a piece: its rows where they would have been recorded."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from teller_core.data.linked import StepSpans
from teller_core.data.table import UNKNOWN, Int64
from teller_core.judge.replay.retime import at_moments, moved
from teller_core.lab.perturb.altering import as_it_is
from teller_core.lab.perturb.benign import Drawn, run
from teller_core.lab.perturb.blows import Struck, untouched
from teller_core.lab.perturb.pieces import Piece


class Run(NamedTuple):
    """``parts``: the rows of each rank, on its own clock, in ticks of the clock of its recording. ``start``, ``end`` int64 ns a
    row of ``piece``, on the capture's; ``stops``: (part, begin, ns) of times in which a process stood still. ``begin``, ``over``
    int64 ns [steps, parts]: of each step, UNKNOWN where a part has none of it.
    """

    piece: Piece
    parts: Sequence[StepSpans]
    start: Int64
    end: Int64
    stops: Sequence[tuple[int, int, int]]
    begin: Int64
    over: Int64

    def took(self) -> Int64:
        """int64 ns a step, over all parts."""
        return self.over.max(axis=1) - self.began()

    def began(self) -> Int64:
        """int64 ns a step: when the first of the parts began it."""
        return np.where(self.begin == UNKNOWN, np.iinfo(np.int64).max, self.begin).min(axis=1)


class Laid(NamedTuple):
    """Where runs lie: ``offset`` int64 ns a run, on top of its times; ``rows`` int64 [runs, parts]: how many rows of the same
    rank's tree lie before it. ``work`` a run: how many times as much work it was.
    """

    runs: Sequence[Run]
    offset: Int64
    rows: Int64
    work: Sequence[float]


def recorded(piece: Piece) -> Run:
    """The run that was recorded."""
    return _run(untouched(as_it_is(piece)), piece.graph.kept.own)


def replayed(struck: Struck, draw: Drawn) -> Run:
    """A run with the durations of ``draw``, struck."""
    own = run(struck.on.piece, struck.on.rows, draw)
    stretched = np.flatnonzero(struck.times != 1.0)  # what nothing comes before is a time of day, too long for a float
    own[stretched] = np.rint(own[stretched] * struck.times[stretched]).astype(np.int64)
    return _run(struck, own + struck.more)


def _run(struck: Struck, own: Int64) -> Run:
    piece = struck.on.piece
    found = at_moments(piece.graph, own)
    parts = [_in_ticks(part, tick) for part, tick in zip(moved(piece.graph, found), piece.ticks, strict=True)]
    start, end = found.start.copy(), found.end.copy()
    for part, low in zip(parts, piece.linked.first.tolist(), strict=False):
        trace = part.tree.trace
        start[low : low + len(trace)] = trace.start + part.shift
        end[low : low + len(trace)] = trace.end + part.shift
    stops = [
        (piece.part(moment % piece.graph.nodes.rows), int(found.moments[moment]) - ns, ns)
        for moment, ns in struck.stops
    ]
    return Run(piece, parts, start, end, stops, *_bounds(piece, start, end))


def _bounds(piece: Piece, start: Int64, end: Int64) -> tuple[Int64, Int64]:
    begin, over = (np.full(piece.low.shape, UNKNOWN, dtype=np.int64) for _ in range(2))
    timed = piece.linked.host | piece.linked.work
    for at in np.argwhere(piece.high > piece.low).tolist():
        place = tuple(at)
        low, high = int(piece.low[place]), int(piece.high[place])
        mine = timed[low:high]
        begin[place], over[place] = start[low:high][mine].min(), end[low:high][mine].max()
    return begin, over


def _in_ticks(part: StepSpans, tick: int) -> StepSpans:
    """``part`` with begins and ends that its recorder could have written. None changes its place in their order."""
    trace = part.tree.trace
    start, end = trace.start // tick * tick, trace.end // tick * tick
    return part._replace(tree=replace(part.tree, trace=replace(trace, start=start, dur=end - start)))
