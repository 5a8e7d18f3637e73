"""What a rank that came last to a collective did while the others waited: the span that kept it."""

from collections.abc import Sequence

import numpy as np

from teller_core.data.capture import Rank
from teller_core.data.table import Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree
from teller_core.rebuild.collective_calls import Call

MOST = 0.5
"""A span kept the rank where it took at least this share of the time in which the others waited."""
_WORK = (int(Layer.KERNEL), int(Layer.COMMUNICATION))


class Kept:
    """Looks into the trees of ``ranks``; what it needs of a tree is sorted once."""

    def __init__(self, ranks: Sequence[Rank]) -> None:
        self.ranks = ranks
        self._rows: dict[tuple[int, int], Int64] = {}

    def row(self, call: Call, since: int) -> int:
        """The row of the rank's tree that took most of the time from ``since`` (on its own clock) to ``call``, -1 for none.

        The host kept it where the call was launched after ``since``: then the innermost span of the launching thread that took
        most of the time until the launch. Else it is the device's longest work in that time.
        """
        tree = self.ranks[call.rank].tree
        if tree is None or call.row < 0:
            return -1
        device = bool(tree.trace.on_device[call.row])
        launch = int(tree.parent[call.row]) if device else ROOT
        if device and (launch == ROOT or int(tree.trace.start[launch]) <= since):
            return _longest(tree, self._device(call.rank, tree), since, call.start, call.row)
        lane = (
            int(tree.trace.lane[launch]) if device else self._busiest(call.rank, tree, int(tree.trace.lane[call.row]))
        )
        until = int(tree.trace.start[launch]) if device else call.start
        return _innermost(tree, self._lane(call.rank, tree, lane), since, until)

    def _device(self, rank: int, tree: Tree) -> Int64:
        """Rows of work on any device, by start."""
        if (rank, -1) not in self._rows:
            rows = np.flatnonzero(tree.trace.on_device & np.isin(tree.trace.layer, _WORK))
            self._rows[rank, -1] = rows[np.argsort(tree.trace.start[rows], kind="stable")].astype(np.int64)
        return self._rows[rank, -1]

    def _lane(self, rank: int, tree: Tree, lane: int) -> Int64:
        """Rows of one host lane, which stand by start."""
        if (rank, lane) not in self._rows:
            self._rows[rank, lane] = np.flatnonzero(tree.trace.lane == lane).astype(np.int64)
        return self._rows[rank, lane]

    def _busiest(self, rank: int, tree: Tree, but: int) -> int:
        """The host lane with most rows, other than the one that carries the collectives."""
        if (rank, -2) not in self._rows:
            host = np.array([not lane.device for lane in tree.trace.lanes], dtype=np.bool_)
            count = np.bincount(tree.trace.lane, minlength=len(host)) * host
            count[but] = 0
            self._rows[rank, -2] = np.array([int(np.argmax(count))], dtype=np.int64)
        return int(self._rows[rank, -2][0])


def _overlap(tree: Tree, rows: Int64, since: int, until: int) -> Int64:
    start, end = tree.trace.start[rows], tree.trace.end[rows]
    return np.minimum(end, until) - np.maximum(start, since)


def _longest(tree: Tree, rows: Int64, since: int, until: int, but: int) -> int:
    """Work of a stream follows on what came before, so what reaches into the window began shortly before it."""
    low, high = np.searchsorted(tree.trace.start[rows], (since, until))
    near = rows[max(int(low) - 64, 0) : int(high)]
    near = near[near != but]
    took = _overlap(tree, near, since, until)
    if not len(near) or int(took.max()) < MOST * (until - since):
        return -1
    return int(near[np.argmax(took)])


def _innermost(tree: Tree, rows: Int64, since: int, until: int) -> int:
    """Spans that each take more than half of a stretch share a moment, so they nest: the last in pre-order is the innermost."""
    low, high = (int(k) for k in np.searchsorted(tree.trace.start[rows], (since, until)))
    above = [int(rows[low - 1]), *tree.ancestors(int(rows[low - 1]))] if low else []
    near = np.array([*reversed(above), *rows[low:high].tolist()], dtype=np.int64)
    took = _overlap(tree, near, since, until)
    most = near[took > MOST * (until - since)]
    return int(most.max()) if len(most) else -1
