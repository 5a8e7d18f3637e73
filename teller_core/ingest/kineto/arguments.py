"""The arguments of an event, compiled: their text without what differs at every event, and the ids taken out of it."""
# ruff: noqa: PLR0917, PLR1714, C901, PLR0911, PLR0912 - compiled: numba takes arguments by position,
# makes no sets, and inlines what is in one function. A loop over bytes is one decision a byte.

import numpy as np

from teller_core.data.compiled import compiled, inlined
from teller_core.data.table import Int32, Int64
from teller_core.ingest.kineto.fields import (
    ABSENT,
    ARG,
    LINK,
    LINK_CODE,
    NAME,
    NO_ROOM,
    SHORT,
    STREAM,
    key_word,
    value_start,
)
from teller_core.ingest.kineto.numbers import integer
from teller_core.ingest.scanning.intern import FULL, SPLIT, Texts, number_of
from teller_core.ingest.scanning.tokens import (
    BROKEN,
    FINE,
    QUOTE,
    Bytes,
    hash_bytes,
    low_bytes,
    same_bytes,
    scalar_end,
    skip_space,
    skip_value,
    text_end,
)
from teller_core.ingest.scanning.words import load_word, low_zero_bytes

MAX_PIECES = 32
"""Pieces that volatile members cut the text of the arguments into; those beyond stay in it."""

VOLATILE = (
    "correlation", "External id", "external id", "external ts", "Python id", "Python parent id", "Ev Idx",
    "Record function id", "Sequence number", "Profiler Event Index", "memory bandwidth (GB/s)",
)  # fmt: skip
"""Arguments that differ at every event, or follow from the others: they are taken out of the text of the arguments."""

_VOLATILE_TEXT = np.frombuffer("".join(f'{key}"'.ljust(32) for key in VOLATILE).encode(), dtype=np.uint8)
_VOLATILE_SIZE = np.array([len(key) + 1 for key in VOLATILE], dtype=np.int64)
_VOLATILE_HEAD = np.array([key_word(f'{key}"'.encode()) for key in VOLATILE], dtype=np.uint64)
_STREAM = key_word(b'stream"')
_SEED = np.uint64(11)


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
            at = value_start(data, text_end(data, at + 1) + 1, high)
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
    count, joined, hashed = 0, False, _SEED
    at = skip_space(data, at + 1)
    if at < high and data[at] == 125:
        return at + 1
    while True:
        if at >= high:
            return SHORT
        if data[at] != QUOTE:
            return BROKEN
        key, word = at, load_word(data, at + 1)
        at = value_start(data, text_end(data, at + 1) + 1, high)
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
def read_arguments(
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
