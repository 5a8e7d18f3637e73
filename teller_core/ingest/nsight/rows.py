"""Rows of tables a block at a time, with the texts they share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int32, Int64
from teller_core.ingest.nsight import cells
from teller_core.ingest.nsight.names import BETWEEN
from teller_core.ingest.nsight.pages import HEADER, LEAF, Pages, batches, leaves
from teller_core.ingest.scanning.intern import SPLIT, Texts, grown, new_texts
from teller_core.ingest.scanning.tokens import PADDING, Bytes

BLOCK_ROWS = 1 << 17
SPILLED_ROWS = 1 << 10
MAX_RECORD = 1 << 20
"""Bytes of a row. A longer one (somebody traced a document) is left out and counted."""


class Wanted(NamedTuple):
    """A column: its place in a row, and what is asked of it: cells.INTEGER, TEXT, NAME or ROW_ID."""

    place: int
    kind: int


@dataclass(frozen=True)
class _Scan:
    """The arrays of :func:`cells.scan`: what is asked of which columns, and where the answers go."""

    places: Int32
    kinds: Int32
    out: Int64
    spilled: Int64
    state: Int64


def _new_scan(places: Int32, kinds: Int32, rows: int, cut_at: int) -> _Scan:
    state = np.zeros(cells.STATE, dtype=np.int64)
    state[cells.CUT] = cut_at
    out = np.empty((len(places), rows), dtype=np.int64)
    return _Scan(places, kinds, out, np.empty((min(rows, SPILLED_ROWS), 5), dtype=np.int64), state)


@dataclass
class Reading:
    """What goes on from block to block. ``damaged``, ``too_long``: rows that were left out so far."""

    pages: Pages
    cut_at: int = 4096
    """Bytes of a text that are kept."""
    damaged: int = 0
    too_long: int = 0
    texts: Texts = field(default_factory=new_texts)
    pieces: Int64 = field(default_factory=lambda: np.zeros(2 * cells.PIECES, dtype=np.int64))
    decoded: list[str] = field(default_factory=list[str])

    def blocks(self, root: int, wanted: Sequence[Wanted]) -> Iterator[Int64]:
        """int64 (wanted columns, rows): the rows of the table at ``root``, up to BLOCK_ROWS at a time. Integers as they are,
        texts as numbers for :meth:`text`, MISSING for anything else. A block stands until the next is asked for.

        Errors: FormatError where the pages of the table do not hang together.
        """
        order = np.argsort([column.place for column in wanted], kind="stable")
        places, kinds = np.array(wanted, dtype=np.int32).reshape(-1, 2)[order].T
        scan = _new_scan(np.ascontiguousarray(places), np.ascontiguousarray(kinds), BLOCK_ROWS, self.cut_at)
        state, back = scan.state, np.argsort(order)
        sorted_ = bool(np.all(back[1:] > back[:-1]))  # then a view does
        for numbers, data in batches(self.pages, leaves(self.pages, root)):
            heads = np.where(numbers == 1, HEADER, 0).astype(np.int64)
            state[cells.PAGE] = state[cells.CELL] = 0
            while self._scan(data, heads, scan) == cells.ROOM:
                if state[cells.ROW] == BLOCK_ROWS:
                    yield scan.out if sorted_ else scan.out[back]
                    state[cells.ROW] = 0
                else:
                    self.texts = grown(self.texts, self.pages.size)
        self.damaged += int(state[cells.DAMAGED])
        if state[cells.ROW]:
            some = scan.out[:, : int(state[cells.ROW])]
            yield some if sorted_ else some[back]

    def count(self, root: int) -> int:
        """How many rows the table at ``root`` has. Errors: as :meth:`blocks`."""
        rows = 0
        for numbers, data in batches(self.pages, leaves(self.pages, root)):
            at = np.arange(len(numbers), dtype=np.int64) * self.pages.size + np.where(numbers == 1, HEADER, 0)
            if np.any(data[at] != LEAF):
                raise self.pages.broken()
            rows += int(np.sum(data[at + 3].astype(np.int64) * 256 + data[at + 4]))
        return rows

    def text(self, number: int) -> str:
        """The text of a number that :meth:`blocks` gave, empty for MISSING. The pieces of a NAME stand with BETWEEN
        between them.
        """
        if number < 0:
            return ""
        if number >= len(self.decoded):
            _, _, offset, length, _, content, used = self.texts
            first, count = len(self.decoded), int(used[0])
            begin = int(offset[first])
            whole = content[begin : int(used[1])].tobytes()
            low = (offset[first:count] - begin).tolist()
            high = (offset[first:count] - begin + length[first:count]).tolist()
            self.decoded += [self._decode(whole[a:b]) for a, b in zip(low, high, strict=True)]
        return self.decoded[number]

    def _decode(self, raw: bytes) -> str:
        encoding = self.pages.encoding
        if encoding != "utf-8":
            return raw.decode(encoding, "replace")
        return BETWEEN.join(part.decode("utf-8", "replace") for part in raw.split(bytes([SPLIT])))

    def _scan(self, data: Bytes, heads: Int64, scan: _Scan, size: int = 0, usable: int = 0) -> int:
        """Go on with ``data``; returns what stopped it, MORE or ROOM, the rows that go on in other pages filled in."""
        size, usable = size or self.pages.size, usable or self.pages.usable
        stopped = cells.scan(
            data, size, usable, heads, scan.state, scan.places, scan.kinds, scan.out, scan.spilled, self.texts, self.pieces
        )  # fmt: skip
        if stopped == cells.NO_LEAF:
            raise self.pages.broken()
        if scan.state[cells.SPILLED]:
            self._follow(data, scan)
        return stopped

    def _follow(self, data: Bytes, scan: _Scan) -> None:
        """Fill in the rows that go on in other pages, and close the gaps of those that are too long or broken."""
        gone: list[int] = []
        for row, page, at, size, row_id in scan.spilled[: int(scan.state[cells.SPILLED])].tolist():
            self.too_long += size > MAX_RECORD
            record = self._record(data, page * self.pages.size, at, size) if size <= MAX_RECORD else b""
            values = self._alone(record, scan) if record else None
            if values is None:
                gone.append(row)
            else:
                scan.out[:, row] = np.where(scan.kinds == cells.ROW_ID, row_id, values)
        scan.state[cells.SPILLED] = 0
        if gone:
            kept = np.delete(np.arange(int(scan.state[cells.ROW])), gone)
            scan.out[:, : len(kept)] = scan.out[:, kept]
            scan.state[cells.ROW] = len(kept)

    def _record(self, data: Bytes, page: int, at: int, size: int) -> bytes:
        """A record of ``size`` bytes that begins at ``at``, in the page at ``page``, and goes on in others; empty where
        it is broken.
        """
        usable = self.pages.usable
        least = (usable - 12) * 32 // 255 - 23
        here = least + (size - least) % (usable - 4)
        here = least if here > usable - 35 else here
        if at + here + 4 > page + usable:
            self.damaged += 1
            return b""
        record = bytearray(data[at : at + here].tobytes())
        following = int.from_bytes(data[at + here : at + here + 4].tobytes(), "big")
        while len(record) < size:
            content = self.pages.page(following)
            following = int.from_bytes(content[:4], "big")
            record += content[4 : min(usable, 4 + size - len(record))]
        return bytes(record)

    def _alone(self, record: bytes, scan: _Scan) -> Int64 | None:
        """The values of a record, read as the only one of a page of its own; None for a broken one."""
        page = bytes([LEAF, 0, 0, 0, 1, 0, 0, 0, 0, 10]) + _varint(len(record)) + b"\0" + record
        data = np.zeros(len(page) + 35 + PADDING, dtype=np.uint8)
        data[: len(page)] = np.frombuffer(page, dtype=np.uint8)
        one, heads = _new_scan(scan.places, scan.kinds, 1, self.cut_at), np.zeros(1, dtype=np.int64)
        while self._scan(data, heads, one, len(page) + 35, len(page) + 35) == cells.ROOM:
            self.texts = grown(self.texts, len(record))
        self.damaged += int(one.state[cells.DAMAGED])
        return one.out[:, 0] if one.state[cells.ROW] else None


def _varint(value: int) -> bytes:
    parts = [value & 127]
    while value := value >> 7:
        parts.append(value & 127 | 128)
    return bytes(reversed(parts))
