"""Opening a database file: whose it is, how new it is, and what is said when it cannot be used.

A file that is not ours is recognized by reading its first 100 bytes: SQLite never opens it, so nothing in it runs and
nothing beside it is made. Somebody else may have made one that says it is ours: what a schema could call is not trusted, a
journal beside it is not played back, and readers cannot write (see also guard.py).
"""

import os
import sqlite3
import stat
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from teller_core.data.scratch import scratch
from teller_core.errors import InputError, StoreError
from teller_core.store.guard import check_schema, guard

APPLICATION_ID = 0x54454C52
"""``TELR``, at byte 68 of every file of ours."""
WAIT_S = 30.0
"""How long one process waits for another that is writing. A capture of ten million spans is written in about 2 s."""
_MAGIC = b"SQLite format 3\0"
_OTHER = "Name another file with --db"
_ANEW = "Do not use it, and import the captures again into a new one"


class HasPath(Protocol):
    """Something whose methods work on one database file."""

    path: Path


Owner = TypeVar("Owner", bound=HasPath)
Given = ParamSpec("Given")
Answer = TypeVar("Answer")


def recognize(path: Path) -> bool:
    """Whether ``path`` is a store of ours; False where nothing is there. Raises StoreError for anything else."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):  # opening a pipe would wait for its writer for ever
            raise StoreError(_called(path), "it is no regular file", _OTHER)
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise StoreError(_called(path), f"it cannot be read ({error.strerror})", _OTHER) from error
    if not head:
        raise StoreError(_called(path), "the file is empty, which no store is", "Remove it, or name another with --db")
    if not head.startswith(_MAGIC):
        raise StoreError(_called(path), "it is no SQLite database, and nothing was changed", _OTHER)
    if int.from_bytes(head[68:72], "big") != APPLICATION_ID:
        raise StoreError(_called(path), "it is the database of another program, and nothing was changed", _OTHER)
    if _size(_beside(path, "-journal")):  # playing one back removes any file that it names
        why = "a rollback journal lies beside it, and our stores have none"
        raise StoreError(_called(path), why, _ANEW)
    return True


def connect(path: Path, *, read_only: bool, deadline_s: float | None = None) -> sqlite3.Connection:
    """A connection to a store that :func:`recognize` knows, in autocommit mode; after ``deadline_s`` seconds it does no more.
    Nothing of the file has been looked at: see :func:`check`. Raises StoreError.
    """
    mine = _writable(path) and _writable(path.parent)
    if not mine and not read_only:
        raise StoreError(_called(path), "the file or its folder may not be written to", _OTHER)
    # A reader takes part in the write-ahead log: what a killed writer left is seen, and put right by the next writer. On a
    # disk that cannot be written there is no log, and SQLite has to be told not to look for one.
    log = _size(_beside(path, "-wal"))
    mode = "rw" if not read_only else "ro" if mine or log else "ro&immutable=1"
    try:
        con = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=WAIT_S, isolation_level=None)
        guard(con, read_only=read_only, size=_size(path) + log, deadline_s=deadline_s)
        con.execute("PRAGMA trusted_schema=OFF")
        con.execute("PRAGMA cell_size_check=ON")
        con.execute("PRAGMA mmap_size=0")
        con.execute(f"PRAGMA query_only={'ON' if read_only else 'OFF'}")
        con.execute("PRAGMA synchronous=NORMAL")
    except sqlite3.Error as error:
        raise refusal(path, error) from error
    return con


def check(con: sqlite3.Connection, path: Path) -> None:
    """Raise StoreError where what was opened is no store of ours, whatever lay there before, or has tables that are not ours."""
    if con.execute("PRAGMA application_id").fetchone() != (APPLICATION_ID,):
        raise StoreError(_called(path), "another file was put in its place meanwhile", "Do it again")
    check_schema(con, path)


def create(path: Path, fill: Callable[[sqlite3.Connection], object]) -> None:
    """Make a new store, mode 0600, that ``fill`` gives its tables. Does nothing where another process was faster.

    It is made in a folder of its own and put in place when whole: nobody ever sees half of it, and whatever ends the making,
    nothing of it stays. Raises StoreError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with scratch(path.parent) as folder:
            draft = folder / path.name
            draft.touch(mode=0o600)
            _fill(draft, fill)
            _put(draft, path)
    except sqlite3.Error as error:
        raise refusal(path, error) from error
    except OSError as error:
        raise StoreError(_called(path), f"it cannot be made ({error.strerror})", _OTHER) from error
    except InputError as error:
        reason = getattr(error.__cause__, "strerror", None) or error.why
        raise StoreError(_called(path), f"it cannot be made ({reason})", _OTHER) from error


def _fill(draft: Path, fill: Callable[[sqlite3.Connection], object]) -> None:
    """Make ``draft`` a store. It has a write-ahead log only from the end on: where closing finds no room to bring what is in
    the log into the file, it says nothing, and the file alone would be a damaged store.
    """
    con = connect(draft, read_only=False)
    try:
        con.execute(f"PRAGMA application_id={APPLICATION_ID}")
        fill(con)
        con.execute("PRAGMA journal_mode=WAL")
    finally:
        con.close()


def refusal(path: Path, error: sqlite3.Error) -> StoreError:
    """What to say about ``error``. SQLite's own words stay out: they can hold names out of a file."""
    name = getattr(error, "sqlite_errorname", "") or type(error).__name__
    for start, why, next_step in (
        ("SQLITE_FULL", "there is no room left to write", "Free some space and do it again: what was stored is whole"),
        (
            "SQLITE_IOERR_SHMSIZE",
            "there is no room left beside it",
            "Free some space and do it again: what was stored is whole",
        ),
        ("SQLITE_BUSY", "another process has been writing to it for too long", "Try again when it is done"),
        ("SQLITE_READONLY", "it may not be written to", _OTHER),
        ("SQLITE_CANTOPEN", "it or its folder cannot be opened", _OTHER),
        ("SQLITE_PERM", "it may not be opened", _OTHER),
        ("SQLITE_IOERR", "the disk reported an error", "Check the disk, then do it again"),
        ("SQLITE_CORRUPT", "it is damaged", "Move it away and import the captures again"),
        ("SQLITE_NOTADB", "it is no SQLite database", _OTHER),
        ("SQLITE_INTERRUPT", "the question took too long", "Ask for less"),
        ("SQLITE_AUTH", "what this would run is not allowed", _ANEW),
        ("SQLITE_TOOBIG", "a value in it is longer than any of ours", "Move it away and import the captures again"),
    ):
        if name.startswith(start):
            return StoreError(_called(path), why, next_step)
    return StoreError(_called(path), f"SQLite refused ({name})", "Move it away and import the captures again")


def refusing(
    method: Callable[Concatenate[Owner, Given], Answer],
) -> Callable[Concatenate[Owner, Given], Answer]:
    """``method`` of an object with a ``path``, whose SQLite errors come out as StoreError."""

    @wraps(method)
    def careful(self: Owner, /, *args: Given.args, **kwargs: Given.kwargs) -> Answer:
        try:
            return method(self, *args, **kwargs)
        except sqlite3.Error as error:
            raise refusal(self.path, error) from error

    return careful


def _put(draft: Path, path: Path) -> None:
    """Give ``draft`` its name unless that name is taken."""
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links: the moment between looking and renaming cannot be closed there
        if not path.exists():
            draft.rename(path)


def _writable(path: Path) -> bool:
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(path.name + ending)


def _size(path: Path) -> int:
    """Bytes of a file, 0 where there is none."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _called(path: Path) -> str:
    return f"the store {path.name!r}"
