"""Tables of text in compressed pieces, so that reading a few names does not cost unpacking all of them."""

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import zstandard

from teller_core.store.chunks import LEVEL, damaged, unpacked

PIECE = 512
"""Strings in one piece."""
LARGEST_PIECE = 1 << 30
"""Bytes. A piece that claims more is damaged."""
_HEADER = struct.Struct("<II")


def pieces_of(strings: Sequence[str], level: int = LEVEL) -> Iterator[bytes]:
    """``strings`` in order, PIECE at a time: the lengths in bytes, then the text.

    Half of a surrogate pair, which UTF-8 proper cannot hold, is kept: names come out of other programs as they are.
    """
    press = zstandard.ZstdCompressor(level=level)
    for low in range(0, len(strings), PIECE):
        texts = [text.encode("utf-8", "surrogatepass") for text in strings[low : low + PIECE]]
        lengths = np.array([len(text) for text in texts], dtype="<u4").tobytes()
        raw = b"".join([lengths, *texts])
        yield _HEADER.pack(len(texts), len(raw)) + press.compress(raw)


def unpack(blob: bytes, wanted: Sequence[int] | None, unpress: zstandard.ZstdDecompressor) -> list[str]:
    """The strings of one piece at the positions ``wanted`` within it, or all. Raises StoreError for a damaged piece."""
    return _strings(*_opened(blob, unpress), wanted)


def matching(blob: bytes, words: Sequence[str], unpress: zstandard.ZstdDecompressor) -> Iterator[tuple[int, str]]:
    """(position, string) of those of one piece that hold all of ``words``, which are case-folded. A piece that lacks one of
    them everywhere is not taken apart: most are such. Raises StoreError for a damaged piece.
    """
    count, raw = _opened(blob, unpress)
    folded = raw.decode("utf-8", "replace").casefold()  # the lengths before the text, and halves of pairs, hold no word
    if not all(word in folded for word in words):
        return
    for place, text in enumerate(_strings(count, raw, None)):
        folded = text.casefold()
        if all(word in folded for word in words):
            yield place, text


def _opened(blob: bytes, unpress: zstandard.ZstdDecompressor) -> tuple[int, bytes]:
    """How many strings a piece holds, and their lengths and text."""
    try:
        count, size = _HEADER.unpack_from(blob)
        if count > PIECE or size > LARGEST_PIECE:
            raise damaged()
        return count, unpacked(memoryview(blob)[_HEADER.size :], size, unpress)
    except (struct.error, zstandard.ZstdError) as error:
        raise damaged() from error


def _strings(count: int, raw: bytes, wanted: Sequence[int] | None) -> list[str]:
    try:
        stop = (np.cumsum(np.frombuffer(raw, dtype="<u4", count=count), dtype=np.int64) + 4 * count).tolist()
        start = [4 * count, *stop[:-1]]
        places = range(count) if wanted is None else wanted
        return [raw[start[i] : stop[i]].decode("utf-8", "surrogatepass") for i in places]
    except (UnicodeDecodeError, IndexError, ValueError) as error:
        raise damaged() from error
