"""An SQLite file as columns: of each table one column behind the other, numbers as differences, byte by byte.

Rows of several captures of one recording say nearly the same, at other places of other pages. As columns they are runs that
repeat, and a file that is packed whole is a third of what it would be as pages. What comes back has the same schema and rows.
"""

import json
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from teller_core.errors import FormatError

PRAGMAS = ("application_id", "user_version")
KINDS = {b"null": 0, b"integer": 1, b"real": 2, b"text": 3, b"blob": 4}
"""Of a cell, as SQLite calls it, and the number that stands for it."""
MOST_FILE = 1 << 28
"""Bytes of a restored file: a text that many cells share is in it once a cell. The largest life kept takes a quarter of it."""
MOST_CELLS = 1 << 23
"""Of a table: an empty one takes a byte as a column, and eight while it is filled in. The largest life has half as many."""
PAGE = 4096
"""Bytes, SQLite's own choice since 3.12."""


def columns_of(path: Path) -> bytes:
    """All that the SQLite file at ``path`` holds: its schema and the rows of its tables in order."""
    with closing(sqlite3.connect(path)) as con:
        con.text_factory = bytes  # also what is no UTF-8 is kept
        schema = con.execute(
            "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        ).fetchall()
        texts = [[part.decode() for part in row] for row in schema]
        marks = {name: con.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS}
        tables: dict[str, list[int]] = {}
        body: list[bytes] = []
        for kind, name, _ in texts:
            if kind == "table":
                parts = [*_table(con, name)]
                tables[name] = [len(part) for part in parts]
                body += parts
    head = json.dumps({"schema": texts, "pragmas": marks, "tables": tables}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *body])


def restore(data: bytes, path: Path) -> None:
    """Write the SQLite file that ``data`` was made of to ``path``.

    Raises FormatError where it is damaged, or would take more than any life: MOST_FILE, MOST_CELLS.
    """
    try:
        stop = 8 + int.from_bytes(data[:8], "little")
        head: Mapping[str, Any] = json.loads(data[8:stop])
        with closing(sqlite3.connect(path)) as con:
            con.execute(f"PRAGMA page_size = {PAGE}")
            con.execute(f"PRAGMA max_page_count = {MOST_FILE // PAGE}")
            con.set_authorizer(_only_here)
            for name in PRAGMAS:
                con.execute(f"PRAGMA {name} = {int(head['pragmas'][name])}")
            for kind, name, sql in head["schema"]:
                con.execute(sql)
                if kind == "table":
                    sizes = head["tables"][name]
                    parts = [data[low:high] for low, high in _places(stop, sizes)]
                    stop += sum(sizes)
                    _fill(con, name, parts)
            con.commit()
    except (
        ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError, sqlite3.Error, sqlite3.Warning
    ) as error:  # fmt: skip
        raise FormatError(path.name, "it is damaged", "Take it from the repository again, or build it") from error


def _only_here(action: int, *of: str | None) -> int:
    """What is written as a schema may say anything: it opens no other file, and makes no rows of its own without end."""
    no = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_RECURSIVE)
    return sqlite3.SQLITE_DENY if action in no else sqlite3.SQLITE_OK


def _places(begin: int, sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    for size in sizes:
        if size < 0:  # it would read what was read before again
            raise ValueError("sizes")
        yield begin, begin + size
        begin += size


def _table(con: sqlite3.Connection, name: str) -> Iterator[bytes]:
    """Six parts a column: the kinds of its cells; integers; floats; which text or blob; their lengths; themselves."""
    rows = con.execute(f'SELECT {_typed(con, name)} FROM "{name}"').fetchall()
    whole = [*zip(*rows, strict=True)] or [()] * (2 * len(_names(con, name)))
    for cells, kinds in zip(whole[::2], whole[1::2], strict=True):
        yield bytes(KINDS[kind] for kind in kinds)
        yield _numbers([cell for cell, kind in zip(cells, kinds, strict=True) if kind == b"integer"])
        floats = [cell for cell, kind in zip(cells, kinds, strict=True) if kind == b"real"]
        yield _planes(np.array(floats, dtype="<f8").view("<u8"))
        distinct: dict[bytes, int] = {}
        used = [cell for cell, kind in zip(cells, kinds, strict=True) if kind in (b"text", b"blob")]
        yield _numbers([distinct.setdefault(cell, len(distinct)) for cell in used])
        yield _numbers([len(cell) for cell in distinct])
        yield b"".join(distinct)


def _names(con: sqlite3.Connection, name: str) -> list[str]:
    return [
        row[1].decode() if isinstance(row[1], bytes) else row[1] for row in con.execute(f'PRAGMA table_info("{name}")')
    ]


def _typed(con: sqlite3.Connection, name: str) -> str:
    return ", ".join(f'"{column}", typeof("{column}")' for column in _names(con, name))


def _fill(con: sqlite3.Connection, name: str, parts: Sequence[bytes]) -> None:
    if len(parts) % 6 or len(parts) != 6 * len(_names(con, name)):
        raise ValueError("parts")
    if sum(len(kinds) for kinds in parts[::6]) > MOST_CELLS:
        raise ValueError("cells")
    columns = [_column(parts[low : low + 6]) for low in range(0, len(parts), 6)]
    marks = ", ".join("?" * len(columns))
    con.executemany(f'INSERT INTO "{name}" VALUES ({marks})', zip(*columns, strict=True))


def _column(parts: Sequence[bytes]) -> list[Any]:
    kinds = np.frombuffer(parts[0], dtype=np.uint8)
    distinct: list[bytes] = [parts[5][low:high] for low, high in _places(0, _values(parts[4]).tolist())]
    decoded: dict[bytes, str] = {}  # one text for all cells that share it
    kept: list[bytes] = [distinct[number] for number in _values(parts[3]).tolist()]
    text = kinds[kinds >= KINDS[b"text"]] == KINDS[b"text"]
    found = np.full(len(kinds), None, dtype=np.object_)
    found[kinds == KINDS[b"integer"]] = _values(parts[1]).tolist()
    found[kinds == KINDS[b"real"]] = _unplaned(parts[2]).view("<f8").tolist()
    for place, cell, is_text in zip(np.flatnonzero(kinds >= KINDS[b"text"]).tolist(), kept, text.tolist(), strict=True):
        if is_text and cell not in decoded:
            decoded[cell] = cell.decode("utf-8", "surrogatepass")
        found[place] = decoded[cell] if is_text else cell
    return found.tolist()


def _numbers(values: Sequence[int]) -> bytes:
    """A byte that says whether they are differences, then their planes: whichever is smaller when packed."""
    plain = np.array(values, dtype="<i8")
    change = np.diff(plain, prepend=plain[:1] * 0)  # wraps around, and back
    kept = [bytes([number]) + _planes(_zigzag(each)) for number, each in enumerate((plain, change))]
    return min(kept, key=lambda each: len(zlib.compress(each, 1)))


def _values(data: bytes) -> npt.NDArray[np.int64]:
    small = _unplaned(data[1:])
    found = np.bitwise_xor((small >> np.uint64(1)).view(np.int64), -(small & np.uint64(1)).view(np.int64))
    return np.cumsum(found, dtype=np.int64) if data[:1] == b"\1" else found


def _zigzag(values: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return ((values << 1) ^ (values >> 63)).view("<u8")


def _planes(values: npt.NDArray[np.uint64]) -> bytes:
    """The first byte of each, then the second of each, and so on."""
    return values.view(np.uint8).reshape(-1, 8).T.tobytes()


def _unplaned(data: bytes) -> npt.NDArray[np.uint64]:
    return np.ascontiguousarray(np.frombuffer(data, dtype=np.uint8).reshape(8, -1).T).view("<u8").reshape(-1)
