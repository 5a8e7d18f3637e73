"""What services count and measure of themselves all the time: gauges, counters and histograms of /metrics pages."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.table import Float64, Int64, Text, check_columns


@dataclass(frozen=True)
class Readings:
    """Gauges and counters, ordered by name, source and time. ``name``: what it is (running, waiting, kv_usage, preemptions ...).

    A gauge's row is one reading: ``start`` and ``stop`` int64 unix ns are its time, ``value`` float64 what it showed. A
    counter's row is an interval between two readings, ``value`` by how much it grew; the first of a process begins when the
    process did, UNKNOWN where nobody says. Both times are UNKNOWN where a page has none. ``source``: which process or device.
    """

    name: Text
    source: Text
    start: Int64
    stop: Int64
    value: Float64

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Buckets:
    """Histograms over all sources: how many of what happened between ``start`` and ``stop`` (int64 unix ns; UNKNOWN as in
    :class:`Readings`) lay above ``low`` and at most at ``high`` (float64 s, infinity for the last bucket). Ordered by name,
    start and bound; empty buckets are left out.
    """

    name: Text
    start: Int64
    stop: Int64
    low: Float64
    high: Float64
    count: Int64

    def check(self) -> None:
        """Raise ValueError where columns differ in length, a bucket is empty or its bounds are out of order."""
        check_columns(self)
        if np.any(self.count <= 0) or not np.all(self.low < self.high):
            raise ValueError("a bucket is empty, or ends before it begins")


def no_readings() -> Readings:
    """A table without rows."""
    times, values = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
    return Readings([], [], times, times, values)


def no_buckets() -> Buckets:
    """A table without rows."""
    times, bounds = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
    return Buckets([], times, times, bounds, bounds, times)
