"""A SQLite database as pages of a file: found, bounded and handed out in order, without a database engine.

Nothing in such a file is run (no view, no trigger, no function of a schema), nothing is written beside it, and no journal
is played back. All pages together are visited a few times at most: a file whose pages point in circles costs what its size
allows.
The layout is that of "Database File Format", sqlite.org/fileformat2.html.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import BinaryIO, cast

import numpy as np

from teller_core.data.table import Int64
from teller_core.errors import FormatError
from teller_core.ingest.files.source import ReadInto
from teller_core.ingest.scanning.tokens import PADDING, Bytes

MAGIC = b"SQLite format 3\0"
HEADER = 100
LEAF, INTERIOR = 13, 5
"""Kinds of pages of a table. Those of an index, and of a table without row ids, are not read."""
MAX_DEPTH = 20
BATCH = 1 << 20
"""Bytes of pages that are in memory at once."""
VISITS = 3
"""How often the pages of a file may be visited altogether: small tables are read, and counted."""
ENCODINGS = {0: "utf-8", 1: "utf-8", 2: "utf-16-le", 3: "utf-16-be"}
AGAIN = "Export or copy the file again"


@dataclass
class Pages:
    """An open database. ``left``: pages that may still be visited; ``read``: bytes handed out."""

    file: BinaryIO
    name: str
    size: int
    usable: int
    count: int
    encoding: str
    left: int
    read: int = 0

    def broken(self) -> FormatError:
        """What is raised where the pages contradict one another."""
        return FormatError(self.name, "its pages do not hang together", AGAIN)

    def page(self, number: int) -> bytes:
        """The bytes of one page, counted from 1. Errors: FormatError where there is none."""
        if not 1 <= number <= self.count or self.left <= 0:
            raise self.broken()
        self.left -= 1
        self.file.seek((number - 1) * self.size)
        content = _read(self.file, self.size)
        if len(content) < self.size:
            raise self.broken()
        return content


def open_pages(file: BinaryIO, name: str, size: int) -> Pages:
    """The database in ``file`` of ``size`` bytes. Errors: FormatError where its head is wrong or its end is missing."""
    file.seek(0)
    head = _read(file, HEADER)
    page = int.from_bytes(head[16:18], "big")
    page = 1 << 16 if page == 1 else page
    usable = page - head[20] if len(head) == HEADER else 0
    encoding = ENCODINGS.get(int.from_bytes(head[56:60], "big"))
    if not head.startswith(MAGIC) or page < 512 or page & (page - 1) or usable < 480 or encoding is None:
        raise FormatError(name, "the head of the database is damaged", AGAIN)
    count = size // page
    counted = int.from_bytes(head[28:32], "big") if head[24:28] == head[92:96] else 0
    if counted > count:
        raise FormatError(name, "the database ends early", AGAIN)
    return Pages(file, name, page, usable, count, encoding, VISITS * count)


def _read(file: BinaryIO, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := file.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def leaves(pages: Pages, root: int) -> Int64:
    """The numbers of the pages that hold the rows of the table at ``root``, in the order of its rows."""
    level = np.array([root], dtype=np.int64)
    for _ in range(MAX_DEPTH):
        first = pages.page(int(level[0]))
        kind = first[_head(int(level[0]))]
        if kind == LEAF:
            pages.left += 1  # it will be visited with the others
            return level
        if kind != INTERIOR:
            raise pages.broken()
        below = [_children(pages, int(level[0]), first)]
        below += [_children(pages, number, pages.page(number)) for number in level[1:].tolist()]
        level = np.concatenate(below)
        if len(level) > pages.left:
            raise pages.broken()
    raise pages.broken()


def _head(number: int) -> int:
    return HEADER if number == 1 else 0


def _children(pages: Pages, number: int, content: bytes) -> Int64:
    """The pages below an interior page. Errors: FormatError where it is none, or they are outside the file."""
    head = _head(number)
    count = int.from_bytes(content[head + 3 : head + 5], "big")
    if content[head] != INTERIOR or head + 12 + 2 * count > pages.usable:
        raise pages.broken()
    at = np.frombuffer(content, dtype=">u2", count=count, offset=head + 12).astype(np.int64)
    if count and int(at.max()) + 4 > pages.usable:
        raise pages.broken()
    left = np.frombuffer(content, dtype=np.uint8)[at[:, None] + np.arange(4)].astype(np.int64)
    last = int.from_bytes(content[head + 8 : head + 12], "big")
    found = np.append(left @ np.array([1 << 24, 1 << 16, 1 << 8, 1]), last)
    if int(found.min()) < 1 or int(found.max()) > pages.count:
        raise pages.broken()
    return found


def batches(pages: Pages, numbers: Int64) -> Iterator[tuple[Int64, Bytes]]:
    """The pages of ``numbers`` some at a time: (their numbers, their bytes one after another and PADDING more).

    The bytes stand until the next batch is asked for. Pages that are neighbors in the file are read together.
    """
    most = max(1, BATCH // pages.size)
    room = np.zeros(most * pages.size + PADDING, dtype=np.uint8)
    for low in range(0, len(numbers), most):
        part = numbers[low : low + most]
        cuts = [0, *(np.flatnonzero(np.diff(part) != 1) + 1).tolist(), len(part)]
        for begin, end in pairwise(cuts):
            pages.file.seek((int(part[begin]) - 1) * pages.size)
            _fill(pages, room[begin * pages.size : end * pages.size].data)
        pages.left -= len(part)
        pages.read += len(part) * pages.size
        if pages.left < 0:
            raise pages.broken()
        yield part, room


def _fill(pages: Pages, view: memoryview) -> None:
    filled, file = 0, cast(ReadInto, pages.file)
    while filled < len(view):
        got = file.readinto(view[filled:])
        if not got:
            raise pages.broken()
        filled += got
