"""The spans of one or more ranks on one clock, with all that made them wait for one another: what replay re-times."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Collectives, Meetings
from teller_core.data.graph import Graph
from teller_core.data.table import Int32, Int64, Mask, Text, UInt8
from teller_core.data.tree import Tree


class Met(NamedTuple):
    """The collectives of some rows: ``collectives`` of any ranks and steps, and of their ``meetings`` those from position
    ``first`` on (none where nobody is to be told what kept a rank).
    """

    collectives: Collectives
    meetings: Meetings
    first: int = 0


class StepSpans(NamedTuple):
    """The rows of one step on one rank. ``tree`` holds them alone: its row 0 is row ``first`` of the rank's tree. ``rank`` is a
    position in ``Capture.ranks``; ``shift`` ns puts its clock on the capture's.
    """

    rank: int
    first: int
    tree: Tree
    shift: int = 0


@dataclass(frozen=True)
class Calls:
    """What ranks said to one another: one row a rank's call, ``row`` int32 of :class:`Linked`, ``meeting`` int32, its number
    here, and ``root`` bool: it is that of the rank from which all others get, or to which all give; one row a meeting: ``kind``
    (the word of its kind), ``whole`` bool: all who must meet are here, ``at`` int32: its position in ``Capture.meetings``.
    """

    row: Int32
    meeting: Int32
    root: Mask
    kind: Text
    whole: Mask
    at: Int32


@dataclass(frozen=True)
class Stops:
    """Times in which all threads of a process stood still: ``at`` int32 position in ``Capture.pauses``, ``part`` int32 into
    ``Linked.parts``, ``start`` and ``end`` int64 ns on the capture's clock.
    """

    at: Int32
    part: Int32
    start: Int64
    end: Int64


@dataclass(frozen=True)
class Linked:
    """``parts`` numbered one behind the other, and behind them calls that are in no part's rows (communication on threads of its
    own, as Gloo's). Each row: ``start``, ``end`` int64 ns on the capture's clock; ``parent`` int32, -1 for none; ``stop`` int32;
    ``lane`` int32, numbered part by part, a lane of its own for each rank's calls; ``layer`` uint8; ``host`` bool: it ran on a
    thread; ``work`` bool: it ran on a device. What is neither took no time of its own: annotations, records of waits.
    ``lane_part`` int32 a lane. ``graph``: the dependencies within each part, and from what handed a call over to the call.
    """

    parts: Sequence[StepSpans]
    start: Int64
    end: Int64
    parent: Int32
    stop: Int32
    lane: Int32
    layer: UInt8
    host: Mask
    work: Mask
    lane_part: Int32
    graph: Graph
    calls: Calls
    stops: Stops

    def __len__(self) -> int:
        return len(self.start)

    @property
    def first(self) -> Int64:
        """int64: the row at which each part begins, and behind them that of the calls in no part."""
        return np.cumsum([0, *(len(part.tree) for part in self.parts)]).astype(np.int64)

    def row(self, rank: int, row: int) -> int:
        """The row here of ``row`` of the tree of the rank at position ``rank``, -1 where it is in no part."""
        for part, first in zip(self.parts, self.first.tolist(), strict=False):
            if part.rank == rank and part.first <= row < part.first + len(part.tree):
                return first + row - part.first
        return -1

    def handle(self, row: int) -> tuple[int, int] | None:
        """(position of the rank, row of its tree) of a row here, None for a call in no part."""
        first = self.first
        if row >= int(first[-1]):
            return None
        at = int(np.searchsorted(first, row, side="right")) - 1
        return self.parts[at].rank, self.parts[at].first + row - int(first[at])
