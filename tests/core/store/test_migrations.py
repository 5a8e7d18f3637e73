"""The schema grows step by step, with people's captures inside, and holds every column there is."""

import sqlite3
from pathlib import Path

import pytest
from sqlite_utils import Database

from teller_core.data.capture import Rank
from teller_core.data.records import FileRead
from teller_core.errors import StoreError
from teller_core.store.connect import connect, create
from teller_core.store.migrations import MIGRATIONS, migrate, version
from teller_core.store.store import Store
from teller_core.store.tables import NAMES, kinds
from tests.core.store.made import assessment_of, capture_of, report_of


def columns_of(con: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in con.execute(f"PRAGMA table_info({table})")]


def schema(con: sqlite3.Connection) -> list[tuple[str, str]]:
    return con.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall()


def test_they_are_numbered_in_order():
    assert [step.__name__[:5] for step in MIGRATIONS] == [f"m{number:03}_" for number in range(1, len(MIGRATIONS) + 1)]
    assert all(step.__doc__ for step in MIGRATIONS)


def test_from_blank_they_make_a_column_for_every_column_of_the_tables(tmp_path: Path):
    path = tmp_path / "teller.db"
    create(path, migrate)
    con = connect(path, read_only=True)
    assert version(con) == len(MIGRATIONS)
    for table, name in NAMES.items():
        assert set(columns_of(con, name)) == {"capture", "position", *kinds(table)}, f"{name} needs a migration"
    assert set(columns_of(con, "files")) == {"capture", "position", *FileRead._fields}
    assert set(columns_of(con, "ranks")) == {"capture", "position", *Rank.__dataclass_fields__} - {"tree"}
    con.close()


@pytest.mark.parametrize("seen", range(len(MIGRATIONS)))
@pytest.mark.parametrize("read_only", [True, False])
def test_from_every_earlier_schema_they_end_at_the_same_one(tmp_path: Path, seen: int, read_only: bool):
    new, old = tmp_path / "new.db", tmp_path / "old.db"
    create(new, migrate)
    create(old, lambda con: migrate(con, MIGRATIONS[:seen]))
    if seen:
        con = connect(old, read_only=False)
        con.execute("INSERT INTO captures (key, id, name) VALUES (1, 'ff', 'from before')")
        con.execute("INSERT INTO steps (capture, position, scheduled) VALUES (1, 0, 42)")
        con.close()
    Store.open(old, read_only=read_only).close()
    with Store.open(old) as store:
        con, blank = store._con, connect(new, read_only=True)  # pyright: ignore[reportPrivateUsage]
        assert schema(con) == schema(blank)
        assert version(con) == len(MIGRATIONS)
        blank.close()
        if seen:
            assert store.knows("ff")
            assert con.execute("SELECT scheduled FROM steps WHERE capture = 1").fetchall() == [(42,)]
        capture = capture_of("0a")
        assert store.save(capture, assessment_of({}), [], report_of(capture))


def test_a_new_one_finds_whole_captures_in_place(tmp_path: Path):
    path = tmp_path / "teller.db"
    capture = capture_of("0a")
    with Store.open(path) as store:
        store.save(capture, assessment_of({}), [], report_of(capture))
        con = store._con  # pyright: ignore[reportPrivateUsage]
        assert migrate(con, (*MIGRATIONS, noted)) == 1
        assert version(con) == len(MIGRATIONS) + 1
        assert "note" in columns_of(con, "steps")
        assert store.steps("0a").scheduled.tolist() == capture.steps.scheduled.tolist()


def noted(db: Database) -> None:
    db.table("steps").add_column("note", str, not_null_default="")


def test_one_that_fails_leaves_the_version_before_it(tmp_path: Path):
    path = tmp_path / "teller.db"
    create(path, migrate)
    con = connect(path, read_only=False)
    before = schema(con)

    def broken(db: Database) -> None:
        db.table("extra").create({"a": int})
        db.conn.execute("SELECT nothing FROM nowhere")

    with pytest.raises(sqlite3.OperationalError):
        migrate(con, (*MIGRATIONS, broken))
    assert (version(con), schema(con)) == (len(MIGRATIONS), before)
    con.close()


def test_an_older_store_that_may_not_be_written_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "teller.db"
    create(path, lambda con: migrate(con, MIGRATIONS[:1]))
    monkeypatch.setattr("teller_core.store.connect._writable", lambda _: False)
    with pytest.raises(StoreError, match="may not be written to"):
        Store.open(path, read_only=True)
