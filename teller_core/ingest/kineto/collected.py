"""The rows that a scan fills, and how they become a Trace."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from teller_core.data.long_columns import LONG, Column, let_go, mapped, spool, taken
from teller_core.data.table import Int32, Int64
from teller_core.data.trace import Lane, Layer, Trace
from teller_core.errors import FormatError, LimitError
from teller_core.ingest.collective_names import communicates
from teller_core.ingest.kineto import scan as scanner
from teller_core.ingest.kineto.arguments import MAX_PIECES, squeeze
from teller_core.ingest.kineto.fields import ABSENT, FIELDS, LANE_FIELDS, NUMBER, TEXT
from teller_core.ingest.kineto.layers import CATEGORIES, OTHERWISE, layers
from teller_core.ingest.kineto.origin import origin_of, whole
from teller_core.ingest.lanes import SUFFIX, Place
from teller_core.ingest.scanning.intern import Texts, grown, new_texts, number_of, strings
from teller_core.ingest.scanning.tokens import Bytes

BLOCK_ROWS = 1 << 18
MAX_CATEGORIES = 255

KINDS = {
    "M": "metadata", "s": "flow", "t": "flow", "f": "flow", "C": "counter", "i": "instant", "I": "instant", "B": "begin",
    "E": "end", "b": "async", "n": "async", "e": "async", "S": "async", "T": "async", "p": "async", "F": "async",
    "N": "object", "O": "object", "D": "object", "P": "sample", "R": "mark", "c": "clock_sync", "v": "memory_dump",
    "V": "memory_dump",
}  # fmt: skip
"""Kinds of records that are no complete events, by ``ph``: Google's Trace Event Format."""

EPOCH_NS = 10**18
"""A time beyond this (September 2001) counts from 1970: no machine has been up for 31 years."""


def _new_rows() -> tuple[Column, ...]:
    kinds = (np.int64, np.int64, np.int32, np.int32, np.int64, np.int32)
    return tuple(np.empty(BLOCK_ROWS, dtype=kind) for kind in kinds)


def _new_names() -> Texts:
    """A table whose string 0 is the empty one: the name and the category of an event that has none."""
    names = new_texts()
    pieces = np.zeros(2, dtype=np.int64)
    number_of(names, np.uint64(0), np.zeros(8, dtype=np.uint8), pieces, 1)
    return names


@dataclass
class Collected:
    """What a scan has found so far. The arrays are those of :func:`scan.scan`."""

    rows: tuple[Column, ...] = field(default_factory=_new_rows)
    files: list[BinaryIO] = field(default_factory=list[BinaryIO])
    """One a column with the rows that were written out, once there are too many to hold."""
    written: int = 0
    state: Int64 = field(default_factory=lambda: np.zeros(3, dtype=np.int64))
    kinds: Int64 = field(default_factory=lambda: np.zeros(256, dtype=np.int64))
    problems: Int64 = field(default_factory=lambda: np.zeros(len(scanner.PROBLEMS), dtype=np.int64))
    fields: Int64 = field(default_factory=lambda: np.zeros(FIELDS, dtype=np.int64))
    pieces: Int64 = field(default_factory=lambda: np.zeros(2 * MAX_PIECES, dtype=np.int64))
    names: Texts = field(default_factory=_new_names)
    args: Texts = field(default_factory=new_texts)
    streams: Int64 = field(default_factory=lambda: np.zeros(1 << 11, dtype=np.int64))
    recent: Int32 = field(default_factory=lambda: np.full(1 << 11, -1, dtype=np.int32))
    lane_slots: Int32 = field(default_factory=lambda: np.full(1 << 11, -1, dtype=np.int32))
    lane_keys: Int64 = field(default_factory=lambda: np.zeros((1 << 10, LANE_FIELDS), dtype=np.int64))
    lanes_used: Int64 = field(default_factory=lambda: np.zeros(2, dtype=np.int64))

    @property
    def complete(self) -> int:
        """Complete events kept so far."""
        return self.written + int(self.state[2])

    def scan(self, data: Bytes, low: int, high: int) -> tuple[int, int]:
        """Go on with ``data[low:high]``; returns as :func:`scan.scan` does."""
        return scanner.scan(
            data, low, high, self.state, self.kinds, self.problems, self.fields, self.pieces, self.names, self.args,
            self.streams, self.recent, self.lane_slots, self.lane_keys, self.lanes_used, *self.rows,
        )  # fmt: skip

    def make_room(self, record: int) -> None:
        """Enlarge whatever a record of up to ``record`` bytes may have found full."""
        if self.state[2] == len(self.rows[0]):
            self._make_rows()
        self.names, self.args = grown(self.names, record), grown(self.args, record)
        self.recent = _longer(self.recent, len(self.names[2]), -1)
        self.streams = _longer(self.streams, len(self.args[2]), 0)
        if self.lanes_used[0] == len(self.lane_keys):
            self.lane_slots, self.lane_keys = scanner.grown_lanes(self.lane_keys)

    def columns(self) -> list[Column]:
        """The columns start, dur, name, lane, link, arg of all rows. Takes them away: may be called once."""
        rows, self.rows = self.rows, ()
        if self.files:
            self._write_out(rows)
            return [mapped(file, column.dtype) for file, column in zip(self.files, rows, strict=True)]
        for column in rows:
            column.resize(int(self.state[2]), refcheck=False)  # in place: only this object has it
        return list(rows)

    def _make_rows(self) -> None:
        """Room for further rows: for as many as are held in memory, then, when these are written out, a block at a time.

        The system gives memory when it is first used, so that room which stays empty costs nothing.
        """
        full = self.rows
        if self.files or len(full[0]) > LONG:
            self._write_out(full)
            self.rows, self.state[2] = _new_rows(), 0
        else:
            self.rows = tuple(_roomier(column, LONG + 1) for column in full)

    def _write_out(self, rows: Sequence[Column]) -> None:
        """Append the rows to the files of their columns."""
        count = int(self.state[2])
        files = self.files or [None] * len(rows)
        self.files = [spool([column[:count]], file) for column, file in zip(rows, files, strict=True)]
        self.written += count


def new_collected() -> Collected:
    """An empty collection."""
    return Collected()


def _roomier(column: Column, length: int) -> Column:
    roomier = np.empty(max(length, 2 * len(column)), dtype=column.dtype)
    roomier[: len(column)] = column
    return roomier


def _longer(column: Column, length: int, fill: int) -> Column:
    longer = np.full(length, fill, dtype=column.dtype)
    longer[: len(column)] = column
    return longer


def _decoded(raw: bytes, file: str) -> str:
    """The text of a JSON string, its quotation marks taken off; bytes that are no UTF-8 become U+FFFD."""
    text = raw.decode("utf-8", "replace")
    if "\\" not in text:
        return text
    try:
        return json.loads(f'"{text}"', strict=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    except ValueError:
        raise FormatError(file, "a string has a broken escape", "Copy or record the file again") from None


def _merged(texts: list[str], used: npt.NDArray[np.bool_]) -> tuple[list[str], Int32]:
    """(the distinct texts among those used, int32 place of each text among them)."""
    places: dict[str, int] = {}
    to = [places.setdefault(text, len(places)) if keep else 0 for text, keep in zip(texts, used.tolist(), strict=True)]
    return list(places), np.array(to, dtype=np.int32)


def _used(column: Int32, count: int) -> npt.NDArray[np.bool_]:
    used = np.zeros(count, dtype=np.bool_)
    used[column[column >= 0]] = True
    return used


def trace_of(collected: Collected, header: dict[str, Any], file: str) -> Trace:
    """The Trace of what was collected; ``header``: members of the file's outermost object. Uses ``collected`` up.

    Errors: FormatError for a broken header or string; LimitError over MAX_CATEGORIES.
    """
    problems = {name: int(n) for name, n in zip(scanner.PROBLEMS, collected.problems.tolist(), strict=True) if n}
    records = int(collected.state[1])
    start, dur, name, key, link, arg = collected.columns()
    base = whole(header.get("baseTimeNanoseconds", 0))
    if base is None:
        raise FormatError(file, "baseTimeNanoseconds is no 64-bit integer", "Record the file again")
    late = _add_base(start, dur, base)
    if late is not None:
        problems["time_over_int64"] = problems.get("time_over_int64", 0) + int(late.sum())
        start, dur, name, key, link, arg = (c[~late] for c in (start, dur, name, key, link, arg))
    texts = [_decoded(raw, file) for raw in strings(collected.names)]
    lanes, lane_of, categories, category_of, kind_of = _lane_tables(collected, texts, file)
    names, name_to = _merged(texts, _used(name, len(texts)))
    name = taken(name_to, name)
    args, arg_to = _merged_args(collected.args, arg)
    unix = bool(base) or 2 * int(np.count_nonzero(start >= EPOCH_NS)) > len(start)
    events = np.bincount(key, minlength=len(lane_of))
    lane, arg, category = taken(lane_of, key), taken(arg_to, arg), taken(category_of, key)
    layer = layers(kind_of, key, communicates(names), name)
    let_go(start, dur, name, lane, category, layer, link, arg)
    return Trace(
        start=start,
        dur=dur,
        name=name,
        lane=lane,
        category=category,
        layer=layer,
        link=link,
        arg=arg,
        names=names,
        lanes=lanes,
        categories=categories,
        args=args,
        origin=origin_of(header, "unix" if unix else "local", _process(lanes, lane_of, events)),
        problems=problems,
        events_in_file=records,
        events_other=_other(collected.kinds),
    )


def _add_base(start: Int64, dur: Int64, base: int) -> npt.NDArray[np.bool_] | None:
    """Add ``base`` to ``start`` in place; bool per row: the event lies beyond int64 then. None where none does."""
    limit = np.iinfo(np.int64).max - base
    latest = int(start.max(initial=0)) + int(dur.max(initial=0))
    late = (start > limit) | (start + dur > limit) if latest > limit else None
    start += base
    return late if late is not None and late.any() else None


def _lane_tables(
    collected: Collected, texts: list[str], file: str
) -> tuple[list[Lane], Int32, list[str], npt.NDArray[np.uint8], list[tuple[Layer, Place]]]:
    """(lanes, int32 lane of each lane key, categories, uint8 category of each key, layer and place of each key)."""
    keys: list[list[int]] = collected.lane_keys[: int(collected.lanes_used[0])].tolist()
    lanes: dict[Lane, int] = {}
    categories: dict[str, int] = {}
    lane_of: list[int] = []
    category_of: list[int] = []
    kinds: list[tuple[Layer, Place]] = []
    for pid_kind, pid, tid_kind, tid, stream, cat in keys:
        category = texts[cat]
        kind = CATEGORIES.get(category.lower(), OTHERWISE)
        process, thread = _identity(pid_kind, pid, texts), _identity(tid_kind, tid, texts)
        device = kind[1] is not Place.THREAD
        if device:
            thread = (thread if stream == ABSENT else str(stream)) + SUFFIX[kind[1]]
        lane_of.append(lanes.setdefault(Lane(process, thread, device), len(lanes)))
        category_of.append(categories.setdefault(category, len(categories)))
        kinds.append(kind)
    if len(categories) > MAX_CATEGORIES:
        raise LimitError(file, f"over {MAX_CATEGORIES} categories of events", "Name a trace of the PyTorch profiler")
    return list(lanes), np.array(lane_of, np.int32), list(categories), np.array(category_of, np.uint8), kinds


def _identity(kind: int, value: int, texts: list[str]) -> str:
    if kind == NUMBER:
        return str(value)
    return texts[value] if kind == TEXT else ""


def _merged_args(table: Texts, arg: Int32) -> tuple[list[str], Int32]:
    """(texts of the argument objects in use, int32 place of each; the last entry stands for none)."""
    squeeze(table[5], table[2], table[3], int(table[6][0]))
    texts = ["{" + raw.decode("utf-8", "replace") + "}" for raw in strings(table)]
    args, to = _merged(texts, _used(arg, len(texts)))
    return args, np.append(to, np.int32(-1))


def _other(kinds: Int64) -> dict[str, int]:
    counted: dict[str, int] = {}
    for byte in np.flatnonzero(kinds).tolist():
        kind = KINDS.get(chr(byte), "unknown")
        counted[kind] = counted.get(kind, 0) + int(kinds[byte])
    return counted


def _process(lanes: Sequence[Lane], lane_of: Int32, events: Int64) -> int | None:
    """The host process with most events, None where no host lane has a number for one."""
    total: dict[int, int] = {}
    places: list[int] = lane_of.tolist()
    for at, count in zip(places, events.tolist(), strict=True):
        lane = lanes[at]
        if not lane.device and lane.process.isdecimal() and len(lane.process) < 10:
            total[int(lane.process)] = total.get(int(lane.process), 0) + count
    return max(total, key=lambda pid: total[pid], default=None)
