"""A trace gathered row by row in flat arrays, 38 bytes a row. Traces of profilers are read as columns from the start."""

from array import array
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.trace import NO_LINK, Lane, Layer, Origin, Trace
from teller_core.errors import LimitError

MAX_CATEGORIES = 255


def _longs() -> "array[int]":
    return array("q")


def _ints() -> "array[int]":
    return array("i")


def _bytes() -> "array[int]":
    return array("B")


@dataclass
class RowArrays:
    """Rows of a trace to be."""

    start: "array[int]" = field(default_factory=_longs)
    dur: "array[int]" = field(default_factory=_longs)
    link: "array[int]" = field(default_factory=_longs)
    name: "array[int]" = field(default_factory=_ints)
    lane: "array[int]" = field(default_factory=_ints)
    arg: "array[int]" = field(default_factory=_ints)
    layer: "array[int]" = field(default_factory=_bytes)
    category: "array[int]" = field(default_factory=_bytes)
    names: dict[str, int] = field(default_factory=dict[str, int])
    lanes: dict[Lane, int] = field(default_factory=dict[Lane, int])
    categories: dict[str, int] = field(default_factory=dict[str, int])
    arguments: dict[str, int] = field(default_factory=dict[str, int])

    def __len__(self) -> int:
        return len(self.start)

    def add(
        self,
        start: int,
        dur: int,
        name: str,
        lane: Lane,
        *,
        category: str,
        layer: Layer,
        link: int = NO_LINK,
        argument: str = "",
    ) -> None:
        """Append one event: times in ns, ``argument`` JSON text or empty. Errors: LimitError over MAX_CATEGORIES."""
        self.fill(self.reserve(), start, dur, name, lane, category=category, layer=layer, link=link, argument=argument)

    def reserve(self) -> int:
        """Keep the place of an event whose times come after those of what it holds. One that is never filled is no row."""
        for column in (self.start, self.link, self.name, self.lane, self.layer, self.category):
            column.append(0)
        self.arg.append(-1)
        self.dur.append(-1)
        return len(self.start) - 1

    def fill(
        self,
        row: int,
        start: int,
        dur: int,
        name: str,
        lane: Lane,
        *,
        category: str,
        layer: Layer,
        link: int = NO_LINK,
        argument: str = "",
    ) -> None:
        """The event for which ``row`` was reserved, as :meth:`add`."""
        kind = self.categories.setdefault(category, len(self.categories))
        if kind > MAX_CATEGORIES:
            raise LimitError("a trace", f"it has over {MAX_CATEGORIES} kinds of events", "Check the file")
        self.start[row], self.dur[row], self.link[row] = start, dur, link
        self.name[row] = self.names.setdefault(name, len(self.names))
        self.lane[row] = self.lanes.setdefault(lane, len(self.lanes))
        self.arg[row] = self.arguments.setdefault(argument, len(self.arguments)) if argument else -1
        self.layer[row], self.category[row] = layer, kind

    def traces(self, origin: Origin, *, by_start: bool = False) -> list[Trace]:
        """The rows in their order, or ``by_start`` with the longer first, as one Trace; none where there are no rows."""
        start, dur = np.array(self.start, dtype=np.int64), np.array(self.dur, dtype=np.int64)
        kept = np.flatnonzero(dur >= 0)
        if not len(kept):
            return []
        if by_start:
            kept = kept[np.lexsort((-dur[kept], start[kept]))]
        trace = Trace(
            start=start[kept],
            dur=dur[kept],
            name=np.array(self.name, dtype=np.int32)[kept],
            lane=np.array(self.lane, dtype=np.int32)[kept],
            category=np.array(self.category, dtype=np.uint8)[kept],
            layer=np.array(self.layer, dtype=np.uint8)[kept],
            link=np.array(self.link, dtype=np.int64)[kept],
            arg=np.array(self.arg, dtype=np.int32)[kept],
            names=list(self.names),
            lanes=list(self.lanes),
            categories=list(self.categories),
            args=list(self.arguments),
            origin=origin,
        )
        return [trace]
