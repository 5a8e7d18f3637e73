"""What each operator of a profiled step took, by name: what methods that localize start from."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Float64, Int32, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.robust import NORMAL_MAD
from teller_core.lab.evaluation.seen import Seen

WORK = (Layer.OPERATOR, Layer.RUNTIME, Layer.KERNEL, Layer.COMMUNICATION)
MOST = 8
"""Names that a method gives for a step, as the paper's does."""
LEAST_WIDTH = 0.05
"""Log: neither a step nor an operator repeats itself more closely."""


class Profiled(NamedTuple):
    """One profiled step on one rank: rows ``low`` to ``high`` of ``tree``, ``own`` int64 ns: their self times."""

    step: int
    rank: int
    tree: Tree
    low: int
    high: int
    own: Int64

    @property
    def work(self) -> Mask:
        """bool a row: it is work, not a scope that holds work."""
        return np.isin(self.tree.trace.layer[self.low : self.high], np.array(WORK, dtype=np.uint8))


class Totals(NamedTuple):
    """``step`` int32: the profiled steps; ``names``; ``own`` float64 [steps, names]: ns of own time, all ranks together."""

    step: Int32
    names: Sequence[str]
    own: Float64


def profiled(seen: Seen) -> list[Profiled]:
    """Every profiled step and rank of a capture."""
    return seen.once("profiled", _profiled)


def _profiled(seen: Seen) -> list[Profiled]:
    work, ranks = seen.capture.work, seen.capture.ranks
    own: dict[int, Int64] = {}
    found: list[Profiled] = []
    for at in np.flatnonzero(seen.case.detailed).tolist():
        rank = int(work.rank[at])
        tree, low, high = ranks[rank].tree, int(work.row[at]), int(work.row_stop[at])
        if tree is not None:
            if rank not in own:
                own[rank] = tree.self_time()
            found.append(Profiled(int(work.step[at]), rank, tree, low, high, own[rank][low:high]))
    return found


def totals(seen: Seen) -> Totals:
    """Own time of all work by name and step."""
    return seen.once(
        "totals", lambda seen: summed([(part, np.where(part.work, part.own, 0)) for part in profiled(seen)])
    )


def summed(parts: Sequence[tuple[Profiled, Int64]]) -> Totals:
    """Time by name and step: what counts of each profiled step, one entry a row of it."""
    number: dict[str, int] = {}
    steps = sorted({part.step for part, _ in parts})
    place = {step: at for at, step in enumerate(steps)}
    cells: dict[tuple[int, int], float] = {}
    for part, own in parts:
        trace = part.tree.trace
        each = np.bincount(trace.name[part.low : part.high], weights=own, minlength=1)
        for name in np.flatnonzero(each > 0).tolist():
            cell = place[part.step], number.setdefault(trace.names[name], len(number))
            cells[cell] = cells.get(cell, 0.0) + float(each[name])
    table = np.zeros((len(steps), len(number)))
    for (row, column), ns in cells.items():
        table[row, column] = ns
    return Totals(np.array(steps, dtype=np.int32), list(number), table)


def by_surprise(found: Totals, phase: Sequence[str]) -> Float64:
    """float64 [steps, names]: how many robust standard deviations the log of each total lies above that of its phase."""
    log = np.log(found.own + 1_000.0)
    of = np.array([phase[int(step)] for step in found.step], dtype=object)
    out = np.zeros(log.shape)
    for name in set(of.tolist()):
        mine = of == name
        middle = np.median(log[mine], axis=0)
        width = np.maximum(np.median(np.abs(log[mine] - middle), axis=0) * NORMAL_MAD, LEAST_WIDTH)
        out[mine] = (log[mine] - middle) / width
    return out


def by_excess(found: Totals, phase: Sequence[str]) -> Float64:
    """float64 [steps, names]: ns that each total lies above the median of its phase."""
    of = np.array([phase[int(step)] for step in found.step], dtype=object)
    out = found.own.copy()
    for name in set(of.tolist()):
        out[of == name] -= np.median(found.own[of == name], axis=0)
    return out


def ordered(found: Totals, value: Float64, steps: int) -> list[list[str]]:
    """The names of each of ``steps`` steps by ``value``, the largest first, those above 0 alone, MOST of them."""
    names: list[list[str]] = [[] for _ in range(steps)]
    for step, row in zip(map(int, found.step), value, strict=True):
        order = np.argsort(-row, kind="stable")[:MOST]
        names[step] = [found.names[int(at)] for at in order if row[at] > 0]
    return names
