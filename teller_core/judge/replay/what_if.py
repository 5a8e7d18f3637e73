"""What if this span had taken another time: durations for replay, whatever kind of span it is."""

import numpy as np

from teller_core.data.graph import Kind
from teller_core.data.table import Int64
from teller_core.judge.replay.network import Network
from teller_core.judge.replay.retime import stretched


def taking(graph: Network, row: int, ns: int) -> tuple[Int64, Int64]:
    """(owners of time, int64 ns for each) for ``row`` to take ``ns`` by itself, waits for others not counted.

    Of a collective, that is its transfer: what comes after the last rank has come. A call of the host takes what it and the calls
    below it take; each of these changes alike. Work on a device takes its own time. Raises ValueError for a negative time.
    """
    if ns < 0:
        raise ValueError("a span cannot take less than nothing")
    owners = _owners(graph, row)
    own = graph.kept.owned[owners]
    total = int(own.sum())
    if total == 0:
        return owners[:1], np.full(1, ns, dtype=np.int64)
    return owners, stretched(own, np.full_like(own, ns), np.full_like(own, total))


def _owners(graph: Network, row: int) -> Int64:
    linked, calls = graph.linked, graph.linked.calls
    given = linked.graph.after[linked.graph.of(Kind.LAUNCH) & (linked.graph.before == row)]
    mine = np.flatnonzero(
        np.isin(calls.row, np.append(given[linked.host[given]], row)) & graph.meets.known[calls.meeting]
    )
    if len(mine):
        return calls.meeting[mine[:1]].astype(np.int64) + graph.nodes.meeting_owner
    if not linked.host[row]:
        return np.array([row], dtype=np.int64)
    below = np.arange(row, int(linked.stop[row]), dtype=np.int64)
    return below[linked.host[below]]
