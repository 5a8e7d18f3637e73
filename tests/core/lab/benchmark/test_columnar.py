"""An SQLite file goes into columns and comes back as it was."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from teller_core.errors import FormatError
from teller_core.lab.benchmark import columnar
from teller_core.lab.benchmark.columnar import PRAGMAS, columns_of, restore

INT64 = st.integers(-(2**63), 2**63 - 1)
CELL = st.one_of(
    st.none(), INT64, st.floats(allow_nan=False), st.text(st.characters(exclude_categories=["Cs"])), st.binary()
)
ROWS = st.lists(st.tuples(CELL, INT64, CELL), max_size=30)


def made(path: Path, rows: list[tuple[object, int, object]]) -> None:
    with closing(sqlite3.connect(path)) as con:
        con.execute("PRAGMA user_version = 7")
        con.execute("PRAGMA application_id = 99")
        con.execute('CREATE TABLE "of things" (a, "b c" INTEGER, d)')
        con.execute("CREATE TABLE none (x INTEGER PRIMARY KEY, y)")
        con.execute("CREATE TABLE keyed (k TEXT, v, PRIMARY KEY (k)) WITHOUT ROWID")
        con.execute('CREATE UNIQUE INDEX found ON "of things" (rowid_, a)'.replace("rowid_", '"b c"'))
        con.executemany('INSERT OR IGNORE INTO "of things" VALUES (?, ?, ?)', rows)
        con.executemany("INSERT INTO keyed VALUES (?, ?)", [("b", 1), ("a", b"\0\xff")])
        con.commit()


def dump(path: Path) -> list[object]:
    with closing(sqlite3.connect(path)) as con:
        tables = ("of things", "none", "keyed")
        kept: list[object] = [con.execute(f'SELECT *, typeof(1) FROM "{name}"').fetchall() for name in tables]
        kept += [con.execute(f"PRAGMA {name}").fetchone() for name in ("user_version", "application_id")]
        kept.append(con.execute("SELECT type, name, sql FROM sqlite_master ORDER BY rowid").fetchall())
        return kept


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=ROWS)
def test_what_comes_back_has_the_same_schema_and_rows(tmp_path: Path, rows: list[tuple[object, int, object]]) -> None:
    for path in tmp_path.iterdir():
        path.unlink()
    made(tmp_path / "one", rows)
    data = columns_of(tmp_path / "one")
    restore(data, tmp_path / "two")
    assert dump(tmp_path / "two") == dump(tmp_path / "one")
    assert columns_of(tmp_path / "two") == data


def test_what_is_damaged_is_refused(tmp_path: Path) -> None:
    made(tmp_path / "one", [(None, number, "text") for number in range(20)])
    data = columns_of(tmp_path / "one")
    for number, damaged in enumerate((b"", data[:20], data[:-9], data[:8] + b"[" + data[9:])):
        with pytest.raises(FormatError):
            restore(damaged, tmp_path / f"bad{number}")


@pytest.mark.parametrize("sql", ["ATTACH '{other}' AS other", "VACUUM INTO '{other}'", "DETACH main"])
def test_what_stands_as_a_schema_opens_no_other_file(tmp_path: Path, sql: str) -> None:
    head = {"schema": [["view", "x", sql.format(other=tmp_path / "other")]], "pragmas": dict.fromkeys(PRAGMAS, 0)}
    text = json.dumps({**head, "tables": {}}).encode()
    with pytest.raises(FormatError, match="damaged"):
        restore(len(text).to_bytes(8, "little") + text, tmp_path / "mine")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("head", [b"[" * 100_000, b"[]", b'{"schema": 1, "pragmas": []}', b"{}", b"nan"])
def test_a_head_that_is_none_is_damaged(tmp_path: Path, head: bytes) -> None:
    with pytest.raises(FormatError, match="damaged"):
        restore(len(head).to_bytes(8, "little") + head, tmp_path / "mine")


@pytest.mark.parametrize(("bound", "least"), [("MOST_FILE", 40_000), ("MOST_CELLS", 64)])
def test_a_file_that_would_take_more_than_a_life_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: str, least: int
) -> None:
    text = "x" * 1000  # once in the columns, in sixty cells of the file
    made(tmp_path / "one", [(text, number, text) for number in range(30)])
    data = columns_of(tmp_path / "one")
    assert len(data) < 40_000
    monkeypatch.setattr(columnar, bound, least)
    with pytest.raises(FormatError, match="damaged"):
        restore(data, tmp_path / "two")
    monkeypatch.setattr(columnar, bound, 8 * least)
    restore(data, tmp_path / "three")


def test_a_schema_that_makes_rows_without_end_is_damaged(tmp_path: Path) -> None:
    rows = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 9) SELECT x FROM n"
    head = {"schema": [["view", "x", f"CREATE TABLE x AS {rows}"]], "pragmas": dict.fromkeys(PRAGMAS, 0)}
    text = json.dumps({**head, "tables": {}}).encode()
    with pytest.raises(FormatError, match="damaged"):
        restore(len(text).to_bytes(8, "little") + text, tmp_path / "mine")


def test_parts_that_begin_before_the_end_of_others_are_damaged(tmp_path: Path) -> None:
    made(tmp_path / "one", [])
    data = columns_of(tmp_path / "one")
    stop = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:stop])
    sizes = head["tables"]["none"]
    sizes[0], sizes[5] = sizes[0] - 1, sizes[5] + 1  # a byte of the head is read as one of the first column
    text = json.dumps(head).encode()
    with pytest.raises(FormatError, match="damaged"):
        restore(len(text).to_bytes(8, "little") + text + data[stop:], tmp_path / "two")
