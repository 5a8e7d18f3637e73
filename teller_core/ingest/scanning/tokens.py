"""JSON tokens in a buffer of bytes, compiled.

Every buffer ends in ``PADDING`` quotation marks behind ``high``, its end: they stop any loop over a string, a number or
white space, so nothing is read outside the array however the bytes are broken. A function that returns an index at or
behind ``high`` has run out of bytes; a negative one is BROKEN or TOO_DEEP.
"""
# ruff: noqa: PLR1714, SIM110, C901 - compiled: numba takes arguments by position,
# makes no sets, and inlines what is in one function. A loop over bytes is one decision a byte.

import numpy as np
import numpy.typing as npt

from teller_core.data.compiled import compiled, inlined
from teller_core.ingest.scanning.words import load_word, low_zero_bytes

Bytes = npt.NDArray[np.uint8]

PADDING = 64
QUOTE = 34

MAX_NESTING = 60
"""Objects and lists within one another that a record may have: profilers write 4."""

BROKEN, TOO_DEEP = -1, -2
FINE, NO_NUMBER, TOO_BIG = 0, 1, 2

MAX_INT64 = 2**63 - 1
_LONGEST_LITERAL = 10
_LOW = np.uint64(0x0101010101010101)
_HIGH = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(0x2222222222222222)
_BACKSLASHES = np.uint64(0x5C5C5C5C5C5C5C5C)
_MIX, _MIX_LENGTH = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_SHIFT, _LAST_SHIFT, _ONE, _EIGHT = np.uint64(29), np.uint64(32), np.uint64(1), np.uint64(8)


@inlined
def skip_space(data: Bytes, at: int) -> int:
    """Index of the first byte from ``at`` that is no JSON white space."""
    while data[at] <= 32 and (data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9):
        at += 1
    return at


@inlined
def _marks(word: np.uint64) -> np.uint64:
    """Word with its lowest set bit in the first byte of ``word`` that is a quotation mark or a backslash."""
    quote, slash = word ^ _QUOTES, word ^ _BACKSLASHES
    return ((quote - _LOW) & ~quote | (slash - _LOW) & ~slash) & _HIGH


@inlined
def text_end(data: Bytes, at: int) -> int:
    """Index of the closing quotation mark of the string whose first byte is at ``at``."""
    while True:
        found = _marks(load_word(data, at))
        if found == 0:
            at += 8
            continue
        at += low_zero_bytes(found)
        if data[at] == QUOTE:
            return at
        at += 2


@inlined
def mix(state: np.uint64, word: np.uint64) -> np.uint64:
    """``state`` of a hash after eight more bytes."""
    state = (state ^ word) * _MIX
    return state ^ (state >> _SHIFT)


@inlined
def low_bytes(word: np.uint64, count: int) -> np.uint64:
    """``word`` with all but its ``count`` (0 to 7) lowest bytes cleared."""
    return word & ((_ONE << (_EIGHT * np.uint64(count))) - _ONE)


@inlined
def hash_bytes(data: Bytes, at: int, stop: int, state: np.uint64) -> np.uint64:
    """uint64 hash of ``data[at:stop]``, going on from ``state``."""
    length = stop - at
    while at + 8 <= stop:
        state = mix(state, load_word(data, at))
        at += 8
    state = mix(state, low_bytes(load_word(data, at), stop - at))
    state = (state ^ np.uint64(length)) * _MIX_LENGTH
    return state ^ (state >> _LAST_SHIFT)


@inlined
def same_bytes(left: Bytes, at: int, right: Bytes, from_: int, length: int) -> bool:
    """Whether ``length`` bytes of ``left`` from ``at`` equal those of ``right`` from ``from_``. Both have 8 bytes to spare."""
    done = 0
    while done + 8 <= length:
        if load_word(left, at + done) != load_word(right, from_ + done):
            return False
        done += 8
    differ = load_word(left, at + done) ^ load_word(right, from_ + done)
    return low_bytes(differ, length - done) == 0


@compiled
def _is_literal(data: Bytes, at: int, word: Bytes) -> bool:
    for i in range(len(word)):
        if data[at + i] != word[i]:
            return False
    return True


_TRUE, _FALSE, _NULL = (np.frombuffer(word, dtype=np.uint8) for word in (b"true", b"false", b"null"))
_NAN, _INFINITY = (np.frombuffer(word, dtype=np.uint8) for word in (b"NaN", b"Infinity"))


@compiled
def scalar_end(data: Bytes, at: int) -> int:
    """Index behind the number or the literal at ``at``, or BROKEN. NaN and Infinity pass: profilers write them."""
    first = data[at]
    if first == 116:
        return at + 4 if _is_literal(data, at, _TRUE) else BROKEN
    if first == 102:
        return at + 5 if _is_literal(data, at, _FALSE) else BROKEN
    if first == 110:
        return at + 4 if _is_literal(data, at, _NULL) else BROKEN
    if first == 78:
        return at + 3 if _is_literal(data, at, _NAN) else BROKEN
    if first == 45:
        at += 1
    if data[at] == 73:
        return at + 8 if _is_literal(data, at, _INFINITY) else BROKEN
    start = at
    while (
        48 <= data[at] <= 57 or data[at] == 46 or data[at] == 101 or data[at] == 69 or data[at] == 43 or data[at] == 45
    ):
        at += 1
    return at if at > start else BROKEN


@compiled
def skip_value(data: Bytes, at: int, high: int) -> int:
    """Index behind the JSON value at ``at`` (not white space): as the module says, or BROKEN, or TOO_DEEP."""
    depth, objects = 0, np.uint64(0)
    while at < high:
        byte = data[at]
        if byte == QUOTE:
            at = text_end(data, at + 1) + 1
        elif byte == 123 or byte == 91:
            if depth == MAX_NESTING:
                return TOO_DEEP
            objects = (objects << _ONE) | np.uint64(byte == 123)
            depth += 1
            at += 1
        elif byte == 125 or byte == 93:
            if depth == 0 or (objects & _ONE) != np.uint64(byte == 125):
                return BROKEN
            objects >>= _ONE
            depth -= 1
            at += 1
        elif depth > 0 and (byte == 44 or byte == 58):
            at += 1
        elif byte <= 32:
            after = skip_space(data, at)
            if depth == 0 or after == at:
                return BROKEN
            at = after
        else:
            after = scalar_end(data, at)
            if after < 0:
                return high if at + _LONGEST_LITERAL > high else BROKEN
            at = after
        if depth == 0:
            break
    return at
