"""Who slowed a request down, and whom it slowed down: from the batches that they shared and the steps that they waited for."""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int64
from teller_core.judge.reschedule.background import background
from teller_core.judge.reschedule.batches import Batches
from teller_core.judge.reschedule.costs import Costs
from teller_core.judge.reschedule.simulate import Setting


class Neighbor(NamedTuple):
    """Another request (its position in the capture), and int ns that one cost the other: ``beside``, in steps that computed
    both; ``before``, in steps that computed the one while the other had arrived and waited.
    """

    request: int
    beside: int
    before: int


class Weights(NamedTuple):
    """float64 ns a row of :class:`Batches`: ``added``, what its request added to the step; ``whole``, with its part of what the
    step takes for itself.
    """

    added: Float64
    whole: Float64


def weights(setting: Setting) -> Weights:
    """What each request added to each step, by the costs learned here and how much longer it took than these predict. A stall
    is nobody's: its time is of the whole step alone.
    """
    ran = setting.ran
    added = _work(ran, setting.costs)
    met = background(setting)
    factor = np.exp(met.level + setting.costs.shift[_phases(ran)])
    members = np.maximum(np.diff(ran.row), 1)
    each = (setting.costs.cost[0] * factor + met.extra) / members
    return Weights(added * factor[ran.at], added * factor[ran.at] + each[ran.at])


def slowed_by(setting: Setting, weighed: Weights, request: int) -> list[Neighbor]:
    """Who slowed ``request`` down between its arrival and its end, the worst first."""
    ran = setting.ran
    low, high = _life(setting, request)
    rows = np.arange(int(ran.row[low]), int(ran.row[high]))
    served = np.zeros(len(ran.step), dtype=np.bool_)
    served[ran.at[ran.rows(request)]] = True
    beside = served[ran.at[rows]]
    waited = _waited(setting, request, low, high)
    before = np.where(beside, 0.0, weighed.whole[rows] * waited[ran.at[rows] - low])
    others = ran.request[rows] != request
    return _ranked(
        ran.request[rows][others].astype(np.int64), np.where(beside, weighed.added[rows], 0.0)[others], before[others]
    )


def slowed(setting: Setting, weighed: Weights, request: int) -> list[Neighbor]:
    """Whom ``request`` slowed down, the worst first."""
    ran, came = setting.ran, setting.came
    found: list[tuple[int, float, float]] = []
    for row in ran.rows(request).tolist():
        step = int(ran.at[row])
        low, high = int(ran.row[step]), int(ran.row[step + 1])
        together = ran.request[low:high]
        found += [(other, float(weighed.added[row]), 0.0) for other in together.tolist() if other != request]
        there = (ran.first >= 0) & (came.time < ran.ended[step]) & (ran.last >= step)
        there[together] = False
        for other in np.flatnonzero(there).tolist():
            share = _overlap(setting, step, int(came.time[other]))
            found.append((other, 0.0, float(weighed.whole[row]) * share))
    others, beside, before = (np.array(column) for column in zip(*found, strict=True)) if found else (np.empty(0),) * 3
    return _ranked(others.astype(np.int64), beside, before)


def _work(ran: Batches, costs: Costs) -> Float64:
    """float64 ns a row: what its request adds to a step that meets nothing else."""
    context, decode, cache, pair = (float(each) for each in costs.cost[1:])
    filling = ran.ahead > 0
    after = ran.held + ran.tokens
    prompts = ran.tokens * (context + pair * (ran.held + ran.tokens / 2))
    return np.asarray(cache * after + np.where(filling, prompts, decode), dtype=np.float64)


def _phases(ran: Batches) -> Int64:
    filling = np.bincount(ran.at[ran.ahead > 0], minlength=len(ran.step))
    return np.where(filling == 0, 0, np.where(filling < np.diff(ran.row), 1, 2)).astype(np.int64)


def _life(setting: Setting, request: int) -> tuple[int, int]:
    """The steps from the one that ran when the request came, to its last one (excluded)."""
    ran = setting.ran
    low = int(np.searchsorted(ran.ended, int(setting.came.time[request]), "right"))
    return min(low, int(ran.first[request])), int(ran.last[request]) + 1


def _waited(setting: Setting, request: int, low: int, high: int) -> Float64:
    """float64 a step: the share of it in which the request had come."""
    time = int(setting.came.time[request])
    return np.array([_overlap(setting, step, time) for step in range(low, high)]) if high > low else np.empty(0)


def _overlap(setting: Setting, step: int, since: int) -> float:
    ran = setting.ran
    begin = max(int(ran.decided[step]), int(ran.ended[step - 1]) if step else 0)
    end = int(ran.ended[step])
    return min(max(end - max(begin, since), 0) / max(end - begin, 1), 1.0)


def _ranked(others: Int64, beside: Float64, before: Float64) -> list[Neighbor]:
    """Summed by request, the largest first."""
    if not len(others):
        return []
    names, at = np.unique(others, return_inverse=True)
    sums = [np.round(np.bincount(at, weights=column)).astype(np.int64) for column in (beside, before)]
    order = np.lexsort((names, -(sums[0] + sums[1])))
    rows = zip(names[order].tolist(), sums[0][order].tolist(), sums[1][order].tolist(), strict=True)
    return [Neighbor(*row) for row in rows if row[1] + row[2] > 0]
