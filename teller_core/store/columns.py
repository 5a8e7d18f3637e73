"""Sets of columns in chunks: spans, and the tables of a capture that grow too long for rows.

Measured on 500,000 participations (5,000 steps of 100 requests each): 0.2 MB, 0.02 s to write, 0.03 s to read whole and
0.8 ms for ten steps; as SQL rows with indexes over steps and requests 37 MB, 2.4 s, 1.2 s and 1.6 ms. 500,000 counter
samples: 3.0 MB and 0.2 s against 38 MB and 1.7 s. 500,000 token times: 1.5 MB and 0.01 s. Nobody looks one of these up by
itself, so all captures keep them like this, short ones too.
"""

import json
import sqlite3
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import zstandard

from teller_core.data.assessment import Baselines, Candidates
from teller_core.data.capture import Samples
from teller_core.data.steps import Participation, TokenTimes
from teller_core.data.table import columns, rows
from teller_core.store.chunks import CHUNK_ROWS, HEAD, Array, chunks_of, damaged, decode, first_value
from teller_core.store.strings import PIECE, pieces_of, unpack
from teller_core.store.tables import kinds

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Table = TypeVar("Table", bound=DataclassInstance)
else:
    Table = TypeVar("Table")

LONG: "dict[type[DataclassInstance], str]" = {
    Participation: "participation",
    TokenTimes: "tokens",
    Samples: "samples",
    Baselines: "held_baselines",
    Candidates: "held_candidates",
}
"""The kind of column set that holds a long table. Those of an assessment are here what they are held against something else than
at import: as rows they are what they were then."""
RISING = frozenset({"start", "stop", "step", "time", "offset", "link"})
"""Columns whose values lie near the one before: kept as differences."""


class ColumnSet(NamedTuple):
    """A stored set: ``rows`` long, ``about`` what its writer said of it."""

    key: int
    rows: int
    about: Mapping[str, Any]


def write_set(
    con: sqlite3.Connection,
    capture: int,
    kind: str,
    *,
    rank: int = -1,
    values: Mapping[str, Array],
    strings: Mapping[str, Sequence[str]],
    about: Mapping[str, Any],
    level: int,
) -> None:
    """Insert the columns ``values`` and the string tables ``strings`` as one set, chunk by chunk. ``level``: of zstd."""
    length = max((len(column) for column in values.values()), default=0)
    key = con.execute(
        "INSERT INTO column_sets (capture, kind, rank, rows, about) VALUES (?, ?, ?, ?, ?)",
        (capture, kind, rank, length, json.dumps(about, default=int)),  # counts may be numpy's
    ).lastrowid

    def parts() -> Iterator[tuple[int | None, str, int, bytes]]:
        for name in sorted({*values, *strings}):
            if name in strings:
                chunks = pieces_of(strings[name], level)
            else:
                chunks = chunks_of(values[name], delta=name in RISING, level=level)
            for number, data in enumerate(chunks):
                yield key, name, number, data

    con.executemany("INSERT INTO chunks (columns, field, chunk, data) VALUES (?, ?, ?, ?)", parts())


def find_set(con: sqlite3.Connection, capture: int, kind: str, rank: int = -1) -> ColumnSet | None:
    """The set of this kind, None where there is none."""
    found = con.execute(
        "SELECT key, rows, about FROM column_sets WHERE capture = ? AND kind = ? AND rank = ?", (capture, kind, rank)
    ).fetchone()
    return None if found is None else ColumnSet(found[0], found[1], json.loads(found[2]))


def read_values(con: sqlite3.Connection, key: int, names: Sequence[str], low: int, high: int) -> dict[str, Array]:
    """Rows ``low`` to ``high`` of the columns ``names``. Only the chunks that hold them are read and unpacked."""
    first, last = (low // CHUNK_ROWS, (high - 1) // CHUNK_ROWS) if high > low else (0, 0)
    if high <= low:
        low = high = 0
    unpress = zstandard.ZstdDecompressor()
    found: dict[str, list[Array]] = {name: [] for name in names}
    marks = ", ".join("?" * len(names))
    sql = f"SELECT field, chunk, data FROM chunks WHERE columns = ? AND field IN ({marks}) AND chunk BETWEEN ? AND ?"
    for name, chunk, data in con.execute(f"{sql} ORDER BY field, chunk", (key, *names, first, last)):
        begin = chunk * CHUNK_ROWS
        found[name].append(decode(data, unpress, max(low - begin, 0), max(high - begin, 0)))
    if not all(found.values()):
        raise damaged()
    return {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in found.items()}


def read_strings(con: sqlite3.Connection, key: int, name: str, wanted: Sequence[int] | None = None) -> list[str]:
    """The strings at the ascending positions ``wanted`` of a string table, or all of it."""
    unpress = zstandard.ZstdDecompressor()
    sql = "SELECT data FROM chunks WHERE columns = ? AND field = ?"
    if wanted is None:
        pieces = con.execute(f"{sql} ORDER BY chunk", (key, name)).fetchall()
        return [text for (data,) in pieces for text in unpack(data, None, unpress)]
    by_piece: dict[int, list[int]] = {}
    for place in wanted:
        by_piece.setdefault(place // PIECE, []).append(place % PIECE)
    found: list[str] = []
    for piece, places in by_piece.items():
        row = con.execute(f"{sql} AND chunk = ?", (key, name, piece)).fetchone()
        if row is None:
            raise damaged()
        found += unpack(row[0], places, unpress)
    return found


def write_long(
    con: sqlite3.Connection,
    capture: int,
    table: "DataclassInstance",
    level: int,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Insert a long table, its text columns as numbers of distinct texts. ``about``: what is to be found beside it."""
    values: dict[str, Array] = {}
    strings: dict[str, Sequence[str]] = {}
    named: dict[str, Any] = columns(table)
    dtypes = kinds(type(table))
    for name, column in named.items():
        if dtypes[name] is None:
            distinct: dict[str, int] = {}
            codes = [distinct.setdefault(text, len(distinct)) for text in column]
            values[name], strings[f"{name}:text"] = np.array(codes, dtype=np.int32), list(distinct)
        else:
            values[name] = column
    lengths = {name: len(column) for name, column in values.items()}
    told = dict(about) if set(lengths.values()) <= {rows(table)} else {**about, "lengths": lengths}
    write_set(con, capture, LONG[type(table)], values=values, strings=strings, about=told, level=level)


def read_long(
    con: sqlite3.Connection, capture: int, table: type[Table], low: int = 0, high: int | None = None
) -> Table:
    """Rows ``low`` to ``high`` of a long table, all by default."""
    stored = find_set(con, capture, LONG[table])
    if stored is None:
        raise damaged()
    lengths: Mapping[str, int] = stored.about.get("lengths", {})
    read: dict[str, Any] = {}
    for name, dtype in kinds(table).items():
        length = lengths.get(name, stored.rows)
        column = read_values(con, stored.key, [name], low, length if high is None else min(high, length))[name]
        if dtype is None:
            distinct = read_strings(con, stored.key, f"{name}:text")
            read[name] = [distinct[code] for code in column.tolist()]
        else:
            read[name] = column
    return table(**read)


def about_long(con: sqlite3.Connection, capture: int, table: type[Table]) -> Mapping[str, Any] | None:
    """What stands beside a long table, None where there is none of it."""
    stored = find_set(con, capture, LONG[table])
    return None if stored is None else stored.about


def drop_long(con: sqlite3.Connection, capture: int, table: type[Table]) -> None:
    """Remove a long table, if it is there."""
    stored = find_set(con, capture, LONG[table])
    if stored is not None:
        con.execute("DELETE FROM chunks WHERE columns = ?", (stored.key,))
        con.execute("DELETE FROM column_sets WHERE key = ?", (stored.key,))


def rows_of_steps(con: sqlite3.Connection, capture: int, low: int, high: int) -> tuple[int, int]:
    """Which rows of Participation belong to the steps ``low`` to ``high``: they are ordered by step."""
    stored = find_set(con, capture, LONG[Participation])
    if stored is None:
        raise damaged()
    heads = con.execute(
        f"SELECT substr(data, 1, {HEAD}) FROM chunks WHERE columns = ? AND field = 'step' ORDER BY chunk", (stored.key,)
    )
    firsts = [first_value(head) for (head,) in heads]
    begin = max(bisect_left(firsts, low) - 1, 0) * CHUNK_ROWS
    end = min(bisect_left(firsts, high) * CHUNK_ROWS, stored.rows)
    step = read_values(con, stored.key, ["step"], begin, end)["step"]
    return begin + int(np.searchsorted(step, low)), begin + int(np.searchsorted(step, high))
