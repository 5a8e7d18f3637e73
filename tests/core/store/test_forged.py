"""Nothing of a store that somebody else has made is run, whatever it says it is, and none of it goes on without end."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from teller_core.errors import StoreError, UnknownName
from teller_core.store import guard
from teller_core.store.store import Store
from tests.core.store.forging import forged, store_at, with_journal, without_end
from tests.core.store.made import assessment_of, capture_of, report_of, tree_of

WITNESS = "CREATE TABLE witness (what TEXT)"
BOMB = """WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT i AS key, '0a' AS id, '{}' AS report, '' AS reference FROM n"""
TRIGGER = "CREATE TRIGGER t AFTER INSERT ON captures BEGIN INSERT INTO witness VALUES ('run'); END"
VIEW = f"CREATE VIEW captures AS {BOMB}"
HIDDEN = "INSERT INTO sqlite_master VALUES ('table', 'more', 'more', 0, 'CREATE /**/ VIRTUAL TABLE more USING dbstat')"
SCHEMAS = {
    "a trigger": (WITNESS, TRIGGER),
    "a view without an end": ("DROP TABLE captures", VIEW),
    "a virtual table": ("DROP TABLE learned", "CREATE VIRTUAL TABLE learned USING fts5(name)"),
    "a virtual table in disguise": (HIDDEN,),
    "a column that is computed": ("ALTER TABLE captures ADD COLUMN more TEXT AS (hex(zeroblob(500000000)))",),
    "a default that is computed": ("CREATE TABLE more (name TEXT DEFAULT (hex(zeroblob(500000000))))",),
    "a check": ("CREATE TABLE more (name TEXT CHECK (length(hex(zeroblob(500000000))) > 0))",),
    "an index of an expression": ("CREATE INDEX more ON captures (hex(id))",),
    "an index of some rows": ("CREATE INDEX more ON captures (id) WHERE hex(id) > 'a'",),
}


def ask_everything(path: Path) -> None:
    """What every question begins with."""
    with Store.open(path, read_only=True, deadline_s=20.0) as store:
        store.captures()
        store.capture(store.resolve())
        store.slow_rows("0a")
        store.operator_names("0a")
        store.operator_rows("0a", ["aten::mm"])
        store.learned_rows()


def add(path: Path) -> None:
    with Store.open(path) as store:
        store.resolve()


@pytest.mark.parametrize("use", [ask_everything, add])
@pytest.mark.parametrize("statements", SCHEMAS.values(), ids=SCHEMAS)
def test_a_store_with_more_than_tables_is_refused_and_left_as_it_is(
    tmp_path: Path, statements: tuple[str, ...], use: Callable[[Path], None]
):
    path = forged(tmp_path / "teller.db", *statements)
    before = path.read_bytes()
    with pytest.raises(StoreError, match="its tables are not as TELLER makes them") as refused:
        use(path)
    assert str(refused.value).startswith("the store 'teller.db': ") and "\n" not in str(refused.value)
    assert path.read_bytes() == before


def test_a_plain_copy_of_a_store_is_no_forgery(tmp_path: Path):
    ask_everything(store_at(tmp_path / "teller.db"))


def test_a_view_or_trigger_that_the_schema_hides_is_not_run_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("teller_core.store.connect.check_schema", lambda *_: None)
    path = forged(tmp_path / "view.db", "DROP TABLE captures", VIEW)
    with pytest.raises(StoreError, match="what this would run is not allowed"):
        ask_everything(path)
    path = forged(tmp_path / "trigger.db", WITNESS, TRIGGER)
    capture = capture_of("0b", tree_of(5))
    with Store.open(path) as store, pytest.raises(StoreError, match="what this would run is not allowed"):
        store.save(capture, assessment_of({}), [], report_of(capture))
    with closing(sqlite3.connect(path)) as con:
        assert con.execute("SELECT * FROM witness").fetchall() == []


@pytest.mark.parametrize(
    "sql",
    [
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n",
        "SELECT hex(zeroblob(1000))",
        "SELECT * FROM pragma_table_info('captures')",
        "SELECT load_extension('x')",
        "ATTACH 'other.db' AS other",
        "CREATE TEMP TABLE t (a)",
        "DELETE FROM captures",
        "CREATE TEMP VIEW v AS SELECT 1",
    ],
)
def test_a_reader_runs_nothing_but_questions_about_tables(tmp_path: Path, sql: str):
    with Store.open(store_at(tmp_path / "teller.db"), read_only=True) as store:
        con = store._con  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(sqlite3.DatabaseError, match=r"not authorized|prohibited|no such"):
            con.execute(sql)


def test_a_value_over_the_longest_of_ours_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = forged(tmp_path / "teller.db", f"UPDATE captures SET report = '{'x' * 100_000}'")
    monkeypatch.setattr(guard, "LARGEST", 50_000)
    with Store.open(path, read_only=True) as store, pytest.raises(StoreError, match="a value in it is longer than any"):
        store.captures()


@pytest.mark.parametrize(
    ("tree", "question"),
    [
        ("captures", Store.captures),
        ("idx_captures_id", Store.resolve),
        ("sqlite_autoindex_requests_1", lambda store: store.requests("0a")),
    ],
)
def test_rows_without_end_are_not_read_to_their_end(tmp_path: Path, tree: str, question: Callable[[Store], object]):
    path = without_end(tmp_path / "teller.db", tree)
    with (
        pytest.raises(StoreError, match=r"holds over 20000 captures|the question took too long"),
        Store.open(path, read_only=True) as store,
    ):
        question(store)


def test_a_journal_beside_a_store_is_not_played_back(tmp_path: Path):
    victim = tmp_path / "diary.txt"
    for read_only in (True, False):
        victim.write_text("dear diary")
        path = with_journal(tmp_path / f"{read_only}.db", victim)
        with pytest.raises(StoreError, match="a rollback journal lies beside it"):
            Store.open(path, read_only=read_only)
        assert victim.read_text() == "dear diary"
        with closing(sqlite3.connect(path)) as con:  # what it would have done
            con.execute("SELECT * FROM sqlite_master").fetchall()
        assert not victim.exists()


def test_a_file_that_takes_the_place_of_a_store_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = store_at(tmp_path / "teller.db")
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as con:
        con.execute("CREATE TABLE people (name TEXT)")

    def recognized(at: Path) -> bool:
        os.replace(other, at)
        return True

    monkeypatch.setattr("teller_core.store.store.recognize", recognized)
    with pytest.raises(StoreError, match="another file was put in its place meanwhile"):
        Store.open(path, read_only=True)


def test_reading_changes_nothing_of_the_file(tmp_path: Path):
    path = store_at(tmp_path / "teller.db")
    before = path.read_bytes(), path.stat().st_mtime_ns
    ask_everything(path)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    with Store.open(path, read_only=True) as store:
        con = store._con  # pyright: ignore[reportPrivateUsage]
        con.set_authorizer(None)
        con.execute("PRAGMA query_only=OFF")
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            con.execute("DELETE FROM captures")


def test_what_an_interrupted_writer_left_is_seen_by_a_reader_and_put_right_by_the_next_writer(tmp_path: Path):
    path = store_at(tmp_path / "teller.db")
    with closing(sqlite3.connect(path)) as con:
        con.execute("PRAGMA wal_autocheckpoint=0")
        con.execute("UPDATE captures SET name = 'later'")
        con.commit()
        left = {each: each.read_bytes() for each in tmp_path.iterdir() if not each.name.endswith("-shm")}
    for each in tmp_path.iterdir():
        each.unlink()
    for each, content in left.items():
        each.write_bytes(content)
    with Store.open(path, read_only=True) as store:
        assert store.capture("0a").name == "later"
    Store.open(path).close()
    assert [each.name for each in tmp_path.iterdir()] == ["teller.db"]
    with Store.open(path, read_only=True) as store:
        assert store.capture("0a").name == "later"


def test_unknown_names_are_still_told(tmp_path: Path):
    with (
        Store.open(store_at(tmp_path / "teller.db"), read_only=True) as store,
        pytest.raises(UnknownName, match="the one capture here does not begin like that"),
    ):
        store.resolve("ff")
