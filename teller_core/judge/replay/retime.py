"""The same work with other durations: when everything would have begun and ended."""

from dataclasses import dataclass, replace

import numpy as np

from teller_core.data.linked import StepSpans
from teller_core.data.table import Int64, UInt8
from teller_core.judge.replay.chains import NOBODY
from teller_core.judge.replay.network import Network, Way


@dataclass(frozen=True)
class Retimed:
    """``start``, ``end`` int64 ns a row, on the capture's clock; ``moments`` int64 ns a moment of the network."""

    start: Int64
    end: Int64
    moments: Int64

    @property
    def over(self) -> int:
        """ns: when the last row ended."""
        return int(self.end.max()) if len(self.end) else 0


def retime(graph: Network, durations: Int64, *, shrink: bool = False, free: Int64 | None = None) -> Retimed:
    """When the rows of ``graph`` begin and end with ``durations``: int64 ns an owner of time (see Nodes), in place of
    ``graph.kept.owned`` (``graph.shrunk.owned`` where unknown time is to ``shrink``). ``free``: rows that wait for nothing but
    their thread any more.

    The same durations give the same times. Each stretch of an owner's time grows and shrinks with all of it. Shorter durations
    end nothing later. What ran before, and the begin of each thread, stay where they were. Linear in moments and arcs. Raises
    ValueError for a negative duration.
    """
    way = graph.shrunk if shrink else graph.kept
    used = way.used
    if free is not None and len(free):
        used = used.copy()
        for end in (free + graph.nodes.rows).tolist():
            used[int(graph.first[end]) : int(graph.first[end + 1])] = 0
    return _passed(graph, used, _scaled(graph, way, durations))


def at_moments(graph: Network, own: Int64) -> Retimed:
    """When the rows of ``graph`` begin and end where each moment comes ``own`` int64 ns after the last of what it depends on,
    in place of ``graph.kept.own``: for who changes less than all of an owner's time.
    """
    return _passed(graph, graph.kept.used, own)


def _passed(graph: Network, used: UInt8, own: Int64) -> Retimed:
    """``used`` and ``own`` as in :class:`Way`."""
    from teller_core.judge.replay import passes

    moments = np.empty(len(graph.time), dtype=np.int64)
    passes.forward(graph.held(used), graph.order, own, moments)
    return _rows(graph, moments)


def moved(graph: Network, found: Retimed) -> list[StepSpans]:
    """The parts of ``graph`` as they would have been recorded: their rows in the same order, each on its own clock."""
    parts: list[StepSpans] = []
    for part, low in zip(graph.linked.parts, graph.linked.first.tolist(), strict=False):
        start, end = found.start[low : low + len(part.tree)], found.end[low : low + len(part.tree)]
        trace = replace(part.tree.trace, start=start - part.shift, dur=end - start)
        parts.append(part._replace(tree=replace(part.tree, trace=trace)))
    return parts


def _scaled(graph: Network, way: Way, durations: Int64) -> Int64:
    """``way.own`` with the time of each owner in place of what it was: a stretch rounds up, and so is never longer for a shorter
    duration.
    """
    changed = np.flatnonzero(durations != way.owned)
    if not len(changed):
        return way.own
    if np.any(durations[changed] < 0):
        raise ValueError("a duration is negative")
    hit = np.zeros(graph.owners, dtype=np.bool_)
    hit[changed] = True
    moment = np.flatnonzero((graph.owner != NOBODY) & hit[np.maximum(graph.owner, 0)])
    owner = graph.owner[moment]
    mine, was, now = way.own[moment], way.owned[owner], durations[owner]
    alone = mine == was
    own, shared = way.own.copy(), ~alone & (was > 0)
    own[moment[alone]] = now[alone]
    own[moment[shared]] = stretched(mine[shared], now[shared], was[shared])
    nothing = was == 0  # what took no time has no stretch to grow: it takes it before its last moment
    if nothing.any():
        own[moment[nothing]] = 0
        last = {
            int(owner[k]): int(moment[k])
            for k in np.flatnonzero(nothing)[np.argsort(graph.time[moment[nothing]], kind="stable")]
        }
        own[list(last.values())] = durations[list(last)]
    return own


def stretched(part: Int64, now: Int64, was: Int64) -> Int64:
    """int64 ns: ``part`` of ``was`` where all of it takes ``now``, rounded up. Exact: where a product of two times, as of some
    seconds, does not fit into int64, in Python's own integers.
    """
    if not len(part) or int(part.max()) * int(now.max()) < 2**63:
        return -(-part * now // was)
    rows = zip(part.tolist(), now.tolist(), was.tolist(), strict=True)
    return np.array([-(-mine * new // old) for mine, new, old in rows], dtype=np.int64)


def _rows(graph: Network, moments: Int64) -> Retimed:
    """Rows at ``moments``. Annotations and records of waits move with what they are about."""
    linked, rows = graph.linked, graph.nodes.rows
    start, end = moments[:rows].copy(), moments[rows : 2 * rows].copy()
    rider = np.flatnonzero(~linked.host & ~linked.work)
    if not len(rider):
        return Retimed(start, end, moments)
    above = linked.parent[rider].copy()
    timed = linked.host | linked.work
    while len(again := np.flatnonzero((above >= 0) & ~timed[above])):
        above[again] = linked.parent[above[again]]
    hung = above >= 0
    row, over = rider[hung], above[hung]
    inside = linked.end[row] <= linked.end[over]
    start[row] = moments[over] + linked.start[row] - linked.start[over]
    late = moments[over + rows] - (linked.end[over] - linked.end[row])
    end[row] = np.maximum(np.where(inside, late, start[row] + linked.end[row] - linked.start[row]), start[row])
    _annotations(graph, rider[~hung], (start, end), moments)
    return Retimed(start, end, moments)


def _annotations(graph: Network, rows: Int64, times: tuple[Int64, Int64], moments: Int64) -> None:
    """Ranges on streams begin with the first work in them and end with the last; those without any stay."""
    linked, count = graph.linked, graph.nodes.rows
    start, end = times
    for lane in np.unique(linked.lane[rows]).tolist():
        mine = rows[linked.lane[rows] == lane]
        work = np.flatnonzero(linked.work & (linked.lane == lane))
        by_start = work[np.argsort(linked.start[work], kind="stable")]
        by_end = work[np.argsort(linked.end[work], kind="stable")]
        low = np.searchsorted(linked.start[by_start], linked.start[mine])
        high = np.searchsorted(linked.end[by_end], linked.end[mine], side="right") - 1
        some = (low < len(work)) & (high >= 0)
        mine, low, high = mine[some], low[some], high[some]
        first, last = by_start[low], by_end[high]
        within = (linked.start[first] <= linked.end[mine]) & (linked.end[last] >= linked.start[mine])
        mine, first, last = mine[within], first[within], last[within]
        start[mine] = linked.start[mine] + moments[first] - linked.start[first]
        end[mine] = np.maximum(linked.end[mine] + moments[last + count] - linked.end[last], start[mine])
