"""What an archive says about a file in it, whatever kind of archive it is."""

from collections.abc import Iterator
from typing import NamedTuple

BLOCK = 1 << 18
"""Bytes that are held of a member at once."""


class Entry(NamedTuple):
    """A member: its name as it stands in the archive, its size in bytes, Unix ns when it was written last.

    ``why``: the reason for which it is not read, empty where it may be, ``folder`` for what holds no data of its own.
    """

    name: str
    size: int
    time: int
    why: str


class Member(NamedTuple):
    """An entry and its bytes, which can be read once, before the next member is asked for."""

    entry: Entry
    body: Iterator[bytes]
    at: int
    """Where it stands in the archive as stored: how far a walk over all members is."""
