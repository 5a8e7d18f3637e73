"""The list of events of a Chrome trace, from bytes to columns, compiled. :mod:`collected` says what the columns mean.

One record at a time is read into ``fields``; a complete event then becomes a row. A record that ends behind the buffer, or
finds a table full, changes nothing but tables of strings, so it is read again once there is more.
"""
# ruff: noqa: PLR0917, C901, PLR0912 - compiled: numba takes arguments by position,
# makes no sets, and inlines what is in one function. A loop over bytes is one decision a byte.

import numpy as np

from teller_core.data.compiled import compiled, forget_stale, inlined
from teller_core.data.table import Int32, Int64
from teller_core.ingest.kineto import arguments, numbers, record
from teller_core.ingest.kineto import fields as places
from teller_core.ingest.kineto.fields import (
    ARG,
    DUR,
    DUR_CODE,
    FIELDS,
    LANE_FIELDS,
    LINK,
    LINK_CODE,
    MISSING,
    NAME,
    NO_ROOM,
    PH,
    PID_KIND,
    SHORT,
    TS,
    TS_CODE,
)
from teller_core.ingest.kineto.record import read_record
from teller_core.ingest.scanning import intern, tokens, words
from teller_core.ingest.scanning.intern import Texts
from teller_core.ingest.scanning.tokens import BROKEN, MAX_INT64, NO_NUMBER, TOO_BIG, Bytes, mix, skip_space, skip_value

MORE, DONE, ROOM = 0, 1, 2
"""What stopped a scan besides BROKEN and TOO_DEEP: the bytes ran out, the list is closed, a table or the rows are full."""

FIRST, VALUE, COMMA = 0, 1, 2
"""What may come next in the list: a record or the end, a record, a comma or the end."""

PROBLEMS = (
    "not_an_object", "no_ph", "no_ts", "no_dur", "ts_not_a_number", "dur_not_a_number",
    "time_over_int64", "correlation_over_int64", "negative_dur",
)  # fmt: skip
"""Names of what is wrong with a record that was dropped, in the order of their counters."""
NOT_OBJECT, NO_PH, NO_TS, NO_DUR, BAD_TS, BAD_DUR, BIG_TIME, BIG_LINK, NEGATIVE = range(9)

_SEED = np.uint64(7)


@inlined
def _problem(fields: Int64) -> int:
    """The counter of what keeps a complete event from becoming a row, -1 for nothing."""
    for code, missing, bad in ((fields[TS_CODE], NO_TS, BAD_TS), (fields[DUR_CODE], NO_DUR, BAD_DUR)):
        if code == MISSING:
            return missing
        if code == NO_NUMBER:
            return bad
        if code == TOO_BIG:
            return BIG_TIME
    if fields[DUR] < 0:
        return NEGATIVE
    if fields[TS] > MAX_INT64 - fields[DUR]:  # a sum that overflows may be anything: LLVM counts on none
        return BIG_TIME
    return BIG_LINK if fields[LINK_CODE] == TOO_BIG else -1


@inlined
def _is_row(fields: Int64, kinds: Int64, problems: Int64) -> bool:
    """Whether a record is a complete event without fault; any other one is counted."""
    if fields[PH] != 88:
        if fields[PH]:
            kinds[fields[PH]] += 1
        else:
            problems[NO_PH] += 1
        return False
    wrong = _problem(fields)
    if wrong >= 0:
        problems[wrong] += 1
    return wrong < 0


@inlined
def _lane(fields: Int64, slots: Int32, keys: Int64, used: Int64) -> int:
    """Number of the lane key in ``fields``, put into ``keys`` if new; NO_ROOM where they are full."""
    last = used[1]
    if used[0]:
        same = True
        for k in range(LANE_FIELDS):
            same = same and keys[last, k] == fields[PID_KIND + k]
        if same:
            return last
    hashed = _SEED
    for k in range(LANE_FIELDS):
        hashed = mix(hashed, np.uint64(fields[PID_KIND + k]))
    mask = len(slots) - 1
    slot = np.int64(hashed) & mask
    while slots[slot] >= 0:
        known, same = slots[slot], True
        for k in range(LANE_FIELDS):
            same = same and keys[known, k] == fields[PID_KIND + k]
        if same:
            used[1] = known
            return known
        slot = (slot + 1) & mask
    new = used[0]
    if new >= len(keys):
        return NO_ROOM
    for k in range(LANE_FIELDS):
        keys[new, k] = fields[PID_KIND + k]
    slots[slot] = new
    used[0], used[1] = new + 1, new
    return new


@compiled
def scan(
    data: Bytes, low: int, high: int, state: Int64, kinds: Int64, problems: Int64, fields: Int64, pieces: Int64,
    names: Texts, args: Texts, streams: Int64, recent: Int32, lane_slots: Int32, lane_keys: Int64, lanes_used: Int64,
    start: Int64, dur: Int64, name: Int32, lane: Int32, link: Int64, arg: Int32,
) -> tuple[int, int]:  # fmt: skip
    """Read records of ``data[low:high]`` into the rows; returns (what stopped it, index of the first byte not used).

    ``state`` int64: what may come next, records so far, rows filled. ``kinds`` int64 (256,): records that are no complete
    event by the byte of their ``ph``; ``problems`` int64: dropped records by PROBLEMS.
    """
    expected, count, row = state[0], state[1], state[2]
    at, stopped = low, MORE
    while True:
        low = at
        at = skip_space(data, at)
        if at >= high:
            break
        byte = data[at]
        if expected == COMMA:
            if byte == 93:
                stopped, low = DONE, at + 1
                break
            if byte != 44:
                stopped = BROKEN
                break
            expected, at = VALUE, at + 1
            continue
        if byte == 93 and expected == FIRST:
            stopped, low = DONE, at + 1
            break
        if byte != 123:
            at = skip_value(data, at, high)
            if at < 0 or at >= high:
                stopped = at if at < 0 else MORE
                break
            problems[NOT_OBJECT] += 1
        else:
            if row >= len(start):
                stopped = ROOM
                break
            at = read_record(data, at, high, fields, pieces, names, args, streams, recent)
            if at < 0:
                stopped = MORE if at == SHORT else ROOM if at == NO_ROOM else at
                break
            if _is_row(fields, kinds, problems):
                on = _lane(fields, lane_slots, lane_keys, lanes_used)
                if on < 0:
                    stopped = ROOM
                    break
                start[row], dur[row] = fields[TS], fields[DUR]
                name[row], lane[row], arg[row] = fields[NAME], on, fields[ARG]
                link[row] = fields[LINK] if fields[LINK] > 0 else -1
                row += 1
        expected = COMMA
        count += 1
    state[0], state[1], state[2] = expected, count, row
    return stopped, low


def grown_lanes(keys: Int64) -> tuple[Int32, Int64]:
    """(slots, keys) with the same lane keys under the same numbers and room for as many again."""
    larger = np.zeros((2 * len(keys), LANE_FIELDS), dtype=np.int64)
    larger[: len(keys)] = keys
    slots = np.full(4 * len(keys), -1, dtype=np.int32)
    fields, used = np.zeros(FIELDS, dtype=np.int64), np.zeros(2, dtype=np.int64)
    for key in keys:
        fields[PID_KIND : PID_KIND + LANE_FIELDS] = key
        _lane(fields, slots, larger, used)
    return slots, larger


forget_stale(
    scan, *(module.__file__ for module in (arguments, places, intern, numbers, record, tokens, words)), __file__
)
