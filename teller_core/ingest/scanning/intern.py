"""Tables of distinct byte strings, compiled: a string goes in, a small number comes out.

A table is a tuple of arrays (see :func:`new_texts`); nothing in it moves while a buffer is scanned. When a table is full
the lookup answers FULL, the caller doubles it with :func:`grown` and asks again.
"""

import numpy as np
import numpy.typing as npt

from teller_core.data.compiled import compiled
from teller_core.data.table import Int64
from teller_core.ingest.scanning.tokens import Bytes, same_bytes

Texts = tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32], Int64, Int64, npt.NDArray[np.uint64], Bytes, Int64]
"""hash and number by slot; offset, length and hash by number; the bytes; [count, bytes used]."""

FULL = -1
SPLIT = 0xFF
"""Stands between the pieces of a string that was put in piece by piece. No UTF-8 text holds it."""

_SPARE = 8


def new_texts(slots: int = 1 << 12, room: int = 1 << 18) -> Texts:
    """An empty table for ``slots / 2`` strings (``slots`` a power of two) of ``room`` bytes together."""
    return (
        np.zeros(slots, dtype=np.uint64),
        np.full(slots, FULL, dtype=np.int32),
        np.zeros(slots // 2, dtype=np.int64),
        np.zeros(slots // 2, dtype=np.int64),
        np.zeros(slots // 2, dtype=np.uint64),
        np.zeros(room + _SPARE, dtype=np.uint8),
        np.zeros(2, dtype=np.int64),
    )


def grown(texts: Texts, room: int) -> Texts:
    """The same strings under the same numbers, with room for as many again and for ``room`` more bytes."""
    hashes, _, offset, length, hash_of, content, used = texts
    slots = len(hashes) * 2 if used[0] * 4 >= len(hashes) else len(hashes)
    larger = new_texts(slots, max(len(content) - _SPARE, 2 * int(used[1]), int(used[1]) + room))
    count = int(used[0])
    for old, new in zip((offset, length, hash_of, content, used), larger[2:], strict=True):
        new[: len(old)] = old
    _fill_slots(larger[0], larger[1], larger[4], count)
    return larger


@compiled
def _fill_slots(
    hashes: npt.NDArray[np.uint64], ids: npt.NDArray[np.int32], hash_of: npt.NDArray[np.uint64], count: int
) -> None:
    mask = len(hashes) - 1
    for i in range(count):
        slot = np.int64(hash_of[i]) & mask
        while ids[slot] >= 0:
            slot = (slot + 1) & mask
        hashes[slot] = hash_of[i]
        ids[slot] = i


@compiled
def number_of(texts: Texts, hashed: np.uint64, data: Bytes, pieces: Int64, count: int) -> int:
    """Number of the string made of ``count`` pieces of ``data``, put in if new; FULL where there is no room for it.

    ``pieces[2 * k]`` and ``pieces[2 * k + 1]`` are the first index and the index behind piece ``k``.
    """
    hashes, ids, offset, length, hash_of, content, used = texts
    total = count - 1
    for k in range(count):
        total += pieces[2 * k + 1] - pieces[2 * k]
    mask = len(hashes) - 1
    slot = np.int64(hashed) & mask
    while ids[slot] >= 0:
        known = ids[slot]
        if (
            hashes[slot] == hashed
            and length[known] == total
            and _same_pieces(content, int(offset[known]), data, pieces, count)
        ):
            return known
        slot = (slot + 1) & mask
    new, at = used[0], used[1]
    if new >= len(offset) or at + total + _SPARE > len(content):
        return FULL
    hashes[slot], ids[slot] = hashed, new
    offset[new], length[new], hash_of[new] = at, total, hashed
    for k in range(count):
        if k:
            content[at] = SPLIT
            at += 1
        for i in range(pieces[2 * k], pieces[2 * k + 1]):
            content[at] = data[i]
            at += 1
    used[0], used[1] = new + 1, at
    return new


@compiled
def _same_pieces(content: Bytes, at: int, data: Bytes, pieces: Int64, count: int) -> bool:
    for k in range(count):
        if k:
            if content[at] != SPLIT:
                return False
            at += 1
        size = pieces[2 * k + 1] - pieces[2 * k]
        if not same_bytes(content, at, data, pieces[2 * k], size):
            return False
        at += size
    return True


def strings(texts: Texts) -> list[bytes]:
    """The strings of the table, in the order of their numbers."""
    _, _, offset, length, _, content, used = texts
    whole, count = content[: int(used[1])].tobytes(), int(used[0])
    ends = offset[:count] + length[:count]
    return [whole[a:b] for a, b in zip(offset[:count].tolist(), ends.tolist(), strict=True)]
