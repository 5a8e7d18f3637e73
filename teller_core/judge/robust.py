"""Robust statistics of many groups at once, by sorting numbers that hold a group and a value."""

import sys
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from teller_core.data.long_columns import PIECE, taken
from teller_core.data.table import Float32, Float64, Int32, Int64

UInt64 = npt.NDArray[np.uint64]

LOW_HALF = 0 if sys.byteorder == "little" else 1
"""Where the low half of an integer lies that is looked at as two."""
NORMAL_MAD = 1.4826
"""The median absolute deviation of a normal distribution times this is its standard deviation."""


@dataclass(frozen=True)
class Grouped:
    """Values sorted within their groups: group ``g`` owns ``value[offset[g] : offset[g + 1]]``, ascending."""

    value: Float32
    offset: Int64

    @property
    def count(self) -> Int64:
        """int64: values a group."""
        return np.diff(self.offset)

    def quantile(self, q: float) -> Float64:
        """float64 a group: its q-quantile, linear between values; NaN where a group is empty."""
        count = self.count
        at = self.offset[:-1] + (np.maximum(count, 1) - 1) * q
        low = np.floor(at).astype(np.int64)
        high = np.minimum(low + 1, np.maximum(self.offset[1:] - 1, self.offset[:-1]))
        if not len(self.value):
            return np.full(len(count), np.nan)
        below, above = (self.value[np.minimum(i, len(self.value) - 1)].astype(np.float64) for i in (low, high))
        return np.where(count > 0, below + (above - below) * (at - low), np.nan)


def grouped(group: Int32 | Int64, value: Float32, groups: int) -> Grouped:
    """``value`` float32 (not negative, no NaN) sorted within ``group``, whose numbers run from 0 to ``groups`` - 1.

    The bits of a float that is not negative order as the float does, so one sort of integers does both.
    """
    packed = group.astype(np.int64)
    packed <<= 32
    packed |= value.view(np.int32)
    packed.sort()
    count = np.bincount(group, minlength=groups)
    offset = np.zeros(groups + 1, dtype=np.int64)
    np.cumsum(count, out=offset[1:])
    return Grouped(packed.view(np.float32)[LOW_HALF::2], offset)


def medians(group: Int32 | Int64, value: Float32, groups: int) -> tuple[Float64, Float64, Int64]:
    """The median, the robust standard deviation (from the median absolute deviation) and the count of every group."""
    ranked = grouped(group, value, groups)
    median, count = ranked.quantile(0.5), ranked.count
    del ranked
    apart = taken(median.astype(np.float32), group)
    np.abs(np.subtract(value, apart, out=apart), out=apart)
    return median, grouped(group, apart, groups).quantile(0.5) * NORMAL_MAD, count


def factorize(key: UInt64) -> tuple[Int32, Int32, Int32]:
    """``group`` int32 of every row (equal keys, equal groups, numbered by ascending key), ``order`` int32: the rows by group
    and then by row, and ``first`` int32: where each group begins in ``order``.

    Key and row share one integer, so the key loses as many of its low bits as a row number has: with a million rows and
    ten thousand different keys two of them meet with a probability of about 3e-6.
    """
    if not len(key):
        return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32)
    bits = np.uint64(max(1, (len(key) - 1).bit_length()))
    mask = (np.uint64(1) << bits) - np.uint64(1)
    packed = key & ~mask
    for low in range(0, len(key), PIECE):
        part = packed[low : low + PIECE]
        part |= np.arange(low, low + len(part), dtype=np.uint64)
    packed.sort()
    order = np.empty(len(key), dtype=np.int32)
    np.bitwise_and(packed, mask, out=order, casting="unsafe")
    packed &= ~mask
    begins = np.ones(len(key), dtype=np.bool_)
    np.not_equal(packed[1:], packed[:-1], out=begins[1:])
    del packed
    number = np.cumsum(begins, dtype=np.int32)
    number -= 1
    group = np.empty(len(key), dtype=np.int32)
    group[order] = number
    return group, order, np.flatnonzero(begins).astype(np.int32)


def weighted(value: Float64, weight: Float64, share: float) -> float:
    """The least of the values that, with all below it, have this share of the weight. There must be one with a weight."""
    order = np.argsort(value, kind="stable")
    reached = np.cumsum(weight[order])
    place = np.searchsorted(reached, np.array([share * float(reached[-1])]))
    return float(value[order[int(place[0])]])
