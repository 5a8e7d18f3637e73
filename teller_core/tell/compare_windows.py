"""Two recorded windows side by side, where no steps tell which work is alike: what the devices did all the time, and what the
same kernels and calls took.

A window reaches from the first work on a rank's device to the last. It is cut into even parts, whose spread says how
surely the means of two windows differ. Kernels and calls are set against those of the same name, as many as there are.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from teller_core.data.plain_names import plain_name
from teller_core.data.report import Difference
from teller_core.data.table import Float64, Int64
from teller_core.data.trace import KERNEL_CATEGORIES, Layer
from teller_core.data.tree import Tree
from teller_core.tell.compare_intervals import (
    ENOUGH,
    SURE_SPREADS,
    difference,
    matched,
    means,
    medians,
    order_interval,
)
from teller_core.tell.names import shorten

PARTS = 24
"""Parts of a window: many enough for a spread, and each still holds many kernels."""
MATERIAL = 0.005
"""A kernel or call is named where its change moves the window by one part in two hundred."""
NAMED = 8
"""And at most so many of each kind, those that move it most first."""
CUT = 0.29
"""The standard deviation of where in a round of work a window begins, as a part of a round: it may be anywhere."""
WAITS = re.compile(r"Synchronize|poll|select$|epoll|sem_|pthread_cond|futex|sleep")
"""Calls that last as long as what they wait for: they say nothing about the speed of calls."""


class Key(NamedTuple):
    """What calls have in common: layer, plain name and, of a kernel, how many blocks it has."""

    layer: Layer
    name: str
    shape: str = ""

    @property
    def shown(self) -> str:
        return f"{shorten(self.name)} ({self.shape})" if self.shape else shorten(self.name)


@dataclass(frozen=True)
class Window:
    """One rank's recorded time. ``length`` ns; by part, in percent: ``idle`` (no work on the device), ``sending`` (a
    collective ran); ``started``: kernels begun a ms; ``took``: ns of each call, by layer and plain name: on a device its
    time, on the host its own time.
    """

    length: int
    idle: Float64
    sending: Float64
    started: Float64
    took: Mapping[Key, Float64]


def window(tree: Tree) -> Window | None:
    """The window of a rank; None for one without work on a device."""
    trace = tree.trace
    device = trace.on_device & np.isin(trace.layer, (Layer.KERNEL, Layer.COMMUNICATION))
    work = np.flatnonzero(device)
    if not len(work):
        return None
    start, end = trace.start[work], trace.end[work]
    edges = np.linspace(0, int(end.max() - start.min()), PARTS + 1).astype(np.int64) + int(start.min())
    length = np.maximum(np.diff(edges), 1)
    sends = trace.layer[work] == Layer.COMMUNICATION
    computes = np.array([category.lower() in KERNEL_CATEGORIES for category in trace.categories], dtype=np.bool_)
    began = np.histogram(start[computes[trace.category[work]]], edges)[0]
    return Window(
        length=int(edges[-1] - edges[0]),
        idle=100 - 100 * _covered(start, end, edges) / length,
        sending=100 * _covered(start[sends], end[sends], edges) / length,
        started=began / length * 1e6,
        took=_took(tree, device),
    )


def _covered(start: Int64, end: Int64, edges: Int64) -> Int64:
    """int64 ns: how much of the time between each two ``edges`` lies in at least one of the ranges."""
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    begin = np.maximum(start, np.append(np.int64(np.iinfo(np.int64).min), reach[:-1]))
    done = np.append(0, np.cumsum(np.maximum(reach - begin, 0)))
    k = np.searchsorted(start, edges, side="right")
    beyond = np.maximum(
        np.append(edges.min(), reach)[k] - edges, 0
    )  # of what began before an edge, all behind it is one range
    return np.diff(done[k] - beyond)


def _took(tree: Tree, device: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> dict[Key, Float64]:
    trace = tree.trace
    host = ~trace.on_device & np.isin(trace.layer, (Layer.OPERATOR, Layer.RUNTIME))
    value = np.where(device, trace.dur, tree.self_time())
    rows = np.flatnonzero(device | host)
    shapes = [""] + [_shape(said) for said in trace.args]
    number = {shape: k for k, shape in enumerate(dict.fromkeys(shapes))}
    shape = np.array([number[shape] for shape in shapes], dtype=np.int64)[trace.arg[rows] + 1]
    shape[trace.layer[rows] != Layer.KERNEL] = 0
    kind = (trace.name[rows].astype(np.int64) * len(number) + shape) * len(Layer) + trace.layer[rows]
    order = np.argsort(kind, kind="stable")
    cuts = np.flatnonzero(np.diff(kind[order], prepend=-1))
    known, found = list(number), dict[Key, Float64]()
    for part in np.split(order, cuts[1:]) if len(rows) else []:
        first = rows[part[0]]
        layer, text = int(trace.layer[first]), trace.names[int(trace.name[first])]
        key = Key(Layer(layer), plain_name(text, layer), known[int(shape[part[0]])])
        values = value[rows[part]].astype(np.float64)
        found[key] = np.concatenate([found[key], values]) if key in found else values
    return found


def _shape(said: str) -> str:
    """The grid of a kernel, as its arguments tell it: kernels of one name and another grid do other work."""
    try:
        grid: object = json.loads(said).get("grid") if '"grid"' in said else None
    except ValueError:
        return ""
    sizes = cast("list[Any]", grid) if isinstance(grid, list) else []
    return "x".join(str(size) for size in sizes[:3] if isinstance(size, int))


def compare_windows(before: Sequence[Window], after: Sequence[Window]) -> Iterator[Difference]:
    """What differs between the windows of two captures, all ranks of each together. Nothing where one has none."""
    if not before or not after:
        return
    for what, layer, column, unit in (
        ("device idle", "kernel", "idle", "% of the time"),
        ("collectives on the device", "communication", "sending", "% of the time"),
    ):
        a, b = (np.concatenate([getattr(one, column) for one in side]) for side in (before, after))
        yield from means(what, layer, a, b, unit=unit)
    sides = [_together(side) for side in (before, after)]
    yield from _started(sides[0], sides[1], before, after)
    for layer, what in (
        (Layer.KERNEL, "a kernel of one name and grid"),
        (Layer.OPERATOR, "own time of an operator of one name"),
        (Layer.RUNTIME, "own time of a call of the runtime of one name, waits apart"),
    ):
        both = [key for key in sides[0] if key.layer == layer and key in sides[1] and not WAITS.search(key.name)]
        pairs = [(_us(sides[0][key]), _us(sides[1][key])) for key in both]
        pairs = [pair for pair in pairs if min(len(pair[0]), len(pair[1])) >= ENOUGH]
        if pairs:
            yield matched(what, pairs, layer=layer.name.lower(), unit="us")
    lengths = [sum(one.length for one in side) for side in (before, after)]
    yield from _named(sides[0], sides[1], lengths)
    yield from _came_and_went(sides[0], sides[1], lengths)


def _started(
    before: Mapping[Key, Float64], after: Mapping[Key, Float64], one: Sequence[Window], other: Sequence[Window]
) -> Iterator[Difference]:
    """How many kernels began a ms. The ratio is the median over the kinds of kernels that both have: where one program does
    the same work again and again, all kinds agree on it but for the round in which a window begins and ends.
    """
    rates = [np.concatenate([window.started for window in side]) for side in (one, other)]
    kinds = [key for key in before if key.layer == Layer.KERNEL and key in after]
    counts = np.array([(len(before[key]), len(after[key])) for key in kinds], dtype=np.float64).reshape(-1, 2)
    counts = counts[counts.min(axis=1) >= ENOUGH]
    if len(counts) < ENOUGH:
        yield from means("kernels started", "kernel", rates[0], rates[1], unit="a ms")
        return
    ranks, lengths = np.array([len(one), len(other)]), [sum(window.length for window in side) for side in (one, other)]
    middle, low, high = order_interval(np.log(counts[:, 1] / counts[:, 0] * (lengths[0] / lengths[1])), 0.5)
    cut = SURE_SPREADS * CUT * float(np.hypot(*(ranks / np.median(counts, axis=0))))
    below, above = float(np.hypot(middle - low, cut)), float(np.hypot(high - middle, cut))
    sides = float(rates[0].mean()), float(rates[1].mean())
    bounds = float(np.exp(middle - below)), float(np.exp(middle + above))
    yield difference("kernels started", "kernel", sides, unit="a ms", ratio=float(np.exp(middle)), bounds=bounds)


def _together(side: Sequence[Window]) -> dict[Key, Float64]:
    keys = dict.fromkeys(key for one in side for key in one.took)
    return {key: np.concatenate([one.took[key] for one in side if key in one.took]) for key in keys}


def _us(value: Float64) -> Float64:
    """Microseconds, of a value that took no time the nanosecond that a clock cannot tell from none."""
    return np.maximum(value, 1) / 1e3


def _named(before: Mapping[Key, Float64], after: Mapping[Key, Float64], lengths: Sequence[int]) -> Iterator[Difference]:
    """Kernels, collectives and calls whose time changed, those that move the window most first."""
    both = [key for key in before if key in after and min(len(before[key]), len(after[key])) >= ENOUGH]
    moved = {key: _moved(before[key], after[key]) for key in both}
    for layers in ((Layer.KERNEL, Layer.COMMUNICATION), (Layer.OPERATOR, Layer.RUNTIME)):
        keys = [key for key in both if key.layer in layers and moved[key] >= MATERIAL * lengths[0]]
        for key in sorted(keys, key=lambda key: -moved[key])[:NAMED]:
            what = f"{key.shown}, each call"
            yield from medians(what, key.layer.name.lower(), _us(before[key]), _us(after[key]), unit="us")


def _moved(before: Float64, after: Float64) -> float:
    """ns that as many calls as before would take more or less, by their mean or their median."""
    mean, middle = float(after.mean() - before.mean()), float(np.median(after) - np.median(before))
    return max(abs(mean), abs(middle)) * len(before)


def _came_and_went(
    before: Mapping[Key, Float64], after: Mapping[Key, Float64], lengths: Sequence[int]
) -> Iterator[Difference]:
    """Kernels and collectives that only one of the two has, or that are called more or less often a second."""
    found: list[tuple[float, Difference]] = []
    for key in {**before, **after}:
        if key.layer not in (Layer.KERNEL, Layer.COMMUNICATION):
            continue
        a, b = before.get(key, np.empty(0)), after.get(key, np.empty(0))
        share = max(float(a.sum()) / lengths[0], float(b.sum()) / lengths[1])
        if (len(a) and len(b)) or share < MATERIAL or max(len(a), len(b)) < ENOUGH:
            continue
        rates = [len(calls) / length * 1e9 for calls, length in zip((a, b), lengths, strict=True)]
        what = f"calls of {key.shown}, {'before' if len(a) else 'after'} alone"
        found.append((share, _counted(what, key.layer.name.lower(), *rates)))
    yield from (difference for _, difference in sorted(found, key=lambda item: -item[0])[:NAMED])


def _counted(what: str, layer: str, before: float, after: float) -> Difference:
    return Difference(
        what=what,
        layer=layer,
        before=round(before, 3),
        after=round(after, 3),
        unit="a s",
        ratio=None,
        low=None,
        high=None,
        sure=True,
    )
