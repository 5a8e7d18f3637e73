"""Which rank the others waited for, by collective and by step.

Where the clocks of ranks are bounded, who came last is told by when each came. Where they are not, by how long each was in a
collective that all of them leave together: who was in it longest waited, and who was in it shortest came last. What holds one
rank up stays a while, and in a single step each waits for the other by chance: a step's rank is told by the steps around it, too.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import processes
from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.judge.around import AROUND_NS
from teller_core.judge.prepare import Case


class Awaited(NamedTuple):
    """A row a row of ``Capture.collectives``, int64 each: ``late``, the position of the rank that came last, -1 where nobody is
    named, and ``wait``, ns that the row's rank waited for it, UNKNOWN where that is not known. ``rank``: the row's own. Of
    several traces of one process, all are called by the first one.
    """

    rank: Int64
    late: Int64
    wait: Int64


def awaited(case: Case) -> Awaited:
    """Who waited for whom, measured once a capture."""
    return case.once("awaited", _awaited)


def _awaited(case: Case) -> Awaited:
    table, ranks = case.capture.collectives, case.capture.ranks
    one = np.arange(1 + max(int(table.rank.max(initial=-1)), len(ranks)))
    one[: len(ranks)] = processes(ranks)
    rank, late, wait = one[table.rank], np.where(table.late >= 0, one[table.late], -1), table.wait.copy()
    unbounded = np.array([at for at, each in enumerate(ranks) if each.clock_error == UNKNOWN], np.int64)
    rows = np.flatnonzero(table.step >= 0)
    if len(unbounded) and len(rows):
        _by_duration(case, rows, unbounded, Awaited(rank, late, wait))
    return Awaited(rank, late, wait)


def _by_duration(case: Case, rows: Int64, unbounded: Int64, found: Awaited) -> None:
    """Name in ``found`` who came last to those of ``rows`` in which ranks of ``unbounded`` clocks met, and who waited for it."""
    table = case.capture.collectives
    _, met = np.unique(np.stack([table.group[rows], table.sequence[rows]]), axis=1, return_inverse=True)
    rows = rows[np.lexsort((table.dur[rows], met.reshape(-1)))]
    met = np.sort(met.reshape(-1))
    first = np.flatnonzero(np.append(True, met[1:] != met[:-1]))
    size = np.diff(np.append(first, len(met)))
    of = np.repeat(np.arange(len(first)), size)
    # All of a group have to be seen: who is not there may have come last.
    group = table.group[rows[first]]
    most = np.zeros(int(group.max()) + 1, np.int64)
    np.maximum.at(most, group, size)
    untold = np.logical_or.reduceat(np.isin(table.rank[rows], unbounded), first)
    untold &= np.maximum.reduceat(found.late[rows], first) < 0
    tells = (untold & (size > 1) & (size == most[group]))[of]
    shortest = rows[first][of]
    found.late[rows[tells]] = found.rank[shortest[tells]]
    found.wait[rows[tells]] = (table.dur[rows] - table.dur[shortest])[tells]


def waited_for(case: Case, kept: Mapping[int, tuple[Int64, Int64]]) -> dict[int, Float64]:
    """By the position of a rank: float64 ns a step, how long others waited for it there and in the steps around, and how long it
    was ``kept`` from running. The step itself counts twice.
    """
    found, steps = awaited(case), len(case.begin)
    named = np.flatnonzero(
        (case.capture.collectives.step >= 0) & (found.late >= 0) & (found.wait != UNKNOWN) & (found.late != found.rank)
    )
    cost = {rank: (waited + still).astype(np.float64) for rank, (waited, still) in kept.items()}
    for rank in np.unique(found.late[named]).tolist():
        mine = named[found.late[named] == rank]
        np.add.at(cost.setdefault(rank, np.zeros(steps)), case.capture.collectives.step[mine], found.wait[mine])
    return {rank: own + _around(case, own) for rank, own in cost.items()}


def _around(case: Case, value: Float64) -> Float64:
    """float64 a step: the sum of a value over the steps of its engine around it; 0 where nobody knows when it began."""
    out = np.zeros(len(value))
    for engine in case.engines.values():
        mine = engine.step[np.argsort(case.begin[engine.step], kind="stable")]
        begin, total = case.begin[mine], np.append(0.0, np.cumsum(value[mine]))
        low, high = np.searchsorted(begin, begin - AROUND_NS), np.searchsorted(begin, begin + AROUND_NS, "right")
        out[mine] = total[high] - total[low]
    return out
