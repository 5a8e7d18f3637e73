"""The rows of a table's pages, compiled: from the cells of leaf pages to columns of integers and numbers of texts.

A row is a record: the length of its head, a type code for each column, then the values ("Database File Format", section
2.1). Columns that a record has not, and values of another kind than is asked for, are MISSING.
"""
# ruff: noqa: PLR0917, C901, PLR1714, SIM110 - compiled: numba takes arguments by position,
# makes no sets, and inlines what is in one function. A loop over bytes is one decision a byte.

from typing import Any

import numpy as np

from teller_core.data.compiled import compiled, forget_stale, inlined
from teller_core.data.table import UNKNOWN, Int32, Int64
from teller_core.ingest.scanning import intern, tokens, words
from teller_core.ingest.scanning.intern import Texts, number_of
from teller_core.ingest.scanning.tokens import Bytes, hash_bytes, mix

MISSING = UNKNOWN
"""No integer, or no text, where one was asked for."""
INTEGER, TEXT, NAME, ROW_ID = 0, 1, 2, 3
"""What is asked of a column. A NAME is a text without the ids that PyTorch's emit_nvtx writes into it."""
PAGE, CELL, ROW, DAMAGED, SPILLED, CUT = range(6)
"""Places in ``state``: page and cell to go on with, rows so far, cells that are broken, rows that reach into other pages,
and the bytes after which a text is cut."""
STATE = 6
MORE, ROOM, NO_LEAF = 0, 1, -1
"""What stopped a scan: the pages are done, something is full, a page is no leaf of a table."""
PIECES = 4
"""Pieces of one text that are kept: what stands before, between and behind the two ids that emit_nvtx writes."""
_LEAF = 13
Integer = Any
"""An int or an int64: compiled code knows one kind of integer."""
_SEED = np.uint64(7)
_SEQ, _OP_ID = (np.frombuffer(word, dtype=np.uint8) for word in (b"seq = ", b"op_id = "))


@inlined
def _varint(data: Bytes, at: Integer) -> tuple[Integer, Integer]:
    """(the integer at ``at``, of one to nine bytes, the index behind it)."""
    value = np.int64(0)
    for k in range(8):
        byte = np.int64(data[at + k])
        value = (value << 7) | (byte & 127)
        if byte < 128:
            return value, at + k + 1
    return (value << 8) | np.int64(data[at + 8]), at + 9


@inlined
def _whole(data: Bytes, at: Integer, size: Integer) -> Integer:
    """The big-endian integer of ``size`` bytes at ``at``, with its sign."""
    value = np.int64(data[at])
    if value > 127:
        value -= 256
    for k in range(1, size):
        value = (value << 8) | np.int64(data[at + k])
    return value


@inlined
def _length(code: Integer) -> Integer:
    """Bytes of a value of type ``code``; -1 for a code that no record has."""
    if code >= 12:
        return (code - 12) >> 1
    if code <= 4:
        return code
    if code == 5:
        return 6
    if code <= 7:
        return 8
    return 0 if code <= 9 else -1


@inlined
def _begins(data: Bytes, at: int, stop: int, word: Bytes) -> bool:
    if at + len(word) > stop:
        return False
    for k in range(len(word)):
        if data[at + k] != word[k]:
            return False
    return True


@compiled
def _cut_ids(data: Bytes, at: int, stop: int, pieces: Int64) -> int:
    """Put the pieces of the text without ``, seq = N`` and ``, op_id = N`` into ``pieces``; returns how many there are."""
    count, begin = 0, at
    while at < stop:
        if data[at] == 44 and at + 1 < stop and data[at + 1] == 32 and count < PIECES - 1:
            word = 0
            if _begins(data, at + 2, stop, _SEQ):
                word = len(_SEQ)
            elif _begins(data, at + 2, stop, _OP_ID):
                word = len(_OP_ID)
            after = at + 2 + word
            digits = after
            while word and digits < stop and 48 <= data[digits] <= 57:
                digits += 1
            if word and digits > after:
                pieces[2 * count], pieces[2 * count + 1] = begin, at
                count, at, begin = count + 1, digits, digits
                continue
        at += 1
    pieces[2 * count], pieces[2 * count + 1] = begin, stop
    return count + 1


@inlined
def _text(data: Bytes, at: Integer, stop: Integer, kind: Integer, texts: Texts, pieces: Int64) -> int:
    """Number of the text ``data[at:stop]``; intern.FULL where it does not fit."""
    pieces[0], pieces[1], count = at, stop, 1
    if kind == NAME:
        count = _cut_ids(data, at, stop, pieces)
    hashed = _SEED
    for k in range(count):
        hashed = hash_bytes(data, pieces[2 * k], pieces[2 * k + 1], hashed)
    return number_of(texts, hashed, data, pieces, count)


@inlined
def _value(data: Bytes, at: Integer, code: Integer) -> Integer:
    if 1 <= code <= 6:
        return _whole(data, at, _length(code))
    if code == 8 or code == 9:
        return np.int64(code - 8)
    return np.int64(MISSING)


@inlined
def _record(
    data: Bytes, at: Integer, stop: Integer, row_id: Integer, row: Integer, wanted: Int32, kinds: Int32, out: Int64,
    cut_at: Integer, texts: Texts, pieces: Int64,
) -> int:  # fmt: skip
    """Read the record ``data[at:stop]`` into row ``row`` of ``out``: 1, or 0 for a broken one, or intern.FULL."""
    size, code_at = _varint(data, at)
    codes_end, body, column, k = at + size, at + size, 0, 0
    if size < 1 or codes_end > stop:
        return 0
    while code_at < codes_end and k < len(wanted):
        code, code_at = _varint(data, code_at)
        length = _length(code)
        if code < 0 or length < 0 or length > stop - body:
            return 0
        if column == wanted[k]:
            if kinds[k] == INTEGER:
                out[k, row] = _value(data, body, code)
            elif kinds[k] == ROW_ID:
                out[k, row] = row_id
            elif code >= 13 and code & 1:
                number = _text(data, body, body + min(length, cut_at), kinds[k], texts, pieces)
                if number < 0:
                    return number
                out[k, row] = number
            else:
                out[k, row] = MISSING
            k += 1
        body += length
        column += 1
    while k < len(wanted):
        out[k, row] = row_id if kinds[k] == ROW_ID else np.int64(MISSING)
        k += 1
    return 1


@compiled
def scan(
    data: Bytes, size: int, usable: int, heads: Int64, state: Int64, wanted: Int32, kinds: Int32, out: Int64,
    spilled: Int64, texts: Texts, pieces: Int64,
) -> int:  # fmt: skip
    """Read the cells of the leaf pages in ``data`` into the columns ``out`` (one a wanted column); returns what stopped it.

    ``heads`` int64: where the head of each page begins in it; ``wanted`` int32: the columns, ascending; ``spilled`` int64
    (n, 5): for each row that goes on in other pages its row, its page's place in ``data``, where its record begins, how many
    bytes it has and the row's number: its columns are MISSING. A row is left out, and counted, where its cell is broken.
    """
    page, cell, row = state[PAGE], state[CELL], state[ROW]
    stopped = MORE
    while page < len(heads):
        base = page * size
        head, end = base + heads[page], base + usable
        if data[head] != _LEAF:
            return NO_LEAF
        cells = (np.int64(data[head + 3]) << 8) | np.int64(data[head + 4])
        if head + 8 + 2 * cells > end:
            return NO_LEAF
        while cell < cells:
            if row >= out.shape[1] or state[SPILLED] >= len(spilled):
                stopped = ROOM
                break
            at = head + 8 + 2 * cell
            at = base + ((np.int64(data[at]) << 8) | np.int64(data[at + 1]))
            if at < head + 8 + 2 * cells or at >= end:
                state[DAMAGED] += 1
                cell += 1
                continue
            payload, at = _varint(data, at)
            row_id, at = _varint(data, at)
            if payload > usable - 35:
                for k in range(len(wanted)):
                    out[k, row] = MISSING
                one = state[SPILLED]
                spilled[one, 0], spilled[one, 1], spilled[one, 2] = row, page, at
                spilled[one, 3], spilled[one, 4] = payload, row_id
                state[SPILLED] += 1
                row += 1
            elif payload < 1 or at + payload > end:
                state[DAMAGED] += 1
            else:
                done = _record(data, at, at + payload, row_id, row, wanted, kinds, out, state[CUT], texts, pieces)
                if done < 0:
                    stopped = ROOM
                    break
                state[DAMAGED] += 1 - done
                row += done
            cell += 1
        if stopped != MORE:
            break
        page, cell = page + 1, 0
    state[PAGE], state[CELL], state[ROW] = page, cell, row
    return stopped


@compiled
def number_keys(columns: Int64, out: Int32, slots: Int32, keys: Int64, used: Int64, low: int) -> int:
    """Give every row of ``columns`` (k, rows) from ``low`` the number of its values in ``keys``, new ones at the end.

    Returns the first row that was not done: ``keys`` is full there. ``slots``: -1 throughout at first, a power of two of
    them, at least twice as many as keys; ``used``: how many keys there are, and the last one found.
    """
    mask = len(slots) - 1
    fields = columns.shape[0]
    for row in range(low, columns.shape[1]):
        last, same = used[1], used[0] > 0
        for k in range(fields):
            same = same and keys[last, k] == columns[k, row]
        if same:
            out[row] = last
            continue
        hashed = _SEED
        for k in range(fields):
            hashed = mix(hashed, np.uint64(columns[k, row]))
        slot = np.int64(hashed) & mask
        found = -1
        while slots[slot] >= 0 and found < 0:
            known, same = slots[slot], True
            for k in range(fields):
                same = same and keys[known, k] == columns[k, row]
            if same:
                found = known
            slot = (slot + 1) & mask
        if found < 0:
            found = used[0]
            if found >= len(keys):
                return row
            for k in range(fields):
                keys[found, k] = columns[k, row]
            slots[slot] = found
            used[0] = found + 1
        out[row], used[1] = found, found
    return columns.shape[1]


forget_stale(scan, *(module.__file__ for module in (intern, tokens, words)), __file__)
