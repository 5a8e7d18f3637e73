"""From the rows of a trace to its call-chain tree.

On a host lane a range hangs under the innermost range that contains all of it; of two equal ranges the one earlier in the
file is the parent. A range that starts inside another and ends after it crosses it: both keep their times, and the later
one hangs under the innermost range that contains it. On a device lane nothing nests: kernels of one stream may overlap.
A device row hangs under the runtime or driver call with its correlation id, the innermost if several calls share it, and
all kernels of a replayed graph hang under its launch.
"""

from dataclasses import replace

import numpy as np

from teller_core.data.long_columns import Column, kept, let_go, taken
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import NO_LINK, Layer, Trace
from teller_core.data.tree import ROOT, Tree

COLUMNS = ("start", "dur", "name", "lane", "category", "layer", "link", "arg")


def nest(trace: Trace) -> Tree:
    """The tree of ``trace``, in pre-order: siblings by start, then the longer first, then as in the file.

    Roots stand lane by lane: the host lanes, each in time, then the device rows without a launch. Takes O(n log n) time
    however the ranges lie.
    """
    from teller_core.rebuild import nesting

    start, dur, link = (np.ascontiguousarray(c, dtype=np.int64) for c in (trace.start, trace.dur, trace.link))
    layer = np.ascontiguousarray(trace.layer, dtype=np.uint8)
    rank, host_lanes = _lane_ranks(trace)
    order, spare = _empty(len(trace)), _empty(len(trace))
    ends = np.zeros(len(trace.lanes) + 1, dtype=np.int64)
    nesting.sort_rows(rank[trace.lane], start, dur, order, spare, ends)
    hosts = int(ends[host_lanes])
    over, after = _empty(hosts), _empty(hosts)
    until, heap = np.empty((2, hosts), dtype=np.int64)
    crossings = nesting.hang(start, dur, order, ends[: host_lanes + 1], over, after, spare, until, heap)
    keys, calls = _call_table(trace)
    nesting.index_calls(link, layer, start, order, hosts, keys, calls)
    launched = _empty(len(trace) - hosts)
    count, unlaunched = nesting.part_launched(link, layer, order, hosts, keys, calls, launched)
    launched = launched[:count]
    nesting.sort_by_start(launched, spare, 0, count, start, dur)
    room = np.empty((6, count), dtype=np.int32)
    nesting.attach(link, start, order, hosts, after, keys, calls, np.zeros(hosts + 2, np.int64), launched, room)
    row, parent, stop = spare, _empty(len(trace)), _empty(len(trace))
    nesting.place(order, hosts, over, room[:3], after, row, parent, stop)
    del order, over, after, until, heap, keys, calls, room, launched, start, dur, link, layer
    parent, stop = kept(parent), kept(stop)
    columns: dict[str, Column] = {name: getattr(trace, name) for name in COLUMNS}
    bare = replace(trace, **{name: column[:0].copy() for name, column in columns.items()})
    del trace  # whoever gave it away needs no more of a column than what is moved already
    return Tree(_permuted(bare, columns, row), parent, stop, int(crossings), int(unlaunched))


def _empty(rows: int) -> Int32:
    return np.empty(rows, dtype=np.int32)


def _lane_ranks(trace: Trace) -> tuple[Int32, int]:
    """(int32 place of each lane, host lanes first, as they come; the number of host lanes)."""
    device = np.array([lane.device for lane in trace.lanes], dtype=np.bool_)
    rank = np.empty(len(device), dtype=np.int32)
    rank[np.argsort(device, kind="stable")] = np.arange(len(device), dtype=np.int32)
    return rank, int(np.count_nonzero(~device))


def _call_table(trace: Trace) -> tuple[Int64, Int32]:
    """An empty hash table, int64 keys and int32 values, with room for all calls that carry a correlation id."""
    calls = int(np.count_nonzero((trace.layer == Layer.RUNTIME) & (trace.link != NO_LINK)))
    slots = 1 << (2 * calls + 1).bit_length()
    return np.zeros(slots, dtype=np.int64), np.full(slots, ROOT, dtype=np.int32)


def _permuted(bare: Trace, columns: dict[str, Column], row: Int32) -> Trace:
    """``bare`` with ``columns``, which are used up, in the order of ``row``."""
    return replace(bare, **{name: _moved(columns.pop(name), row) for name in COLUMNS})


def _moved(column: Column, row: Int32) -> Column:
    moved = taken(column, row)
    let_go(column, moved)
    return moved
