"""Pages of a SQLite database, read without its engine, against that engine."""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from teller_core.errors import TellerError
from teller_core.ingest.nsight.cells import INTEGER, MISSING, NAME, ROW_ID, TEXT
from teller_core.ingest.nsight.pages import Pages, open_pages
from teller_core.ingest.nsight.rows import MAX_RECORD, Reading, Wanted
from teller_core.ingest.nsight.schema import columns_of, tables

WHOLE = st.one_of(
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.sampled_from([0, 1, -1, 127, 128, -128, -129, 2**15, -(2**15), 2**23, 2**31, 2**47, 2**48, 2**62, -(2**62)]),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
VALUES = st.one_of(st.none(), WHOLE, st.floats(allow_nan=False), TEXTS, st.binary(max_size=300))
LONG = st.tuples(TEXTS, st.sampled_from([1, 1, 30, 400, 6000]))
FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]


@contextmanager
def opened(path: Path) -> Generator[Pages]:
    with path.open("rb", buffering=0) as file:
        yield open_pages(cast(BinaryIO, file), path.name, path.stat().st_size)


def rows_of(path: Path, table: str, kinds: dict[str, int]) -> list[tuple[Any, ...]]:
    with opened(path) as pages:
        known = tables(pages)[table]
        reading = Reading(pages)
        wanted = [Wanted(known.columns[n], ROW_ID if n in known.row_id else kind) for n, kind in kinds.items()]
        found = [row for block in reading.blocks(known.root, wanted) for row in zip(*block.tolist(), strict=True)]
        assert reading.count(known.root) == len(found)
        assert reading.damaged == 0
        texts = [kind in (TEXT, NAME) for kind in kinds.values()]
        return [
            tuple(reading.text(v) if is_text and v != MISSING else v for v, is_text in zip(row, texts, strict=True))
            for row in found
        ]


@given(
    rows=st.lists(st.tuples(VALUES, VALUES, LONG, VALUES, WHOLE), max_size=40),
    page_size=st.sampled_from([512, 1024, 4096, 65536]),
    encoding=st.sampled_from(["UTF-8", "UTF-16le", "UTF-16be"]),
    gone=st.integers(1, 5),
)
@example(rows=[(None, 2**63 - 1, ("xyz", 20_000), b"", 1)], page_size=512, encoding="UTF-8", gone=5)
@settings(max_examples=120, suppress_health_check=FIXTURES, deadline=None)
def test_every_value_is_the_one_that_the_engine_reads(
    tmp_path: Path, rows: list[tuple[Any, ...]], page_size: int, encoding: str, gone: int
) -> None:
    path = tmp_path / "some.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as base, base:
        base.executescript(f"PRAGMA page_size = {page_size}; PRAGMA encoding = '{encoding}';")
        base.execute("CREATE TABLE other (a)")
        base.execute('CREATE TABLE "the rows" (a BLOB, b BLOB, "long, text" BLOB, d BLOB, key INTEGER PRIMARY KEY)')
        for k, (a, b, (text, times), d, key) in enumerate(rows):
            base.execute('INSERT OR REPLACE INTO "the rows" VALUES (?, ?, ?, ?, ?)', (a, b, text * times, d, key))
            base.execute("INSERT INTO other VALUES (?)", [k])
        base.execute(f'DELETE FROM "the rows" WHERE key % 6 = {gone}')
        expected = base.execute('SELECT a, "long, text", d, key FROM "the rows" ORDER BY key').fetchall()
    kinds = {"a": INTEGER, "long, text": TEXT, "d": TEXT, "key": INTEGER}
    assert rows_of(path, "the rows", kinds) == [
        (
            a if isinstance(a, int) else MISSING,
            _cut(text, encoding),
            _cut(d, encoding) if isinstance(d, str) else MISSING,
            key,
        )
        for a, text, d, key in expected
    ]


def _cut(text: str, encoding: str) -> str:
    return text.encode(encoding.replace("UTF-16", "utf-16-"))[:4096].decode(
        encoding.replace("UTF-16", "utf-16-"), "replace"
    )


def many(path: Path, rows: int = 5000, page_size: int = 512) -> Path:
    with closing(sqlite3.connect(path)) as base, base:
        base.execute(f"PRAGMA page_size = {page_size}")
        base.execute("CREATE TABLE a (x INTEGER, y TEXT)")
        base.execute("CREATE TABLE b (x INTEGER, y TEXT)")
        for k in range(rows):
            base.execute(f"INSERT INTO {'ab'[k % 2]} VALUES (?, ?)", (k, "y" * (k % 50)))
    return path


def test_tables_that_grew_into_one_another_are_read_in_the_order_of_their_rows(tmp_path: Path) -> None:
    path = many(tmp_path / "many.db")
    assert [x for (x,) in rows_of(path, "b", {"x": INTEGER})] == list(range(1, 5000, 2))


def test_ids_are_cut_out_of_names_and_out_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "names.db"
    names = [
        "aten::mul, op_id = 322567",
        "FlashAttnFunc, seq = 45368, op_id = 9",
        "aten::mm, seq = 1, op_id = 2, sizes = [[1, 2]]",
        "step, seq = none",
        ", op_id = ",
        "plain",
    ]
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE n (x TEXT)")
        base.executemany("INSERT INTO n VALUES (?)", [(name,) for name in names])
    assert [x for (x,) in rows_of(path, "n", {"x": TEXT})] == names
    cut = [x.split("\x1f") for (x,) in rows_of(path, "n", {"x": NAME})]
    assert cut == [
        ["aten::mul", ""],
        ["FlashAttnFunc", "", ""],
        ["aten::mm", "", ", sizes = [[1, 2]]"],
        ["step, seq = none"],
        [", op_id = "],
        ["plain"],
    ]


def test_a_row_of_more_than_a_mebibyte_is_counted_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "long.db"
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("CREATE TABLE n (x INTEGER, y TEXT)")
        base.executemany("INSERT INTO n VALUES (?, ?)", [(1, "a"), (2, "b" * (MAX_RECORD + 10)), (3, "c")])
    with opened(path) as pages:
        reading = Reading(pages)
        blocks = [block.copy() for block in reading.blocks(tables(pages)["n"].root, [Wanted(0, INTEGER)])]
    assert np.concatenate(blocks, axis=1).tolist() == [[1, 3]]
    assert reading.too_long == 1


@pytest.mark.parametrize(
    ("text", "columns", "row_id"),
    [
        ("CREATE TABLE t (a INTEGER PRIMARY KEY, b)", ["a", "b"], {"a"}),
        ("CREATE TABLE t (a INTEGER NOT NULL PRIMARY KEY, b)", ["a", "b"], {"a"}),
        ("CREATE TABLE t (a INT PRIMARY KEY, b)", ["a", "b"], set[str]()),
        ("CREATE TABLE t (a INTEGER PRIMARY KEY DESC, b)", ["a", "b"], set[str]()),
        ("CREATE TABLE t (a INTEGER, b, PRIMARY KEY (a))", ["a", "b"], {"a"}),
        ("CREATE TABLE t (a INTEGER, b, PRIMARY KEY (a, b))", ["a", "b"], set[str]()),
        ('CREATE TABLE "t (" ("a, b" TEXT, [c(] BLOB, `d`)', ["a, b", "c(", "d"], set[str]()),
        ("CREATE TABLE t (a -- not, b\n, c /* nor, d */ TEXT CHECK (c > ','), UNIQUE (a))", ["a", "c"], set[str]()),
        ("CREATE TABLE t (a, b AS (a + 1), c AS (a) STORED, d DECIMAL(10, 2))", ["a", "c", "d"], set[str]()),
        ("CREATE TABLE t (a REFERENCES u(x), b TEXT DEFAULT 'x,y')", ["a", "b"], set[str]()),
    ],
)
def test_columns_stand_where_the_engine_puts_them(text: str, columns: list[str], row_id: set[str]) -> None:
    found, keys = columns_of(text)
    assert (list(found), list(found.values()), set(keys)) == (columns, list(range(len(columns))), row_id)
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute(text)
        name = base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchone()[0]
        stored = [row[1] for row in base.execute(f'PRAGMA table_xinfo("{name}")') if row[6] != 2]
    assert stored == columns


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
@settings(max_examples=150, suppress_health_check=FIXTURES, deadline=None)
def test_a_damaged_file_is_refused_or_read_in_part_and_never_worse(tmp_path: Path, seed: int, bytes_: int) -> None:
    path = tmp_path / "many.db"
    if not path.exists():
        many(path, 600)
    rng = np.random.default_rng(seed)
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8).copy()
    where = rng.integers(0, len(content), bytes_) if seed % 2 else rng.integers(0, 1024, bytes_)
    content[where] = rng.integers(0, 256, bytes_)
    bad = tmp_path / "bad.db"
    bad.write_bytes(content[: rng.integers(100, len(content))].tobytes() if seed % 5 == 0 else content.tobytes())
    try:
        with opened(bad) as pages:
            reading = Reading(pages)
            for table in tables(pages).values():
                wanted = [Wanted(place, TEXT if name == "y" else INTEGER) for name, place in table.columns.items()]
                rows = sum(block.shape[1] for block in reading.blocks(table.root, wanted))
                assert rows <= len(content)
    except TellerError as error:
        assert "\n" not in str(error)


def test_pages_in_a_circle_end(tmp_path: Path) -> None:
    path = many(tmp_path / "many.db", 4000)
    content = bytearray(path.read_bytes())
    with closing(sqlite3.connect(path)) as base:
        root = base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'a'").fetchone()[0]
    at = (root - 1) * 512
    assert content[at] == 5
    content[at + 8 : at + 12] = root.to_bytes(4, "big")
    path.write_bytes(content)
    with pytest.raises(TellerError, match="do not hang together"):
        rows_of(path, "a", {"x": INTEGER})


def test_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    path = many(tmp_path / "many.db", 500)
    path.write_bytes(path.read_bytes()[:-700])
    with pytest.raises(TellerError, match="ends early"), opened(path):
        pass
