"""What a request's steps spent their time on, from profiles: on the critical path, summing to the whole (DESIGN rule 4)."""

from typing import NamedTuple

import numpy as np

from teller_core.data.report import Part
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.judge.intervals import Spans, clip, overlaps, paint, union, without
from teller_core.judge.life import Life
from teller_core.judge.prepare import Case

RESOURCES = (
    "device_compute",
    "host_compute",
    "collective_transfer",
    "collective_wait",
    "exposed_host",
    "device_idle",
    "unexplained",
)
_HOST = (Layer.PYTHON, Layer.OPERATOR, Layer.RUNTIME, Layer.ENGINE)


class _Split(NamedTuple):
    """One step's time on the rank that ended it, by resource; ``device`` whether it used one; ``late`` rank, -1 for none."""

    ns: dict[str, int]
    device: bool
    parted: bool
    late: int


def resources(case: Case, life: Life) -> list[Part]:
    """The resources of the steps that served one request, in the order of RESOURCES; their ns sum to the time of these steps
    (overlapping steps counted once). Steps without a profile are ``unexplained``. Empty where no step is known.
    """
    if not len(life.step) or UNKNOWN in (life.begin, life.end):
        return []
    whole = without(clip(union(life.start, life.stop), life.begin, life.end), case.stalls)
    reach = np.maximum.accumulate(np.append(life.start[:1], life.stop[:-1]))
    fresh = overlaps(whole, np.maximum(life.start, reach), np.maximum(life.stop, reach))
    total: dict[str, int] = dict.fromkeys(RESOURCES, 0)
    splits: list[_Split] = []
    for row in np.flatnonzero(case.profiled[life.step] & (fresh > 0)).tolist():
        if (split := _split(case, int(life.step[row]))) is not None:
            splits.append(split)
            _add(total, split, int(fresh[row]))
    total["unexplained"] = whole.length() - sum(total.values())
    return [_part(name, total[name], splits) for name in RESOURCES]


def late_rank(case: Case, step: int) -> int:
    """The rank that came last to most of a step's collectives, -1 where nobody may be named."""
    mine = case.capture.collectives.step == step
    late = case.capture.collectives.late[mine]
    late = late[late >= 0]
    return int(np.bincount(late).argmax()) if len(late) else -1


def _add(total: dict[str, int], split: _Split, fresh: int) -> None:
    """Add a step, scaled to the part of it that no earlier step of the request covers."""
    whole = sum(split.ns.values())
    for name, ns in split.ns.items():
        if name != "unexplained" and whole:
            total[name] += ns * min(fresh, whole) // whole


def _part(name: str, ns: int, splits: list[_Split]) -> Part:
    device = any(split.device for split in splits)
    if name == "unexplained":
        return Part(part=name, ns=ns, source="steps without a profile, and what their profiles leave open")
    if not splits:
        return Part(part=name, ns=None, source="no profile overlaps its steps")
    if name in ("device_compute", "device_idle") and not device:
        return Part(part=name, ns=None, source="no device ran in the profiled steps: the model is computed on the host")
    if name == "host_compute" and device:
        return Part(part=name, ns=None, source="the model is computed on a device")
    if name == "collective_wait":
        return _wait(ns, splits)
    return Part(part=name, ns=ns, source=_SOURCES[name])


def _wait(ns: int, splits: list[_Split]) -> Part:
    if not any(split.parted for split in splits):
        why = "no collective whose waiting the clocks of the ranks allow to tell; it is inside collective_transfer"
        return Part(part="collective_wait", ns=None, source=why)
    late = [split.late for split in splits if split.late >= 0]
    who = f", most often for rank {max(set(late), key=late.count)}" if late else ""
    return Part(part="collective_wait", ns=ns, source=f"collectives until the last rank arrived{who}")


_SOURCES = {
    "device_compute": "kernels of its profiled steps",
    "host_compute": "operators of its profiled steps, on the host",
    "collective_transfer": "collectives of its profiled steps after the last rank had arrived, or whole where that is unknown",
    "exposed_host": "its profiled steps while neither an operator, a kernel nor a collective ran",
    "device_idle": "its profiled steps while neither the device nor the host thread did anything recorded",
}


def _split(case: Case, step: int) -> _Split | None:
    """The resources of one step on the rank that ended it last, None where no profile with spans overlaps it."""
    if step not in case.splits:
        case.splits[step] = _measure(case, step)
    return case.splits[step]


def _measure(case: Case, step: int) -> _Split | None:
    work = case.capture.work
    start, stop = int(case.begin[step]), int(case.stop[step])
    rows = np.flatnonzero((work.step == step) & (work.row >= 0))
    if not len(rows) or UNKNOWN in (start, stop) or stop <= start:
        return None
    last = int(rows[np.argmax(work.stop[rows])])
    rank = int(work.rank[last])
    tree = case.capture.ranks[rank].tree
    if tree is None:
        return None
    wait, transfer, parted = _collective(case, step, rank)
    colors = _colors(tree, slice(int(work.row[last]), int(work.row_stop[last])), wait, transfer)
    ns = dict(zip([*colors, "unexplained"], paint(start, stop, list(colors.values())), strict=True))
    device = "device_compute" in colors
    if device:
        ns["device_idle"] = ns.pop("unexplained")
    else:
        ns["exposed_host"] = ns.pop("unexplained")
    return _Split(ns, device, parted, late_rank(case, step))


def _collective(case: Case, step: int, rank: int) -> tuple[Spans, Spans, bool]:
    """Waiting and transfer of a step's collectives on one rank, and whether the two can be told apart."""
    table = case.capture.collectives
    mine = np.flatnonzero((table.step == step) & (table.rank == rank))
    start, dur, wait = table.start[mine], table.dur[mine], table.wait[mine]
    known = np.where(wait == UNKNOWN, 0, np.minimum(wait, dur))
    return union(start, start + known), union(start + known, start + dur), bool((wait != UNKNOWN).any())


def _colors(tree: Tree, rows: slice, wait: Spans, transfer: Spans) -> dict[str, Spans]:
    """What to paint a step with, first come first served: with a device the kernels, without one the operators."""
    trace = tree.trace
    layer, start, stop = trace.layer[rows], trace.start[rows], trace.start[rows] + trace.dur[rows]
    device = np.array([lane.device for lane in trace.lanes], np.bool_)[trace.lane[rows]]
    kernels = _of(device & (layer == Layer.KERNEL), start, stop)
    on_device = len(kernels.start) > 0
    sent = _of((layer == Layer.COMMUNICATION) & (device if on_device else True), start, stop)
    sent = union(np.append(transfer.start, sent.start), np.append(transfer.stop, sent.stop))
    if on_device:
        host = _of(~device & np.isin(layer, _HOST), start, stop)
        return {"collective_wait": wait, "collective_transfer": sent, "device_compute": kernels, "exposed_host": host}
    operators = _of(layer == Layer.OPERATOR, start, stop)
    return {"collective_wait": wait, "collective_transfer": sent, "host_compute": operators}


def _of(mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]", start: Int64, stop: Int64) -> Spans:
    return union(start[mask], stop[mask])
