"""Messages of Protocol Buffers, as far as files need them: fields by number, and messages one after another.

The encoding is that of protobuf.dev, "Encoding": a field is a varint of number and wire type, then a varint (0), 8 bytes (1),
a varint of a length and as many bytes (2), or 4 bytes (5). Streams put a varint of its length before each message.
"""

from collections.abc import Iterator
from pathlib import Path

from teller_core.errors import FormatError, LimitError
from teller_core.ingest.files.source import open_source

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_MESSAGE = 64 << 20
"""Bytes of one message: a node lists its tensors, and takes kilobytes."""
BLOCK = 1 << 20
LONGEST_VARINT = 10
Field = tuple[int, int, int | bytes]
"""Number, wire type, and the value: an unsigned integer, or bytes."""


class Damaged(ValueError):
    """Bytes that are no message."""


def fields(data: bytes) -> Iterator[Field]:
    """The fields of a message in order. Errors: Damaged."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise Damaged
        if wire == VARINT:
            value, at = varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            size, at = varint(data, at)
        else:
            size = {FIXED64: 8, FIXED32: 4}.get(wire, -1)
        if size < 0 or at + size > len(data):
            raise Damaged
        yield number, wire, data[at : at + size]
        at += size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """(the unsigned integer at ``at``, the index behind it). Errors: Damaged."""
    value = 0
    for k in range(LONGEST_VARINT):
        if at + k >= len(data):
            raise Damaged
        byte = data[at + k]
        value |= (byte & 0x7F) << (7 * k)
        if byte < 0x80:
            return value & (2**64 - 1), at + k + 1
    raise Damaged


def varints(value: int | bytes) -> list[int]:
    """The values of a repeated integer field: one, or many packed into bytes. Errors: Damaged."""
    if isinstance(value, int):
        return [value]
    found: list[int] = []
    at = 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


def signed(value: int) -> int:
    """An int32 or int64, which a varint carries as 64 bits."""
    return value - 2**64 if value >= 2**63 else value


def messages(path: Path) -> Iterator[tuple[bytes, int]]:
    """Each message of a stream at ``path``, and the bytes of the file used so far.

    Errors: FormatError for a stream that ends inside a message or has no lengths, LimitError over MAX_MESSAGE; those of
    :func:`open_source`.
    """
    room, rest = bytearray(BLOCK), b""
    with open_source(path) as source:
        while got := source.fill(memoryview(room)):
            rest += bytes(room[:got])
            at = 0
            while (found := _message(path, rest, at)) is not None:
                message, at = found
                yield message, source.on_disk
            rest = rest[at:]
    if rest:
        raise FormatError(path.name, "its last message ends early", "Copy or record the file again")


def _message(path: Path, data: bytes, at: int) -> tuple[bytes, int] | None:
    """The message at ``at`` and the index behind it; None where it goes on beyond ``data``."""
    try:
        size, begin = varint(data, at)
    except Damaged:
        if len(data) - at < LONGEST_VARINT:
            return None
        raise FormatError(path.name, "it holds no length where a message begins", "Copy or record it again") from None
    if size > MAX_MESSAGE:
        raise LimitError(path.name, f"a message is over {MAX_MESSAGE >> 20} MiB", "Check the file")
    return (data[begin : begin + size], begin + size) if begin + size <= len(data) else None
