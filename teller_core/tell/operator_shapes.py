"""What an operator was called with, how long that took, and how near it came to what its device can do."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.calls import Calls
from teller_core.data.devices import device_called
from teller_core.data.report_operators import OperatorShapes, Roofline
from teller_core.data.shapes import shapes_of, tensors_of
from teller_core.data.table import Int64, take
from teller_core.data.trace import Layer
from teller_core.tell.kernel_names import kernel_name
from teller_core.tell.operator_calls import RankCalls
from teller_core.tell.roofline import fits, roofline, work_of
from teller_core.tell.visible import visible

SHAPES = 6
"""Sets of inputs shown."""
MOST_ARGUMENTS = 200
"""Calls of a rank whose inputs are read: each is JSON to parse, and some make a hundred thousand."""


@dataclass(frozen=True)
class _Alike:
    """Calls with one set of inputs. ``told``: the arguments of one; ``own`` ns of each; ``called``: the operators, the names of
    what ran, and the devices that they were on.
    """

    told: str
    own: list[int] = field(default_factory=list[int])
    called: set[tuple[str, str, str]] = field(default_factory=set[tuple[str, str, str]])


def shapes_called(ranks: Sequence[RankCalls], layer: int) -> list[OperatorShapes]:
    """The calls by what they were called with: a kernel's are those of the operator that launched it. Of replays, by what their
    graph was captured with. Of very many calls, some: see :func:`looked_at`.
    """
    found: dict[str, _Alike] = {}
    for rank in ranks:
        mine = take(rank.calls, looked_at(rank.calls))
        if rank.arguments is None or not len(mine.row):
            continue
        device = rank.devices[0] if len(set(rank.devices)) == 1 else ""
        columns = (mine.name.tolist(), mine.operator.tolist(), mine.own.tolist())
        for told, name, operator, own in zip(rank.arguments(mine.arg), *columns, strict=True):
            if text := shapes_of(told):
                alike = found.setdefault(text, _Alike(told))
                alike.own.append(own)
                alike.called.add((rank.names[int(operator)], rank.names[int(name)], device))
    order = sorted(found, key=lambda text: -sum(found[text].own))[:SHAPES]
    return [_shapes(text, found[text], layer) for text in order]


def looked_at(calls: Calls) -> Int64:
    """Positions of the calls whose inputs are read: all, or MOST_ARGUMENTS evenly among those that have any."""
    having = np.flatnonzero(calls.arg >= 0)
    if len(having) <= MOST_ARGUMENTS:
        return having
    return having[np.linspace(0, len(having) - 1, MOST_ARGUMENTS).astype(np.int64)]


def _shapes(text: str, alike: _Alike, layer: int) -> OperatorShapes:
    median = float(np.median(alike.own))
    said = _roofline(alike, layer, median)
    return OperatorShapes(
        inputs=visible(text),
        calls=len(alike.own),
        total_ms=_ms(float(sum(alike.own))),
        median_ms=_ms(median),
        roofline=None if isinstance(said, str) else said,
        roofline_note=said if isinstance(said, str) else "",
    )


def _roofline(alike: _Alike, layer: int, median: float) -> Roofline | str:
    """How near the median call comes to the roof, or why that cannot be said."""
    if layer != Layer.KERNEL:
        return "its time is that of the host: ask for the kernel that it launches"
    operators = {operator for operator, _, _ in alike.called}
    devices = {device for _, _, device in alike.called}
    device = device_called(devices.pop()) if len(devices) == 1 else None
    if device is None:
        return "what its device can do is not known"
    work = work_of(operators.pop(), tensors_of(alike.told)) if len(operators) == 1 else None
    if work is None:
        return "what it has to do is not counted for the operator that launched it"
    if not all(fits(operator, kernel) for operator, kernel, _ in alike.called):
        return "its operator launches it beside the kernel that does the work"
    names = sorted({kernel for _, kernel, _ in alike.called})
    precisions = {known.precision if (known := kernel_name(name)) else None for name in names}
    return roofline(work, device, names, precisions.pop() if len(precisions) == 1 else None, median)


def _ms(ns: float) -> float:
    return round(ns / 1e6, 6)
