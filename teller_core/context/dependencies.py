"""The dependencies of a step's rows: who called whom, in which order, who launched what, who waited, and who met.

All of it is read off the rows themselves, so rows that were cut away, such as work launched in an earlier step, are in no edge.
A call that waits for a stream has an edge from the last work that it could have waited for, also where that was done before the
call; one that waits for an event, and a stream that was told to wait, only where the recording says for which.
"""

from collections.abc import Sequence

import numpy as np

from teller_core.context.waits import Work, waits
from teller_core.data.capture import Collectives
from teller_core.data.graph import Edges, Graph, Kind, edges
from teller_core.data.linked import Met, StepSpans
from teller_core.data.replays import captured_rows
from teller_core.data.table import Int32, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree


def dependencies(tree: Tree) -> Graph:
    """The edges between the rows of one tree, in time linear in the rows but for sorting the work of the streams.

    Uses the columns start, dur, name, lane and layer; with ``link`` and ``arg`` also what waits for events waited for.
    """
    work = _work(tree)
    rows = np.arange(len(tree), dtype=np.int32)
    has = tree.parent != ROOT
    called = rows[has & ~work]
    launched = rows[has & work]
    caller = _callers(tree, launched)
    parts: list[Edges] = [
        (Kind.CHILD, tree.parent[called], called),
        (Kind.LAUNCH, caller, launched),
        (Kind.ORDER, *_in_order(tree)),
    ]
    streams = Work(tree, rows[work], launched, caller)
    parts.append((Kind.STREAM, *streams.in_order()))
    parts += waits(tree, streams)
    return edges(len(tree), parts)


def across(parts: Sequence[StepSpans], met: Met) -> Graph:
    """The edges of collectives between the rows of ``parts``, numbered one part behind the other. Linear in the calls.

    From the rank that came last to each of the others; where nobody may be named, from the one whose call the capture's clock
    shows last, as MET. What kept a rank that came last has edges to the others too.
    """
    at = positions(parts, met.collectives)
    calls = met.collectives
    mine = np.flatnonzero(at >= 0)
    mine = mine[_by_meeting(calls, mine)]
    group = np.stack([calls.sequence[mine], calls.group[mine].astype(np.int64)])
    low = np.flatnonzero(np.append(True, np.any(group[:, 1:] != group[:, :-1], axis=0))) if len(mine) else mine
    size = np.diff(np.append(low, len(mine)))
    last = np.repeat(low + size - 1, size)  # of each call, the last one of its collective
    other = np.flatnonzero(calls.rank[mine] != calls.rank[mine][last])  # damaged, a rank may be in one collective twice
    named = calls.late[mine] == calls.rank[mine][last]
    hub, call = at[mine][last[other]], at[mine][other]
    sure = named[other] & (calls.late[mine][other] >= 0)
    total = sum(len(part.tree) for part in parts)
    kept = _kept(parts, met, mine)[last[other]]
    told = sure & (kept >= 0) & (kept != hub) & (kept != call)
    return edges(
        total,
        [
            (Kind.COLLECTIVE, hub[sure], call[sure]),
            (Kind.MET, hub[~sure], call[~sure]),
            (Kind.KEPT, kept[told], call[told]),
        ],
    )


def _by_meeting(calls: Collectives, mine: Int64) -> Int64:
    """Positions in ``mine`` by collective and, in each, by start, behind them the call of the rank that came last."""
    late = calls.rank[mine] == calls.late[mine]
    return np.lexsort((calls.start[mine], late, calls.sequence[mine], calls.group[mine]))


def _work(tree: Tree) -> Mask:
    """bool a row: work of a device, not an annotation or the record of a wait."""
    layer = tree.trace.layer
    return tree.trace.on_device & ((layer == Layer.KERNEL) | (layer == Layer.COMMUNICATION))


def _callers(tree: Tree, launched: Int32) -> Int32:
    """The call that launched each row: the operators that a graph repeats without running them launch nothing."""
    caller = tree.parent[launched]
    captured = captured_rows(tree)
    while len(again := np.flatnonzero(captured[caller] & (tree.parent[caller] != ROOT))):
        caller[again] = tree.parent[caller[again]]
    return caller


def _in_order(tree: Tree) -> tuple[Int64, Int64]:
    """Host rows of one caller that follow one another on one thread."""
    host = np.flatnonzero(~tree.trace.on_device)
    lanes = np.int64(max(len(tree.trace.lanes), 1))
    key = (tree.parent[host].astype(np.int64) + 1) * lanes + tree.trace.lane[host]
    order = np.argsort(key, kind="stable")
    key, host = key[order], host[order]
    near = np.flatnonzero(key[1:] == key[:-1])
    return host[near], host[near + 1]


def positions(parts: Sequence[StepSpans], calls: Collectives) -> Int64:
    """int64 a call: its row among those of ``parts``, numbered one part behind the other, -1 where it is in none.

    Libraries that communicate on threads of their own, as Gloo does, have their rows outside the step's: for such a call stands
    the host's call that handed it over. Where there are as many of those as of these, that is a matter of order; else it is the
    one that was open when the communication began.
    """
    at = np.full(len(calls.row), -1, dtype=np.int64)
    begin = 0
    for part in parts:
        own = np.flatnonzero(calls.rank == part.rank)
        row = calls.row[own].astype(np.int64) - part.first
        inside = (row >= 0) & (row < len(part.tree))
        row[~inside] = _handed_over(part.tree, calls.start[own[~inside]] - part.shift)
        at[own] = np.where(row >= 0, row + begin, -1)
        begin += len(part.tree)
    return at


def _handed_over(tree: Tree, time: Int64) -> Int64:
    """The host's outermost row of communication for each one that began at ``time``, -1 for none."""
    trace, found = tree.trace, np.full(len(time), -1, dtype=np.int64)
    if not len(tree):
        return found
    rows = np.flatnonzero((trace.layer == Layer.COMMUNICATION) & ~trace.on_device)
    inside = np.append(0, np.maximum.accumulate(tree.stop[rows])[:-1]) > rows if len(rows) else rows.astype(np.bool_)
    rows = rows[~inside]
    rows = rows[np.argsort(trace.start[rows], kind="stable")]
    if len(rows) == len(time):
        found[np.argsort(time, kind="stable")] = rows
    elif len(rows):
        found = rows[np.maximum(np.searchsorted(trace.start[rows], time, side="right") - 1, 0)]
        found[time > trace.start[found] + trace.dur[found]] = -1
    found[time < trace.start[found]] = -1
    return found


def _kept(parts: Sequence[StepSpans], met: Met, mine: Int64) -> Int64:
    """int64 a call of ``mine``: the row that kept the rank which came last, -1 where nobody knows or it is in no part."""
    where = met.collectives.sequence[mine] - met.first
    known = (where >= 0) & (where < len(met.meetings.kept))
    kept = np.full(len(mine), -1, dtype=np.int64)
    if not known.any():
        return kept
    where = np.where(known, where, 0)
    late, begin = met.meetings.late[where], 0
    for part in parts:
        row = met.meetings.kept[where].astype(np.int64) - part.first
        inside = known & (late == part.rank) & (row >= 0) & (row < len(part.tree))
        kept[inside] = row[inside] + begin
        begin += len(part.tree)
    return kept
