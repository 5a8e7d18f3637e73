"""Which of many rows touch a stretch of time, without looking at the others."""

from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int64


class Windows(NamedTuple):
    """Rows by the start of their time; int64 each: ``row``, ``start`` and ``stop`` ns (included), and ``reach``: the latest stop
    of a row and all before it.
    """

    row: Int64
    start: Int64
    stop: Int64
    reach: Int64

    def touching(self, low: int, high: int) -> Int64:
        """int64, ascending: the rows of which an instant lies in ``[low, high]``."""
        first = int(np.searchsorted(self.reach, low, "left"))
        last = int(np.searchsorted(self.start, high, "right"))
        return np.sort(self.row[first:last][self.stop[first:last] >= low])


def windows(row: Int64, start: Int64, stop: Int64) -> Windows:
    """The rows numbered ``row`` with their times, made ready to be asked."""
    order = np.argsort(start, kind="stable")
    stop = stop[order]
    return Windows(row[order].astype(np.int64), start[order], stop, np.maximum.accumulate(stop))


class Keyed(NamedTuple):
    """Rows by a key: int64 ``key`` ascending and, beside it, ``row``."""

    key: Int64
    row: Int64

    def of(self, keys: Int64) -> Int64:
        """int64, ascending: the rows that have any of ``keys``."""
        if not len(keys) or not len(self.key):
            return self.row[:0]
        keys = np.unique(keys)
        first, last = np.searchsorted(self.key, keys, "left"), np.searchsorted(self.key, keys, "right")
        length = last - first
        inside = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        return np.sort(self.row[np.repeat(first, length) + inside])


def keyed(key: Int64) -> Keyed:
    """The positions of ``key`` by their key."""
    order = np.argsort(key, kind="stable")
    return Keyed(key[order].astype(np.int64), order.astype(np.int64))
