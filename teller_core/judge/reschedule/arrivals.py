"""When each request reached the scheduler: what a simulation must be given, because nothing in it makes it happen."""

from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN, Int64, Mask
from teller_core.judge.reschedule.batches import COVERED, Batches

BY_THE_LOOP = 0.2
"""An engine that stamps requests in its own loop does so just before it decides: the median stamp lies at most this share of
the time between two decisions before the second one. Others come at any time."""
FEW = 0.05
"""The share of the shortest ways from the front end to the engine that are taken for what the way takes at least."""
AT_ONCE = 2.0
"""An engine that had nothing to do for so many of its usual turnarounds stamps what comes at once."""


class Arrivals(NamedTuple):
    """int64 ns a request of the capture, UNKNOWN for those that no step of the engine served: ``early`` and ``late`` bound when
    it reached the scheduler, ``time`` lies between. ``delay`` ns: how long after that a decision sees it. ``order`` int64: the
    queue's. ``stamped`` bool: its arrival was recorded; the others are there when a step first serves them. ``heard`` int64 ns:
    when anybody first recorded it, its arrival where nobody did before; ``way`` ns: how long it usually is from there on.
    """

    early: Int64
    time: Int64
    late: Int64
    delay: int
    order: Int64
    stamped: Mask
    heard: Int64
    way: int


def unfit(capture: Capture, ran: Batches) -> str:
    """Why nothing can be said of the arrivals; empty where it can."""
    mine = ran.first >= 0
    if mine.any() and (capture.requests.queued[mine] != UNKNOWN).mean() >= COVERED:
        return ""
    return "when its requests reached the engine was not recorded"


def arrivals(capture: Capture, ran: Batches) -> Arrivals:
    """When the requests that ``ran`` reached the scheduler, by when the engine was handed them."""
    table = capture.requests
    served = ran.first >= 0
    first = np.where(served, ran.decided[ran.first] if len(ran.decided) else UNKNOWN, UNKNOWN)
    stamped = served & (table.queued != UNKNOWN) & (table.queued <= first)
    late = np.where(stamped, table.queued, first)
    early = late.copy()
    if _stamped_by_loop(late[stamped], ran.decided):
        early[stamped] = _no_sooner(capture, ran, late, stamped)[stamped]
    place = np.lexsort((np.arange(len(late)), late))
    order = np.empty(len(late), dtype=np.int64)
    order[place] = np.arange(len(late))
    middle = np.where(served, early + (late - early) // 2, UNKNOWN)
    begun = table.begin()
    heard = np.where(served & (begun != UNKNOWN), np.minimum(begun, middle), middle)
    way = int(np.median((middle - heard)[stamped])) if stamped.any() else 0
    return Arrivals(early, middle, late, 0, order, stamped, heard, way)


def _stamped_by_loop(stamp: Int64, decided: Int64) -> bool:
    """Whether the stamps lie close before the decision that follows them."""
    after = np.searchsorted(decided, stamp, "left")
    inside = (after > 0) & (after < len(decided))
    if not inside.any():
        return False
    apart = decided[after[inside]] - decided[after[inside] - 1]
    left = decided[after[inside]] - stamp[inside]
    return float(np.median(left / np.maximum(apart, 1))) <= BY_THE_LOOP


def _no_sooner(capture: Capture, ran: Batches, stamp: Int64, stamped: Mask) -> Int64:
    """int64 ns: the earliest arrival that a stamp of the engine's loop leaves open: after the decision before it, and the
    shortest way after the last that was heard of the request before. An engine that was waiting for work stamps at once.
    """
    table = capture.requests
    before = np.searchsorted(ran.decided, stamp, "left") - 1
    asked = np.where(before >= 0, ran.decided[before.clip(0)] + 1, stamp)
    idle = stamp - np.where(before >= 0, ran.ended[before.clip(0)], stamp)
    usual = _turnaround(ran)
    early = np.where(idle > AT_ONCE * usual, stamp, asked)
    heard = np.where(table.tokenized != UNKNOWN, table.tokenized, table.received)
    both = stamped & (heard != UNKNOWN) & (heard <= stamp)
    if both.any():
        least = int(np.quantile((stamp - heard)[both], FEW))
        early = np.where(both, np.maximum(early, np.minimum(heard + least, stamp)), early)
    return np.minimum(early, stamp)


def _turnaround(ran: Batches) -> float:
    """ns from the end of a step to the next decision, as a rule."""
    gaps = ran.decided[1:] - ran.ended[:-1]
    return float(np.median(gaps[gaps > 0])) if (gaps > 0).any() else 0.0
