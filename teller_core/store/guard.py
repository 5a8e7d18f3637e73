"""What may happen on a connection, whoever made the file: our own application id can be written into any database.

A question reads plain tables through a few functions, and nothing else: an authorizer refuses it before it runs where a view,
a trigger or anything outside would take part. Of what SQLite asks no authorizer about (virtual tables, generated columns,
checks, indexes of expressions) the schema shall have nothing: its statements are held against the few forms that ours have.
Lengths are bounded, and steps by the size of the file, whose pages can point to each other without end. After SQLite's
own advice on files of others: https://sqlite.org/security.html
"""

import re
import sqlite3
import time
from itertools import repeat
from math import inf
from pathlib import Path

from teller_core.errors import StoreError

LARGEST = 1 << 28
"""Bytes of a value or a row. Ours are reports, pieces of columns and of names, packed: the longest has a few MB."""
LIMITS = {
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: 100_000,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 5,
    sqlite3.SQLITE_LIMIT_FUNCTION_ARG: 8,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
"""More than our own statements need."""
STEPS_BETWEEN_LOOKS = 100_000
"""Steps of SQLite's machine between two looks at the clock: about a millisecond."""
STEPS, STEPS_A_BYTE = 2_000_000, 10
"""Steps that a reader may take in all, and on top of them for each byte of the file. Reading a capture whole was measured at
0.02 steps a byte; pages that point to each other hold rows without end."""

FUNCTIONS = frozenset(
    {"coalesce", "count", "ifnull", "length", "like", "max", "min", "nullif", "replace", "round", "substr", "sum"}
)
"""What our questions call. None of them makes a value out of nothing, or reaches outside."""
_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_PRAGMA})
_NEVER = frozenset(
    {
        sqlite3.SQLITE_ATTACH,
        sqlite3.SQLITE_DETACH,
        sqlite3.SQLITE_CREATE_TRIGGER,
        sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
        sqlite3.SQLITE_CREATE_VIEW,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
        sqlite3.SQLITE_CREATE_VTABLE,
        sqlite3.SQLITE_DROP_VTABLE,
        sqlite3.SQLITE_RECURSIVE,
    }
)

_NAME = r'(?:"\w+"|\[\w+\]|\w+)'
_KEY = rf"\(\s*{_NAME}(?: desc)?(?:\s*,\s*{_NAME}(?: desc)?)*\s*\)"
_COLUMN = (
    rf"{_NAME} (?:INTEGER|TEXT|REAL|FLOAT|BLOB)(?: PRIMARY KEY)?(?: NOT NULL)?(?: DEFAULT (?:''|-?\d+))?"
    rf"(?: REFERENCES {_NAME}\({_NAME}\))?"
)
_PART = rf"(?:PRIMARY KEY {_KEY}|{_COLUMN})"
_OURS = re.compile(
    rf"CREATE TABLE {_NAME} \(\s*{_PART}(?:\s*,\s*{_PART})*\s*\)(?: WITHOUT ROWID)?"
    rf"|CREATE (?:UNIQUE )?INDEX {_NAME}\s+ON {_NAME}\s*{_KEY}",
    re.ASCII,
)
"""The statements that migrations leave in a schema: names, plain types, keys and constants."""


def guard(con: sqlite3.Connection, *, read_only: bool, size: int, deadline_s: float | None) -> None:
    """Allow ``con`` no more than our questions need. ``size``: of the file in bytes. What it still does ``deadline_s`` seconds
    from now is stopped, and what reads more steps than such a file takes.
    """
    for limit, most in LIMITS.items():
        con.setlimit(limit, most)
    if read_only:
        con.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST)
    con.set_authorizer(_may_read if read_only else _may_write)
    if read_only or deadline_s is not None:
        end = inf if deadline_s is None else time.monotonic() + deadline_s
        looks = repeat(None, (STEPS + STEPS_A_BYTE * size) // STEPS_BETWEEN_LOOKS) if read_only else repeat(None)
        con.set_progress_handler(lambda: next(looks, True) or time.monotonic() > end, STEPS_BETWEEN_LOOKS)


def check_schema(con: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError where the schema has what no migration of ours makes."""
    for kind, sql in con.execute("SELECT type, sql FROM sqlite_master"):
        if sql is None and kind == "index":  # SQLite's own, of a primary key
            continue
        if not isinstance(sql, str) or _OURS.fullmatch(sql) is None:
            raise StoreError(
                f"the store {path.name!r}",
                "its tables are not as TELLER makes them",
                "Do not use it, and import the captures again into a new one",
            )


def _may_read(action: int, first: str | None, second: str | None, _: str | None, inside: str | None) -> int:
    if inside is not None:  # the name of a view or trigger
        return sqlite3.SQLITE_DENY
    allowed = second in FUNCTIONS if action == sqlite3.SQLITE_FUNCTION else action in _READING
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _may_write(action: int, first: str | None, second: str | None, _: str | None, inside: str | None) -> int:
    return sqlite3.SQLITE_DENY if inside is not None or action in _NEVER else sqlite3.SQLITE_OK
