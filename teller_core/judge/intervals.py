"""Sets of time intervals as two int64 arrays, and painting a stretch of time so that every nanosecond has one color."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int64


class Spans(NamedTuple):
    """Disjoint intervals in order: ``start`` and ``stop`` int64 ns, ``stop`` not included."""

    start: Int64
    stop: Int64

    def length(self) -> int:
        """ns covered."""
        return int((self.stop - self.start).sum()) if len(self.start) else 0


EMPTY = Spans(np.empty(0, np.int64), np.empty(0, np.int64))


def span(start: int, stop: int) -> Spans:
    """One interval, or none where it would be empty."""
    if stop <= start:
        return EMPTY
    return Spans(np.array([start], np.int64), np.array([stop], np.int64))


def union(start: Int64, stop: Int64) -> Spans:
    """The time covered by any of the intervals, which may overlap and come in any order."""
    keep = stop > start
    if not keep.any():
        return EMPTY
    order = np.argsort(start[keep], kind="stable")
    start, stop = start[keep][order], stop[keep][order]
    reach = np.maximum.accumulate(stop)
    new = np.ones(len(start), np.bool_)
    new[1:] = start[1:] > reach[:-1]
    first = np.flatnonzero(new)
    last = np.append(first[1:], len(start)) - 1
    return Spans(start[first], reach[last])


def clip(spans: Spans, low: int, high: int) -> Spans:
    """The part of ``spans`` inside ``[low, high)``."""
    if high <= low or not len(spans.start):
        return EMPTY
    first = int(spans.stop.searchsorted(low, "right"))
    last = int(spans.start.searchsorted(high, "left"))
    if last <= first:
        return EMPTY
    return Spans(np.maximum(spans.start[first:last], low), np.minimum(spans.stop[first:last], high))


def covers(spans: Spans, points: Int64) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """bool: which of the points lie inside."""
    return spans.start.searchsorted(points, "right") > spans.stop.searchsorted(points, "right")


def overlap(spans: Spans, low: int, high: int) -> int:
    """ns of ``spans`` inside ``[low, high)``."""
    return clip(spans, low, high).length()


def overlaps(spans: Spans, low: Int64, high: Int64) -> Int64:
    """int64 ns: how much of ``spans`` lies inside each ``[low, high)``."""
    if not len(low):
        return np.zeros(0, np.int64)
    if not len(spans.start):
        return np.zeros(len(low), np.int64)
    near = clip(spans, int(low.min()), int(max(low.max(), high.max())))
    return _covered_before(near, high) - _covered_before(near, low)


def common(a: Spans, b: Spans) -> Spans:
    """The time that both cover."""
    if not (len(a.start) and len(b.start)):
        return EMPTY
    a, b = clip(a, int(b.start[0]), int(b.stop[-1])), clip(b, int(a.start[0]), int(a.stop[-1]))
    return _pick(a, b, inside=True)


def without(a: Spans, b: Spans) -> Spans:
    """The time of ``a`` that ``b`` does not cover."""
    if not len(a.start):
        return EMPTY
    b = clip(b, int(a.start[0]), int(a.stop[-1]))
    return _pick(a, b, inside=False) if len(b.start) else union(a.start, a.stop)


def paint(low: int, high: int, colors: Sequence[Spans]) -> list[int]:
    """ns of ``[low, high)`` in each color, and last what none covers. The first color to cover an instant has it.

    The numbers sum to ``high - low`` exactly.
    """
    clipped = [clip(color, low, high) for color in colors]
    if sum(len(color.start) > 0 for color in clipped) < 2:  # nothing can be covered twice
        painted = [color.length() for color in clipped]
        return [*painted, max(high - low, 0) - sum(painted)]
    ends = np.array([low, high], np.int64)
    points = np.unique(np.concatenate([ends, *[c.start for c in clipped], *[c.stop for c in clipped]]))
    left, size = points[:-1], np.diff(points)
    free = np.ones(len(left), np.bool_)
    painted: list[int] = []
    for color in clipped:
        mine = free & covers(color, left)
        painted.append(int(size[mine].sum()))
        free &= ~mine
    return [*painted, int(size[free].sum())]


def _pick(a: Spans, b: Spans, inside: bool) -> Spans:
    points = np.unique(np.concatenate([a.start, a.stop, b.start, b.stop]))
    if len(points) < 2:
        return EMPTY
    left, right = points[:-1], points[1:]
    keep = covers(a, left) & (covers(b, left) == inside)
    return union(left[keep], right[keep])


def _covered_before(spans: Spans, points: Int64) -> Int64:
    """int64 ns of ``spans`` before each point."""
    if not len(spans.start):
        return np.zeros(len(points), np.int64)
    done = np.concatenate([np.zeros(1, np.int64), np.cumsum(spans.stop - spans.start)])
    index = spans.start.searchsorted(points, "right")
    before = np.maximum(index - 1, 0)
    partial = np.minimum(points, spans.stop[before]) - spans.start[before]
    return np.where(index > 0, done[before] + partial, 0).astype(np.int64)
