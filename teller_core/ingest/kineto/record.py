"""One record of a trace, compiled: from the bytes of an object to its fields."""
# ruff: noqa: PLR0917, PLR1714, SIM110, PLR0911 - compiled: numba takes arguments by position,
# makes no sets, and inlines what is in one function. A loop over bytes is one decision a byte.

import numpy as np

from teller_core.data.compiled import compiled, inlined
from teller_core.data.table import Int32, Int64
from teller_core.ingest.kineto.arguments import read_arguments
from teller_core.ingest.kineto.fields import (
    ABSENT,
    ARG,
    CAT,
    DUR,
    DUR_CODE,
    LINK,
    MISSING,
    NAME,
    NO_ROOM,
    NUMBER,
    PH,
    PID_KIND,
    SHORT,
    STREAM,
    TEXT,
    TID_KIND,
    TS,
    TS_CODE,
    key_word,
    value_start,
)
from teller_core.ingest.kineto.numbers import decimal_ns, integer
from teller_core.ingest.scanning.intern import FULL, Texts, number_of
from teller_core.ingest.scanning.tokens import (
    BROKEN,
    FINE,
    QUOTE,
    Bytes,
    hash_bytes,
    low_bytes,
    scalar_end,
    skip_space,
    skip_value,
    text_end,
)
from teller_core.ingest.scanning.words import load_word

_PH, _TS, _CAT, _PID, _TID, _DUR = (key_word(k) for k in (b'ph"', b'ts"', b'cat"', b'pid"', b'tid"', b'dur"'))
_NAME, _ARGS = key_word(b'name"'), key_word(b'args"')
_SEED = np.uint64(7)


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
    at = value_start(data, text_end(data, at + 1) + 1, high)
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
        return read_arguments(data, at, high, fields, pieces, args, streams, recent)
    return skip_value(data, at, high)


@inlined
def read_record(
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
