"""From the rows of one table to pieces of traces: ranges on threads, and work on devices."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.table import Int32, Int64, UInt8
from teller_core.data.trace import NO_LINK
from teller_core.ingest.lanes import Place
from teller_core.ingest.nsight.cells import INTEGER, MISSING, NAME, ROW_ID
from teller_core.ingest.nsight.keys import Keys, Meanings, Rows, Strings, Words
from teller_core.ingest.nsight.names import Meaning, copied, filled, graph, kernel, waited
from teller_core.ingest.nsight.rows import Reading, Wanted
from teller_core.ingest.nsight.schema import Table
from teller_core.ingest.nsight.tables import NAMES, Host

LIMIT = 1 << 61
"""ns: no time beyond this is believed, so that a time, a length and a base still fit int64."""
PROCESS = ~0xFFFFFF
"""The bits of a globalTid that tell its process: a globalPid. The low 24 are the thread's number."""
NO_STREAM = 0xFFFFFFFF
"""What CUPTI writes as the stream of a synchronization of a whole context."""
Bools = npt.NDArray[np.bool_]


@dataclass
class Piece:
    """Rows of traces, still of all processes and on the export's clock. The columns are those of a Trace."""

    start: Int64
    dur: Int64
    name: Int32
    lane: Int32
    category: UInt8
    layer: UInt8
    link: Int64
    arg: Int32


@dataclass
class Export:
    """What is gathered of one export. ``lanes``: keys (place, globalTid or globalPid, device, context, stream)."""

    reading: Reading
    strings: Strings
    words: Words = field(default_factory=Words)
    lanes: Keys = field(default_factory=lambda: Keys(5))
    arguments: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    pieces: list[Piece] = field(default_factory=list[Piece])
    other: Counter[str] = field(default_factory=Counter[str])
    problems: Counter[str] = field(default_factory=Counter[str])
    progress: Callable[[], None] = lambda: None


Columns = dict[str, Int64]


def blocks(
    export: Export, table: Table, wanted: Sequence[str], texts: Mapping[str, int] | None = None
) -> Iterator[Columns]:
    """The rows of ``table``, a dict of int64 columns at a time: MISSING throughout where the table has no such column. They
    stand until the next ones are asked for.

    ``texts``: columns that are read as texts, and how: TEXT or NAME.
    """
    kinds = {name: (texts or {}).get(name, INTEGER) for name in wanted}
    present = sorted((name for name in wanted if name in table.columns), key=lambda name: table.columns[name])
    asked = [Wanted(table.columns[n], ROW_ID if n in table.row_id else kinds[n]) for n in present]
    for block in export.reading.blocks(table.root, asked):
        export.progress()
        found: Columns = dict(zip(present, block, strict=True))
        for name in wanted:
            if name not in found:
                found[name] = np.full(block.shape[1], MISSING, dtype=np.int64)
        yield found


def read_host(export: Export, table: Table, source: Host) -> None:
    """Add the ranges of a table of calls on threads."""
    by = next((name for name in NAMES if name in table.columns), NAMES[0])
    meanings = Meanings(export.words, lambda code: source.means(export.reading.text(code)))
    as_text = by in ("name", "text")
    for rows in blocks(
        export, table, ["start", "end", "globalTid", "correlationId", by], {by: NAME} if as_text else None
    ):
        code = rows[by] if as_text else export.strings.texts(rows[by])
        kept = sound(export, rows, "globalTid")
        add(export, Found(rows, kept, meanings.rows(code), on_threads(export, rows["globalTid"], kept)))


SAID: Mapping[str, tuple[str, ...]] = {
    "KERNEL": ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    "CONCURRENT_KERNEL": ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    "MEMCPY": ("bytes",),
    "MEMSET": ("bytes",),
}
"""Columns that say how much an activity had to do, by table."""


def read_device(export: Export, table: Table) -> None:
    """Add the work of a table of device activities."""
    kind = table.name.rpartition("_KIND_")[2]
    columns, keys, meanings = _device_names(export, table, kind)
    sizes = SAID.get(kind, ())
    sized, first = Keys(max(1, len(sizes))), len(export.arguments)
    place = Place.SYNCS if kind == "SYNCHRONIZATION" else Place.STREAM
    shared = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId"]
    for rows in blocks(export, table, [*shared, *columns, *sizes]):
        code = export.strings.texts(_first(rows, columns)) if keys is None else keys.numbers(_stacked(rows, columns))
        kept = sound(export, rows, "globalPid")
        arg = sized.numbers(_stacked(rows, sizes)) + np.int32(first) if sizes else None
        add(export, Found(rows, kept, meanings.rows(code), _on_streams(export, rows, kept, place)), arg=arg)
    for key in sized.rows().tolist():
        export.arguments.append({"bytes": key[0]} if len(key) == 1 else {"grid": key[:3], "block": key[3:]})


def _stacked(rows: Columns, columns: Sequence[str]) -> Int64:
    return np.stack([rows[name] for name in columns])


def _first(rows: Columns, columns: Sequence[str]) -> Int64:
    """The first of ``columns`` that has a value, a row each."""
    value = rows[columns[0]]
    for name in columns[1:]:
        value = np.where(value == MISSING, rows[name], value)
    return value


def _device_names(export: Export, table: Table, kind: str) -> tuple[list[str], Keys | None, Meanings]:
    """(the columns that name an activity, their keys where they are no ids of strings, what they mean)."""
    if kind.endswith("KERNEL"):
        columns = [name for name in ("demangledName", "shortName", "mangledName") if name in table.columns]
        meanings = Meanings(export.words, lambda code: kernel(export.reading.text(code)))
        return columns or ["demangledName"], None, meanings
    said: dict[str, tuple[list[str], Callable[..., Meaning]]] = {
        "MEMCPY": (["copyKind", "srcKind", "dstKind"], copied),
        "MEMSET": (["memKind"], filled),
        "SYNCHRONIZATION": (["syncType"], waited),
        "GRAPH_TRACE": (["graphId"], graph),
    }
    columns, means = said[kind]
    keys = Keys(len(columns))
    return columns, keys, Meanings(export.words, lambda code: means(*keys.rows()[code].tolist()))


def sound(export: Export, rows: Columns, owner: str) -> Bools:
    """Which rows can be kept. The others are counted by the first thing that is wrong with them."""
    start, end = rows["start"], rows["end"]
    kept = np.ones(len(start), dtype=np.bool_)
    late = (np.abs(start) > LIMIT) | (np.abs(end) > LIMIT)
    for problem, wrong in (
        ("no_ts", start == MISSING),
        ("no_dur", end == MISSING),
        ("time_over_int64", late),
        ("negative_dur", end < start),
        ("no_process", rows[owner] == MISSING),
    ):
        if count := int(np.count_nonzero(wrong & kept)):
            export.problems[problem] += count
            kept &= ~wrong
    return kept


def on_threads(export: Export, thread: Int64, kept: Bools) -> Int32:
    """int32 a kept row: the lane of its thread."""
    columns = np.zeros((5, int(np.count_nonzero(kept))), dtype=np.int64)
    columns[0], columns[1] = Place.THREAD, _picked(thread, kept)
    return export.lanes.numbers(columns)


def _on_streams(export: Export, rows: Columns, kept: Bools, place: Place) -> Int32:
    columns = [_picked(rows[name], kept) for name in ("globalPid", "deviceId", "contextId", "streamId")]
    columns[0] = columns[0] & PROCESS
    columns[3] = np.where(columns[3] == NO_STREAM, MISSING, columns[3])
    return export.lanes.numbers(np.stack([np.full(len(columns[0]), place, dtype=np.int64), *columns]))


def _picked(column: Any, kept: Bools) -> Any:
    return column if kept.all() else column[kept]


class Found(NamedTuple):
    """What was found in a block: all its ``rows`` and what they mean, which of them are ``kept``, and the lanes of these."""

    rows: Columns
    kept: Bools
    meant: Rows
    lane: Int32


def add(export: Export, found: Found, *, arg: Int32 | None = None, category: Any = None) -> None:
    """Add the kept rows of a block, with their ``arg`` where they have any, and a ``category`` other than the meant one."""
    rows, kept, meant = found.rows, found.kept, found.meant
    start = _picked(rows["start"], kept)
    link = _picked(rows["correlationId"], kept) if "correlationId" in rows else np.full(len(start), NO_LINK)
    export.pieces.append(
        Piece(
            start=start.copy(),
            dur=_picked(rows["end"], kept) - start,
            name=_picked(meant.name, kept),
            lane=found.lane,
            category=_picked(meant.category if category is None else category, kept).astype(np.uint8),
            layer=_picked(meant.layer, kept),
            link=np.where(link > 0, link, NO_LINK),
            arg=np.full(len(start), -1, dtype=np.int32) if arg is None else _picked(arg, kept),
        )
    )
