"""The small tables of a capture as SQL rows, generically from the columns of their dataclasses.

An unknown time (UNKNOWN) and a NaN are NULL in a row, so that SQL neither sorts nor adds them up as numbers. Rows are
what is looked up by key or window and read by people with other tools: 4.6 us a row to write, 20 to 70 bytes each.
Rows are written by ``executemany`` over the connection: sqlite-utils' ``insert_all`` was measured at five times the time.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from teller_core.data.assessment import Baselines, Candidates, RequestExpectations, StepExpectations
from teller_core.data.capture import Absences, Collectives, Disagreements, Meetings, Pauses
from teller_core.data.outcomes import Outcomes
from teller_core.data.readings import Buckets, Readings
from teller_core.data.steps import Lines, Requests, Steps, StepWork, Transfers
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, LongText, Text, UInt8, columns
from teller_core.store.chunks import damaged

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Table = TypeVar("Table", bound=DataclassInstance)
else:
    Table = TypeVar("Table")

NAMES: "Mapping[type[DataclassInstance], str]" = {
    Steps: "steps",
    StepWork: "step_work",
    Requests: "requests",
    Lines: "lines",
    Pauses: "pauses",
    Collectives: "collectives",
    Absences: "absences",
    Meetings: "meetings",
    Disagreements: "disagreements",
    Transfers: "transfers",
    Readings: "readings",
    Buckets: "buckets",
    Baselines: "baselines",
    StepExpectations: "step_expectations",
    Candidates: "candidates",
    RequestExpectations: "request_expectations",
    Outcomes: "outcomes",
}
"""The SQL table that holds the rows of a dataclass."""
_KINDS: dict[Any, np.dtype[Any] | None] = {
    Int64: np.dtype(np.int64),
    Int32: np.dtype(np.int32),
    UInt8: np.dtype(np.uint8),
    Float64: np.dtype(np.float64),
    Text: None,
    LongText: None,
}


TOGETHER = 8192
"""Texts that are looked at together for what SQLite cannot hold."""


def kinds(table: "type[DataclassInstance]") -> dict[str, np.dtype[Any] | None]:
    """The columns of a table type: their dtype by name, None for text."""
    return {field.name: _KINDS[field.type] for field in fields(table)}


def write_rows(con: sqlite3.Connection, capture: int, table: "DataclassInstance") -> None:
    """Insert all rows of ``table`` for the capture with this key."""
    named: dict[str, Any] = columns(table)
    dtypes = kinds(type(table))
    # SQLite compares the way we mean: the integer becomes NULL, which numpy columns cannot hold. It makes NaN NULL itself.
    marks = [f"nullif(?, {UNKNOWN})" if dtypes[name] == np.int64 else "?" for name in named]
    sql = f"INSERT INTO {NAMES[type(table)]} ({_listed(['capture', 'position', *named])}) VALUES ({capture}, ?, "
    values = [texts(column) if dtypes[name] is None else column.tolist() for name, column in named.items()]
    con.executemany(f"{sql}{', '.join(marks)})", zip(range(len(values[0])), *values, strict=True))


def read_rows(
    con: sqlite3.Connection,
    capture: int,
    table: type[Table],
    *,
    where: str = "",
    given: Sequence[Any] = (),
    order: str = "position",
) -> Table:
    """The rows of a capture as a table of this type, in order. ``where`` narrows them, with ``given`` for its marks.

    Raises StoreError where a row holds what no column of its type can.
    """
    dtypes = kinds(table)
    asked = [f'ifnull("{name}", {UNKNOWN})' if dtype == np.int64 else f'"{name}"' for name, dtype in dtypes.items()]
    sql = f"SELECT {', '.join(asked)} FROM {NAMES[table]} WHERE capture = ? {where} ORDER BY {order}"
    rows = con.execute(sql, (capture, *given)).fetchall()
    read: Iterable[Sequence[Any]] = zip(*rows, strict=True) if rows else ((),) * len(dtypes)
    try:
        return table(
            **{
                name: [text(value) for value in values] if dtype is None else np.array(values, dtype=dtype)
                for (name, dtype), values in zip(dtypes.items(), read, strict=True)
            }
        )
    except (TypeError, ValueError, OverflowError) as error:  # a cell that no column of this type could have held
        raise damaged() from error


def read_window(
    con: sqlite3.Connection, capture: int, table: type[Table], column: str, *, low: int, high: int | None
) -> Table:
    """The rows of a capture whose ``column`` lies in ``low`` to before ``high``, to the last one for None."""
    high = 2**63 - 1 if high is None else high
    return read_rows(con, capture, table, where=f'AND "{column}" >= ? AND "{column}" < ?', given=(low, high))


def texts(column: Sequence[str]) -> Sequence[str | bytes]:
    """``column`` as SQLite can hold it."""
    try:
        for low in range(0, len(column), TOGETHER):
            "".join(column[low : low + TOGETHER]).encode()
    except UnicodeEncodeError:
        return [bound(value) for value in column]
    return column


def bound(value: str) -> str | bytes:
    """``value`` as SQLite can hold it: half of a surrogate pair is no text to it, so such a name becomes bytes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
    return value


def containing(part: str) -> str | bytes:
    """The pattern of LIKE, with a backslash as its ESCAPE, for texts that hold ``part``."""
    return bound("%" + "".join(f"\\{letter}" if letter in "\\%_" else letter for letter in part) + "%")


def text(value: str | bytes) -> str:
    """What :func:`bound` was given."""
    return value.decode("utf-8", "surrogatepass") if isinstance(value, bytes) else value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
