"""Files that are no store of ours are refused unchanged, and a store survives what happens to files."""

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from teller_core.errors import StoreError
from teller_core.store.connect import APPLICATION_ID
from teller_core.store.migrations import MIGRATIONS
from teller_core.store.store import Store
from tests.core.store.made import assessment_of, capture_of, report_of, tree_of

ROOT = Path(__file__).parents[3]


def keep(store: Store, identity: str, spans: int = 50) -> None:
    """Save a plain capture."""
    capture = capture_of(identity, tree_of(spans))
    store.save(capture, assessment_of({}), [], report_of(capture))


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as con:
        con.execute("CREATE TABLE people (name TEXT)")
    con.close()


def foreign_wal(path: Path) -> None:
    con = sqlite3.connect(path)
    con.execute("PRAGMA journal_mode=WAL")
    con.execute("CREATE TABLE people (name TEXT)")
    con.close()


def of_another_application(path: Path) -> None:
    foreign(path)
    con = sqlite3.connect(path)
    con.execute("PRAGMA application_id=7")
    con.close()


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("make", "why"),
    [
        (foreign, "the database of another program"),
        (foreign_wal, "the database of another program"),
        (of_another_application, "the database of another program"),
        (lambda path: path.write_text("ts,dur\n1,2\n"), "no SQLite database"),
        (lambda path: path.write_bytes(b"SQLite format 3\0"), "the database of another program"),
        (lambda path: path.write_bytes(b""), "the file is empty"),
        (lambda path: path.mkdir(), "cannot be read"),
    ],
)
def test_what_is_no_store_is_refused_and_left_alone(tmp_path: Path, make, why: str, read_only: bool):
    path = tmp_path / "some file.db"
    make(path)
    before = {p.name: (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in tmp_path.iterdir()}
    with pytest.raises(StoreError, match=why) as refused:
        Store.open(path, read_only=read_only)
    after = {p.name: (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in tmp_path.iterdir()}
    assert after == before
    assert str(refused.value).startswith("the store 'some file.db': ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_pipe_or_a_device_is_refused_without_waiting_for_it(tmp_path: Path, read_only: bool):
    pipe = tmp_path / "pipe.db"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        with pytest.raises(StoreError, match="it is no regular file"):
            Store.open(path, read_only=read_only)


def test_reading_makes_no_store(tmp_path: Path):
    with pytest.raises(StoreError, match="Import something first"):
        Store.open(tmp_path / "teller.db", read_only=True)
    assert list(tmp_path.iterdir()) == []


def test_a_new_store_is_for_its_owner_alone_and_leaves_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "deep" / "teller.db"
    with Store.open(path) as store:
        keep(store, "0a")
        modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    assert set(modes.values()) == {0o600}
    assert [p.name for p in path.parent.iterdir()] == ["teller.db"]


def test_the_file_says_whose_it_is_and_how_new(tmp_path: Path):
    path = tmp_path / "teller.db"
    Store.open(path).close()
    head = path.read_bytes()[:100]
    assert int.from_bytes(head[68:72], "big") == APPLICATION_ID
    assert int.from_bytes(head[60:64], "big") == len(MIGRATIONS)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_store_of_a_newer_program_is_refused(tmp_path: Path, read_only: bool):
    path = tmp_path / "teller.db"
    Store.open(path).close()
    con = sqlite3.connect(path)
    con.execute(f"PRAGMA user_version={len(MIGRATIONS) + 1}")
    con.close()
    with pytest.raises(StoreError, match="a newer TELLER has written it"):
        Store.open(path, read_only=read_only)


def test_a_reader_cannot_write(tmp_path: Path):
    path = tmp_path / "teller.db"
    Store.open(path).close()
    with Store.open(path, read_only=True) as store, pytest.raises(StoreError, match="not allowed"):
        keep(store, "0a")


def test_a_path_below_a_file_or_in_no_folder_is_refused(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="cannot be"):
            Store.open(tmp_path / "file" / "teller.db", read_only=read_only)


@contextmanager
def powerless() -> Iterator[Path]:
    """A folder, and no right to more than the modes of its files say, even where the tests run as root."""
    if os.name == "nt":
        pytest.skip("needs the file modes of Unix")
    with TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Act as a user without rights, where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_store_on_a_disk_that_cannot_be_written_is_read_and_not_written():
    with powerless() as folder:
        path = folder / "teller.db"
        with Store.open(path) as store:
            keep(store, "0a")
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        with as_nobody():
            with Store.open(path, read_only=True) as store:
                assert store.resolve() == "0a"
                assert len(store.tree_rows("0a", 0)) == 50
            with pytest.raises(StoreError, match="may not be written to"):
                Store.open(path)
            with pytest.raises(StoreError, match="cannot be made"):
                Store.open(folder / "other.db")
        os.chmod(folder, 0o755)


def test_a_store_that_may_not_be_read_is_refused():
    with powerless() as folder:
        path = folder / "teller.db"
        Store.open(path).close()
        os.chmod(path, 0o000)
        with as_nobody(), pytest.raises(StoreError, match="cannot be read"):
            Store.open(path, read_only=True)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds the size of files as Linux does")
def test_a_store_that_finds_no_room_to_be_made_is_whole_or_not_there(tmp_path: Path):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    outcomes: set[bool] = set()
    for size in range(1 << 12, 1 << 19, 5 << 12):
        path = tmp_path / str(size) / "t.db"
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            Store.open(path).close()
        except StoreError:
            pass
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        outcomes.add(path.exists())
        assert [each.name for each in path.parent.iterdir()] == ["t.db"] * path.exists()
        with Store.open(path) as store:
            assert store.captures() == []
    assert outcomes == {False, True}


def test_a_full_disk_keeps_what_was_stored(tmp_path: Path):
    path = tmp_path / "teller.db"
    with Store.open(path) as store:
        keep(store, "0a")
        con = store._con  # pyright: ignore[reportPrivateUsage]
        (pages,) = con.execute("PRAGMA page_count").fetchone()
        con.execute(f"PRAGMA max_page_count={pages + 4}")
        with pytest.raises(StoreError, match="no room left"):
            keep(store, "0b", spans=30_000)
        assert store.resolve() == "0a"
    with Store.open(path, read_only=True) as store:
        assert [report.id for report in store.captures()] == ["0a"]
        assert len(store.tree_rows("0a", 0)) == 50
    with Store.open(path) as store:
        keep(store, "0b", spans=30_000)
        assert len(store.tree_rows("0b", 0)) == 30_000


def run(code: str, *given: object) -> "subprocess.Popen[str]":
    """A process that runs ``code`` with the tests' helpers at hand."""
    head = "import sys, os, signal\nfrom pathlib import Path\nfrom teller_core.store.store import Store\n"
    head += "import teller_core.store.captures as kept\nfrom tests.core.store.made import *\npath = Path(sys.argv[1])\n"
    command = [sys.executable, "-c", head + code, *map(str, given)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_killed_in_the_middle_of_saving_leaves_no_half_capture(tmp_path: Path):
    path = tmp_path / "teller.db"
    with Store.open(path) as store:
        keep(store, "0a")
    process = run(
        """
def die(*_):
    print("spans are written", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
kept.keep_spooled = die
store = Store.open(path)
store._con.execute("PRAGMA cache_size=4")  # so that pages are in the log before anything is committed
capture = capture_of("0b", tree_of(60_000))
store.save(capture, assessment_of({}), [], report_of(capture))
""",
        path,
    )
    said, _ = process.communicate()
    assert (said.strip(), process.returncode) == ("spans are written", -9)
    assert path.with_name("teller.db-wal").stat().st_size > 100_000
    with Store.open(path, read_only=True) as store:
        assert [report.id for report in store.captures()] == ["0a"]
        assert not store.knows("0b")
        assert len(store.tree_rows("0a", 0)) == 50
    with Store.open(path) as store:
        keep(store, "0b", spans=60_000)
        assert len(store.tree_rows("0b", 0)) == 60_000
        con = store._con  # pyright: ignore[reportPrivateUsage]
        assert con.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert con.execute("PRAGMA foreign_key_check").fetchall() == []


def test_killed_while_being_made_leaves_no_half_store(tmp_path: Path):
    path = tmp_path / "teller.db"
    process = run(
        """
import teller_core.store.store as module
real = module.migrate
def die(con):
    real(con)
    os.kill(os.getpid(), signal.SIGKILL)
module.migrate = die
Store.open(path)
""",
        path,
    )
    process.communicate()
    assert process.returncode == -9
    assert not path.exists()
    with Store.open(path) as store:
        keep(store, "0a")


def test_processes_that_save_at_once_all_end_whole(tmp_path: Path):
    path = tmp_path / "teller.db"
    code = """
capture = capture_of(sys.argv[2], tree_of(40_000, seed=int(sys.argv[2], 16)))
with Store.open(path) as store:
    print(store.save(capture, assessment_of({}), [], report_of(capture)))
"""
    processes = [run(code, path, identity) for identity in ("0a", "0b", "0a")]
    said = [process.communicate()[0].split()[-1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert said[1] == "True"
    assert sorted([said[0], said[2]]) == ["False", "True"]
    with Store.open(path, read_only=True) as store:
        assert sorted(report.id for report in store.captures()) == ["0a", "0b"]
        for identity in ("0a", "0b"):
            store.tree_rows(identity, 0).check()


def test_reading_goes_on_while_another_connection_saves(tmp_path: Path):
    path = tmp_path / "teller.db"
    with Store.open(path) as writer:
        keep(writer, "0a")
        con = writer._con  # pyright: ignore[reportPrivateUsage]
        con.execute("BEGIN IMMEDIATE")
        con.execute("UPDATE captures SET name = 'changed'")
        with Store.open(path, read_only=True) as reader:
            assert reader.capture("0a").name == "made"
        con.execute("ROLLBACK")


def test_waiting_too_long_for_another_process_is_said(tmp_path: Path):
    path = tmp_path / "teller.db"
    with Store.open(path) as first, Store.open(path) as second:
        first._con.execute("BEGIN IMMEDIATE")  # pyright: ignore[reportPrivateUsage]
        second._con.execute("PRAGMA busy_timeout=0")  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(StoreError, match="another process"):
            keep(second, "0a")
        first._con.execute("ROLLBACK")  # pyright: ignore[reportPrivateUsage]
        keep(second, "0a")


def test_a_damaged_file_is_refused(tmp_path: Path):
    path = tmp_path / "teller.db"
    with Store.open(path) as store:
        keep(store, "0a")
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(StoreError), Store.open(path, read_only=True) as store:
        store.captures()


@pytest.mark.parametrize("module", ["numba", "torch", "pandas", "scipy", "sqlite_utils"])
def test_reading_loads_none_of_the_heavy(tmp_path: Path, module: str):
    path = tmp_path / "teller.db"
    with Store.open(path) as store:
        keep(store, "0a")
    code = "s = Store.open(path, read_only=True); s.tree_rows('0a', 0); s.answer('0a', 1); print(sys.argv[2] in sys.modules)"
    head = "import sys\nfrom pathlib import Path\nfrom teller_core.store.store import Store\npath = Path(sys.argv[1])\n"
    command = [sys.executable, "-c", head + code, str(path), module]
    assert subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip() == "False"
