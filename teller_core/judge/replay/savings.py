"""How much sooner it would all have ended had some of it taken another time."""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int64
from teller_core.judge.replay.network import Network
from teller_core.judge.replay.retime import retime

SAME_WORK = "the same work in the same order"
SILENCE = "a thread that recorded nothing may have worked or waited"


class Saving(NamedTuple):
    """int ns: the end of it all comes sooner by something from ``low`` to ``high`` (later where negative); ``assumes`` says what
    that takes for granted.
    """

    low: int
    high: int
    assumes: str


def saving(graph: Network, spans: Int64, durations: Int64, *, free: Int64 | None = None) -> Saving:
    """What it saves that the owners of time ``spans`` (rows, say) take ``durations`` int64 ns each instead of what they took, all
    of them together, and that the rows ``free`` wait for nothing.

    Twice: with what threads did in silence kept, and with silence that may have been a wait ending with what was waited for.
    """
    rows = np.flatnonzero(graph.linked.host | graph.linked.work)
    if not len(rows):
        return Saving(0, 0, SAME_WORK)
    before = int(graph.linked.end[rows].max())
    kept = graph.kept.owned.copy()
    kept[spans] = durations
    found = [before - int(retime(graph, kept, free=free).end[rows].max())]
    if not graph.kept.used.all():  # some time is unknown
        shrunk = graph.shrunk.owned.copy()
        was = graph.kept.owned[spans]
        # What may have been a wait is no time of an owner any more: what is left of its time changes as all of it did.
        part = np.ceil(shrunk[spans] * (durations / np.maximum(was, 1))).astype(np.int64)
        shrunk[spans] = np.where(shrunk[spans] == was, durations, part)
        found.append(before - int(retime(graph, shrunk, shrink=True, free=free).end[rows].max()))
    low, high = min(found), max(found)
    return Saving(low, high, SAME_WORK if low == high else f"{SAME_WORK}; {SILENCE}")
