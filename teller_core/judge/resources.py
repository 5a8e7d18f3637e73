"""What a request's steps spent their time on, from profiles: on the critical path, summing to the whole (DESIGN rule 4)."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Rank
from teller_core.data.parts import RESOURCES
from teller_core.data.report import Part
from teller_core.data.table import UNKNOWN, Int32, Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.intervals import EMPTY, Spans, clip, overlaps, union, without
from teller_core.judge.life import Life
from teller_core.judge.prepare import Case

_HOST = (Layer.PYTHON, Layer.OPERATOR, Layer.RUNTIME, Layer.ENGINE)


Bool = np.ndarray[tuple[int], np.dtype[np.bool_]]


class Splits(NamedTuple):
    """What each profiled step spent its time on, on the rank that ended it last. ``ns`` int64 by resource, a row a step, and
    the same rows: ``seen`` (a profile has its spans), ``device`` (it ran on one), ``parted`` (waiting is told from transfer).
    """

    ns: dict[str, Int64]
    seen: Bool
    device: Bool
    parted: Bool
    late: Int32
    """The rank that came last to most of its collectives, -1 where nobody may be named."""


def resources(case: Case, life: Life) -> list[Part]:
    """The resources of the steps that served one request, in the order of RESOURCES; their ns sum to the time of these steps
    (overlapping steps counted once). Steps without a profile are ``unexplained``. Empty where no step is known.
    """
    if not len(life.step) or UNKNOWN in (life.begin, life.end):
        return []
    whole = without(clip(union(life.start, life.stop), life.begin, life.end), case.stalls)
    reach = np.maximum.accumulate(np.append(life.start[:1], life.stop[:-1]))
    fresh = overlaps(whole, np.maximum(life.start, reach), np.maximum(life.stop, reach))
    split = splits(case)
    seen = split.seen[life.step] & (fresh > 0)
    step, part = life.step[seen], fresh[seen] / np.maximum(life.stop - life.start, 1)[seen]
    total = {name: int((split.ns[name][step] * part).astype(np.int64).sum()) for name in RESOURCES[:-1]}
    total["unexplained"] = whole.length() - sum(total.values())
    return [_part(name, total[name], split, step, case.capture.ranks) for name in RESOURCES]


def splits(case: Case) -> Splits:
    """The resources of all profiled steps, measured once a capture."""
    return case.once("splits", _measure)


def _part(name: str, ns: int, split: Splits, step: Int32, ranks: Sequence[Rank]) -> Part:
    device = bool(split.device[step].any())
    if name == "unexplained":
        return Part(part=name, ns=ns, source="steps without a profile, and what their profiles leave open")
    if not len(step):
        return Part(part=name, ns=None, source="no profile overlaps its steps, or its spans are not at hand")
    if name in ("device_compute", "device_idle") and not device:
        return Part(part=name, ns=None, source="no device ran in the profiled steps: the model is computed on the host")
    if name == "host_compute" and device:
        return Part(part=name, ns=None, source="the model is computed on a device")
    if name == "collective_wait":
        return _wait(ns, split, step, ranks)
    return Part(part=name, ns=ns, source=_SOURCES[name])


def _wait(ns: int, split: Splits, step: Int32, ranks: Sequence[Rank]) -> Part:
    if not split.parted[step].any():
        why = "no collective whose waiting the clocks of the ranks allow to tell; it is inside collective_transfer"
        return Part(part="collective_wait", ns=None, source=why)
    late = split.late[step][split.late[step] >= 0]
    who = f", most often for rank {ranks[int(np.bincount(late).argmax())].rank}" if len(late) else ""
    return Part(part="collective_wait", ns=ns, source=f"collectives until the last rank arrived{who}")


_SOURCES = {
    "device_compute": "kernels of its profiled steps",
    "host_compute": "operators of its profiled steps, on the host",
    "collective_transfer": "collectives of its profiled steps after the last rank had arrived, or whole where that is unknown",
    "exposed_host": "its profiled steps while neither an operator, a kernel nor a collective ran",
    "device_idle": "its profiled steps while neither the device nor the host thread did anything recorded",
}


def _measure(case: Case) -> Splits:
    count = len(case.begin)
    out = Splits(
        {name: np.zeros(count, np.int64) for name in RESOURCES[:-1]},
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        np.zeros(count, np.bool_),
        np.full(count, -1, np.int32),
    )
    work = case.capture.work
    timed = (case.begin[work.step] != UNKNOWN) & (case.stop[work.step] != UNKNOWN)
    rows = np.flatnonzero(case.detailed & timed)
    rows = rows[np.lexsort((work.stop[rows], work.step[rows]))]
    last = np.append(work.step[rows][1:] != work.step[rows][:-1], True) if len(rows) else rows
    rows = rows[last.astype(np.bool_)]
    for rank in np.unique(work.rank[rows]).tolist():
        tree = case.capture.ranks[int(rank)].tree
        if tree is not None:
            _measure_rank(case, out, tree, rows[work.rank[rows] == rank], int(rank))
    return out


def _measure_rank(case: Case, out: Splits, tree: Tree, rows: Int64, rank: int) -> None:
    """Fill in the steps that ended last on one rank, their time painted with the first color to cover it."""
    work = case.capture.work
    step = work.step[rows]
    start, stop = case.begin[step], case.stop[step]
    inside = _inside(len(tree), work.row[rows], work.row_stop[rows])
    wait, transfer, parted, late = _collectives(case, rank)
    colors = _colors(tree, inside, wait, transfer)
    covered = EMPTY
    for name, spans in colors.items():
        mine = without(spans, covered)
        covered = union(np.append(covered.start, mine.start), np.append(covered.stop, mine.stop))
        out.ns[name][step] = overlaps(mine, start, stop)
    device = "device_compute" in colors
    left = "device_idle" if device else "exposed_host"
    out.ns[left][step] = stop - start - overlaps(covered, start, stop)
    out.seen[step], out.device[step] = True, device
    out.parted[step], out.late[step] = np.isin(step, parted), [late.get(one, -1) for one in step.tolist()]


def _inside(count: int, low: Int32, high: Int32) -> Bool:
    """bool a row of the tree: whether it lies in one of the ranges."""
    change = np.zeros(count + 1, np.int32)
    np.add.at(change, low, 1)
    np.add.at(change, high, -1)
    return np.cumsum(change[:-1]) > 0


def _collectives(case: Case, rank: int) -> tuple[Spans, Spans, Int32, dict[int, int]]:
    """Waiting and transfer of one rank's collectives, the steps in which the two can be told apart, and who came last in each."""
    table = case.capture.collectives
    mine = np.flatnonzero((table.rank == rank) & (table.step >= 0))
    start, dur, wait = table.start[mine], table.dur[mine], table.wait[mine]
    known = np.where(wait == UNKNOWN, 0, np.minimum(wait, dur))
    late: dict[int, list[int]] = {}
    for step, last in zip(table.step[mine].tolist(), table.late[mine].tolist(), strict=True):
        if last >= 0:
            late.setdefault(step, []).append(last)
    often = {step: max(set(found), key=found.count) for step, found in late.items()}
    return union(start, start + known), union(start + known, start + dur), table.step[mine][wait != UNKNOWN], often


def _colors(tree: Tree, inside: Bool, wait: Spans, transfer: Spans) -> dict[str, Spans]:
    """What to paint steps with, first come first served: with a device the kernels, without one the operators."""
    trace = tree.trace
    start, stop, layer = trace.start, trace.end, trace.layer
    kernel = inside & (layer == Layer.KERNEL)
    on_device = bool(kernel.any()) and bool((kernel & trace.on_device).any())
    device = trace.on_device if on_device else np.ones(len(tree), np.bool_)
    sent = inside & (layer == Layer.COMMUNICATION) & device
    moved = union(np.append(transfer.start, start[sent]), np.append(transfer.stop, stop[sent]))
    colors = {"collective_wait": wait, "collective_transfer": moved}
    if not on_device:
        operators = inside & (layer == Layer.OPERATOR)
        return {**colors, "host_compute": union(start[operators], stop[operators])}
    kernel &= device
    host = inside & ~device & np.isin(layer, _HOST)
    return {
        **colors,
        "device_compute": union(start[kernel], stop[kernel]),
        "exposed_host": union(start[host], stop[host]),
    }
