"""The list of events of a Chrome trace, from bytes to columns, compiled. :mod:`kineto` says what the columns mean.

One record at a time is read into ``fields``; a complete event then becomes a row. A record that ends behind the buffer, or
finds a table full, changes nothing but tables of strings, so it is read again once there is more.
"""
# ruff: noqa: PLR0917, PLR1714, SIM110, C901, PLR0911, PLR0912, PLR0915 - compiled: numba takes arguments by position,
# makes no sets, and inlines what is in one function. A loop over bytes is one decision a byte.

import numpy as np

from teller_core.data.compiled import compiled, forget_stale, inlined
from teller_core.data.table import Int32, Int64
from teller_core.ingest import intern, numbers, tokens, words
from teller_core.ingest.intern import FULL, SPLIT, Texts, number_of
from teller_core.ingest.numbers import decimal_ns, integer
from teller_core.ingest.tokens import (
    BROKEN,
    FINE,
    MAX_INT64,
    NO_NUMBER,
    QUOTE,
    TOO_BIG,
    Bytes,
    hash_bytes,
    low_bytes,
    mix,
    same_bytes,
    scalar_end,
    skip_space,
    skip_value,
    text_end,
)
from teller_core.ingest.words import load_word, low_zero_bytes

MORE, DONE, ROOM = 0, 1, 2
"""What stopped a scan besides BROKEN and TOO_DEEP: the bytes ran out, the list is closed, a table or the rows are full."""

SHORT, NO_ROOM = -4, -3
ABSENT = -(2**63)

FIRST, VALUE, COMMA = 0, 1, 2
"""What may come next in the list: a record or the end, a record, a comma or the end."""

PH, TS, TS_CODE, DUR, DUR_CODE, NAME, PID_KIND, PID, TID_KIND, TID, STREAM, CAT, LINK, LINK_CODE, ARG, FIELDS = range(
    16
)
LANE_FIELDS = 6
"""A lane key: PID_KIND, PID, TID_KIND, TID, STREAM, CAT of ``fields``."""
NUMBER, TEXT, MISSING = 0, 1, 3
"""What PID and TID hold: a number, a string's number, nothing."""

PROBLEMS = (
    "not_an_object", "no_ph", "no_ts", "no_dur", "ts_not_a_number", "dur_not_a_number",
    "time_over_int64", "correlation_over_int64", "negative_dur",
)  # fmt: skip
"""Names of what is wrong with a record that was dropped, in the order of their counters."""
NOT_OBJECT, NO_PH, NO_TS, NO_DUR, BAD_TS, BAD_DUR, BIG_TIME, BIG_LINK, NEGATIVE = range(9)

MAX_PIECES = 32
_SEED, _ARG_SEED = np.uint64(7), np.uint64(11)


def _key(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text[:8].ljust(8, b"\0"), "little"))


_PH, _TS, _CAT, _PID, _TID, _DUR = (_key(k) for k in (b'ph"', b'ts"', b'cat"', b'pid"', b'tid"', b'dur"'))
_NAME, _ARGS = _key(b'name"'), _key(b'args"')
_STREAM = _key(b'stream"')

VOLATILE = (
    "correlation", "External id", "external id", "external ts", "Python id", "Python parent id", "Ev Idx",
    "Record function id", "Sequence number", "Profiler Event Index", "memory bandwidth (GB/s)",
)  # fmt: skip
"""Arguments that differ at every event, or follow from the others: they are taken out of the text of the arguments."""
_VOLATILE_TEXT = np.frombuffer("".join(f'{key}"'.ljust(32) for key in VOLATILE).encode(), dtype=np.uint8)
_VOLATILE_SIZE = np.array([len(key) + 1 for key in VOLATILE], dtype=np.int64)
_VOLATILE_HEAD = np.array([_key(f'{key}"'.encode()) for key in VOLATILE], dtype=np.uint64)


@inlined
def _volatile(data: Bytes, at: int, word: np.uint64) -> int:
    """Place in VOLATILE of the key whose first byte is at ``at`` and whose first 8 bytes are ``word``; -1 if not there."""
    for i in range(len(_VOLATILE_SIZE)):
        size = _VOLATILE_SIZE[i]
        if size < 8:
            if low_bytes(word, size) == _VOLATILE_HEAD[i]:
                return i
        elif word == _VOLATILE_HEAD[i] and same_bytes(data, at, _VOLATILE_TEXT, 32 * i, size):
            return i
    return -1


@inlined
def _value_start(data: Bytes, at: int, high: int) -> int:
    """Index of the value whose key ended before ``at``; SHORT or BROKEN."""
    at = skip_space(data, at)
    if at >= high:
        return SHORT
    if data[at] != 58:
        return BROKEN
    at = skip_space(data, at + 1)
    return at if at < high else SHORT


@inlined
def _text(data: Bytes, at: int, high: int, names: Texts, pieces: Int64) -> tuple[int, int]:
    """(number of the string or of the scalar's text at ``at``, index behind it). A list or an object counts as ""."""
    first = data[at]
    if first == 123 or first == 91:
        return 0, skip_value(data, at, high)
    if first == QUOTE:
        pieces[0], pieces[1] = at + 1, text_end(data, at + 1)
        after = pieces[1] + 1
    else:
        after = scalar_end(data, at)
        pieces[0], pieces[1] = at, after
    if after < 0 or after >= high:
        return 0, skip_value(data, at, high)
    number = number_of(names, hash_bytes(data, pieces[0], pieces[1], _SEED), data, pieces, 1)
    return number, (after if number != FULL else NO_ROOM)


@compiled
def _plain_integer(data: Bytes, at: int, stop: int) -> bool:
    """Whether the string is an integer as Python writes it, of at most 18 digits."""
    negative = data[at] == 45
    if negative:
        at += 1
    if at == stop or stop - at > 18 or (data[at] == 48 and (negative or stop - at > 1)):
        return False
    for i in range(at, stop):
        if data[i] < 48 or data[i] > 57:
            return False
    return True


@inlined
def _identity(data: Bytes, at: int, high: int, names: Texts, pieces: Int64, fields: Int64, kind: int) -> int:
    """Put the process or thread at ``at`` into ``fields[kind]`` and ``[kind + 1]``; returns the index behind it.

    12 and "12" are one process: old profilers wrote one or the other, at times in one file.
    """
    quoted = data[at] == QUOTE
    value, after, code = integer(data, at + quoted)
    if quoted:
        if code == FINE and data[after] == QUOTE and _plain_integer(data, at + 1, after):
            fields[kind], fields[kind + 1] = NUMBER, value
            return after + 1
    elif code == FINE:
        fields[kind], fields[kind + 1] = NUMBER, value
        return after
    number, after = _text(data, at, high, names, pieces)
    fields[kind], fields[kind + 1] = TEXT, number
    return after


@inlined
def _take_volatile(data: Bytes, at: int, high: int, which: int, fields: Int64) -> int:
    """Index behind the scalar at ``at``, the value of argument VOLATILE[which]."""
    if which == 0:
        value, after, code = integer(data, at)
        fields[LINK], fields[LINK_CODE] = value, code
        if code == FINE:
            return after
    after = scalar_end(data, at)
    return skip_value(data, at, high) if after < 0 else after


@inlined
def _matching(content: Bytes, at: int, stop: int, data: Bytes, there: int, high: int) -> int:
    """Length of the piece of ``content[at:stop]`` that starts at ``at``, if ``data`` has the same at ``there``; else 0."""
    done = 0
    while there + done < high:
        differ = load_word(content, at + done) ^ load_word(data, there + done)
        same = 8 if differ == 0 else low_zero_bytes(differ)
        done += same
        if at + done >= stop:
            done = stop - at
            break
        if same < 8:
            if content[at + done] != SPLIT:
                return 0
            break
    if there + done >= high:
        return 0
    byte = data[there + done]
    return done if byte == 44 or byte == 125 or byte <= 32 else 0


@inlined
def _expected_arguments(data: Bytes, at: int, high: int, fields: Int64, args: Texts, guess: int) -> int:
    """Index behind the arguments at ``at`` if their text is string ``guess`` of ``args``; BROKEN if it is not."""
    content, there = args[5], args[2][guess]
    stop = there + args[3][guess]
    at = skip_space(data, at + 1)
    while at < high and data[at] == QUOTE:
        size = _matching(content, there, stop, data, at, high) if there < stop else 0
        if size:
            there += size + 1
            at += size
        else:
            word = load_word(data, at + 1)
            which = _volatile(data, at + 1, word)
            if which < 0:
                return BROKEN
            at = _value_start(data, text_end(data, at + 1) + 1, high)
            if at < 0 or data[at] == QUOTE or data[at] == 123 or data[at] == 91:
                return BROKEN
            at = _take_volatile(data, at, high, which, fields)
            if at < 0:
                return BROKEN
        at = skip_space(data, at)
        if data[at] == 125:
            return at + 1 if there > stop and at < high else BROKEN
        if data[at] != 44:
            return BROKEN
        at = skip_space(data, at + 1)
    return BROKEN


@compiled
def _arguments(data: Bytes, at: int, high: int, fields: Int64, pieces: Int64, args: Texts, streams: Int64) -> int:
    """Index behind the object of arguments at ``at``; its text without volatile members goes into ``args``."""
    count, joined, hashed = 0, False, _ARG_SEED
    at = skip_space(data, at + 1)
    if at < high and data[at] == 125:
        return at + 1
    while True:
        if at >= high:
            return SHORT
        if data[at] != QUOTE:
            return BROKEN
        key, word = at, load_word(data, at + 1)
        at = _value_start(data, text_end(data, at + 1) + 1, high)
        if at < 0:
            return at
        scalar = data[at] != QUOTE and data[at] != 123 and data[at] != 91
        which = _volatile(data, key + 1, word) if scalar else -1
        if which >= 0:
            at = _take_volatile(data, at, high, which, fields)
            joined = False
        else:
            if scalar and low_bytes(word, 7) == _STREAM:
                value, _, code = integer(data, at)
                fields[STREAM] = value if code == FINE else ABSENT
            at = skip_value(data, at, high)
            if not joined and count < MAX_PIECES:
                pieces[2 * count] = key
                count += 1
            pieces[2 * count - 1] = at
            joined = True
        if at < 0:
            return at
        at = skip_space(data, at)
        if at >= high:
            return SHORT
        if data[at] == 125:
            break
        if data[at] != 44:
            return BROKEN
        at = skip_space(data, at + 1)
    if count:
        for k in range(count):
            hashed = hash_bytes(data, pieces[2 * k], pieces[2 * k + 1], hashed)
        number = number_of(args, hashed, data, pieces, count)
        if number == FULL:
            return NO_ROOM
        fields[ARG] = number
        streams[number] = fields[STREAM]
    return at + 1


@inlined
def _any_arguments(
    data: Bytes, at: int, high: int, fields: Int64, pieces: Int64, args: Texts, streams: Int64, recent: Int32
) -> int:
    """As :func:`_arguments`, tried first against the arguments that the last event of this name had."""
    guess = int(recent[fields[NAME]])
    fields[ARG], fields[LINK], fields[LINK_CODE], fields[STREAM] = -1, -1, FINE, ABSENT
    if guess >= 0:
        after = _expected_arguments(data, at, high, fields, args, guess)
        if after >= 0:
            fields[ARG], fields[STREAM] = guess, streams[guess]
            return after
        fields[LINK], fields[LINK_CODE] = -1, FINE
    after = _arguments(data, at, high, fields, pieces, args, streams)
    if after >= 0:
        recent[fields[NAME]] = fields[ARG]
    return after


@inlined
def _time(data: Bytes, at: int, high: int, fields: Int64, which: int) -> int:
    """Put the time at ``at`` and its code into ``fields[which]`` and ``[which + 1]``; returns the index behind it."""
    value, after, code = decimal_ns(data, at)
    fields[which], fields[which + 1] = value, code
    return after if code == FINE else skip_value(data, at, high)


@inlined
def _phase(data: Bytes, at: int, high: int, fields: Int64) -> int:
    if data[at] == QUOTE and data[at + 1] != QUOTE and data[at + 1] != 92 and data[at + 2] == QUOTE:
        fields[PH] = data[at + 1]
        return at + 3
    fields[PH] = 255
    return skip_value(data, at, high)


@inlined
def _field(
    data: Bytes,
    at: int,
    high: int,
    fields: Int64,
    pieces: Int64,
    names: Texts,
    args: Texts,
    streams: Int64,
    recent: Int32,
) -> int:
    """Read the member of a record whose key is at ``at`` into ``fields``; returns the index behind it."""
    word = load_word(data, at + 1)
    three, four = low_bytes(word, 3), low_bytes(word, 4)
    at = _value_start(data, text_end(data, at + 1) + 1, high)
    if at < 0:
        return at
    if three == _PH:
        return _phase(data, at, high, fields)
    if three == _TS:
        return _time(data, at, high, fields, TS)
    if four == _DUR:
        return _time(data, at, high, fields, DUR)
    if four == _PID:
        return _identity(data, at, high, names, pieces, fields, PID_KIND)
    if four == _TID:
        return _identity(data, at, high, names, pieces, fields, TID_KIND)
    if four == _CAT:
        fields[CAT], at = _text(data, at, high, names, pieces)
        return at
    five = low_bytes(word, 5)
    if five == _NAME:
        fields[NAME], at = _text(data, at, high, names, pieces)
        return at
    if five == _ARGS and data[at] == 123:
        return _any_arguments(data, at, high, fields, pieces, args, streams, recent)
    return skip_value(data, at, high)


@inlined
def _record(
    data: Bytes,
    at: int,
    high: int,
    fields: Int64,
    pieces: Int64,
    names: Texts,
    args: Texts,
    streams: Int64,
    recent: Int32,
) -> int:
    """Read the object at ``at`` into ``fields``; returns the index behind it, or SHORT, NO_ROOM, BROKEN, TOO_DEEP."""
    fields[:] = 0
    fields[TS_CODE], fields[DUR_CODE] = MISSING, MISSING
    fields[PID_KIND], fields[TID_KIND] = MISSING, MISSING
    fields[STREAM], fields[LINK], fields[ARG] = ABSENT, -1, -1
    at = skip_space(data, at + 1)
    if at < high and data[at] == 125:
        return at + 1
    while at < high:
        if data[at] != QUOTE:
            return BROKEN
        at = _field(data, at, high, fields, pieces, names, args, streams, recent)
        if at < 0:
            return at
        at = skip_space(data, at)
        if at >= high:
            break
        if data[at] == 125:
            return at + 1
        if data[at] != 44:
            return BROKEN
        at = skip_space(data, at + 1)
    return SHORT


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
            at = _record(data, at, high, fields, pieces, names, args, streams, recent)
            if at < 0:
                stopped = MORE if at == SHORT else ROOM if at == NO_ROOM else at
                break
            if fields[PH] != 88:
                if fields[PH]:
                    kinds[fields[PH]] += 1
                else:
                    problems[NO_PH] += 1
            else:
                wrong = _problem(fields)
                if wrong >= 0:
                    problems[wrong] += 1
                else:
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


@compiled
def squeeze(content: Bytes, offset: Int64, length: Int64, count: int) -> None:
    """Take white space outside strings out of the JSON members in ``content``, in place; SPLIT becomes a comma."""
    for i in range(count):
        at, put, stop, inside = offset[i], offset[i], offset[i] + length[i], False
        while at < stop:
            byte = content[at]
            if inside:
                if byte == 92 and at + 1 < stop:
                    content[put] = byte
                    put += 1
                    at += 1
                    byte = content[at]
                elif byte == QUOTE:
                    inside = False
            elif byte == QUOTE:
                inside = True
            elif byte == SPLIT:
                byte = 44
            at += 1
            if inside or byte > 32:
                content[put] = byte
                put += 1
        length[i] = put - offset[i]


forget_stale(squeeze, words.__file__, tokens.__file__, numbers.__file__, intern.__file__, __file__)
