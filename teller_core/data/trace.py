"""One trace: what one file says happened, as columns on one clock."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64, UInt8

NO_LINK = -1
"""The event carries no correlation id."""


KERNEL_CATEGORIES = frozenset({"kernel", "concurrent_kernel"})
"""Words, in lower case, by which producers call a computation on a device. Copies and fills have others."""


CAPTURED = "captured operators"
"""The thread of operators that a graph launch repeats without running them: they take no time."""


class Layer(IntEnum):
    """Where in the stack a span belongs, from the user down to the device."""

    REQUEST = 0
    ENGINE = 1
    PYTHON = 2
    OPERATOR = 3
    RUNTIME = 4
    KERNEL = 5
    COMMUNICATION = 6
    LOG = 7


class Lane(NamedTuple):
    """One thread of a process, or one stream of a device."""

    process: str
    thread: str
    device: bool


@dataclass(frozen=True)
class Origin:
    """Where a trace came from. None where the file does not say."""

    producer: str
    """``kineto``, ``nvtx`` and so on: the name of the format."""
    clock: str
    """``unix``: nanoseconds since 1970. ``local``: an unknown zero, comparable within this trace alone."""
    rank: int | None = None
    world: int | None = None
    host: str | None = None
    pid: int | None = None
    devices: Sequence[str] = ()
    groups: Sequence[tuple[str, tuple[int, ...]]] = ()
    """Process groups: name and member ranks."""


@dataclass(frozen=True)
class Trace:
    """Events as equal-length columns. An event is never an object.

    ``start``, ``dur`` int64 ns on the clock of ``origin``; ``name`` int32 into ``names``; ``lane`` int32 into ``lanes``;
    ``category`` uint8 into ``categories`` (the producer's own word); ``layer`` uint8, a :class:`Layer`; ``link`` int64
    correlation id or NO_LINK; ``arg`` int32 into ``args`` (JSON object text without ids that differ at every event), -1
    for none.
    """

    start: Int64
    dur: Int64
    name: Int32
    lane: Int32
    category: UInt8
    layer: UInt8
    link: Int64
    arg: Int32
    names: Sequence[str]
    lanes: Sequence[Lane]
    categories: Sequence[str]
    args: Sequence[str]
    origin: Origin
    problems: dict[str, int] = field(default_factory=dict[str, int])
    """Events that could not be kept as they are, by the problem's name."""
    events_in_file: int = 0
    events_other: dict[str, int] = field(default_factory=dict[str, int])
    """Records of the file that are no complete events, by kind: metadata, flow, counter, instant, ..."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def end(self) -> Int64:
        """int64 ns: ``start + dur``."""
        return self.start + self.dur

    @property
    def lasted(self) -> int:
        """ns from the first start to the last end, 0 where there is no event."""
        return int(self.end.max()) - int(self.start.min()) if len(self) else 0

    @property
    def on_device(self) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """bool: the event ran on a device stream, not on a host thread."""
        device = np.array([lane.device for lane in self.lanes], dtype=np.bool_)
        return device[self.lane] if len(device) else np.zeros(len(self), dtype=np.bool_)

    def check(self) -> None:
        """Raise ValueError where a column is too short, an index points nowhere or an event of the file is unaccounted for."""
        lengths = {
            len(c) for c in (self.start, self.dur, self.name, self.lane, self.category, self.layer, self.link, self.arg)
        }
        if len(lengths) != 1:
            raise ValueError(f"columns differ in length: {sorted(lengths)}")
        for what, column, table in (
            ("name", self.name, self.names),
            ("lane", self.lane, self.lanes),
            ("category", self.category, self.categories),
            ("arg", self.arg, self.args),
        ):
            low = -1 if what == "arg" else 0
            if len(column) and (int(column.min()) < low or int(column.max()) >= len(table)):
                raise ValueError(f"{what} points outside its table of {len(table)}")
        if len(self) and int(self.dur.min()) < 0:
            raise ValueError("an event has a negative duration")


def kernel_totals(trace: Trace) -> tuple[int, int]:
    """(events of ``trace`` that are kernels, their summed duration in int ns). Overlaps count as often as they occur."""
    word = np.array([category.lower() in KERNEL_CATEGORIES for category in trace.categories], dtype=np.bool_)
    if not word.any():
        return 0, 0
    kernel = word[trace.category]
    return int(np.count_nonzero(kernel)), int(trace.dur[kernel].sum())
