"""Columns of long traces lie in files: nothing but their place differs."""

from pathlib import Path
from weakref import ref

import numpy as np
import pytest

from teller_core.data import long_columns
from teller_core.data.long_columns import file_of, kept, let_go, mapped, spool, taken
from teller_core.ingest.kineto import collected
from teller_core.ingest.kineto import reader as kineto
from teller_core.rebuild.nest import nest

TRACES = sorted(Path(__file__).parents[2].glob("data/kineto/*/input.json"))


def in_file(column: np.ndarray) -> bool:
    return file_of(column) is not None


def test_a_short_column_is_kept_as_it_is() -> None:
    column = np.arange(5)
    assert kept(column) is column


def test_a_long_column_lies_in_a_file_and_outlives_its_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_columns, "LONG", 100)
    column = np.arange(101, dtype=np.int32)[::-1]
    long = kept(column)
    assert in_file(long)
    let_go(long, column)
    assert long.tolist() == column.tolist()
    long[3] = 7
    let_go(long)
    assert long[3] == 7


def test_files_of_columns_have_no_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(long_columns, "LONG", 2)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    column = kept(np.arange(9))
    assert in_file(column)
    assert not list(tmp_path.iterdir())


def test_parts_that_are_written_out_one_by_one_make_one_column() -> None:
    file = spool([np.arange(3), np.arange(2)])
    spool([np.array([9])], file)
    assert mapped(file, np.dtype(np.int64)).tolist() == [0, 1, 2, 0, 1, 9]


@pytest.mark.parametrize("long", [0, 1000])
def test_what_is_taken_a_piece_at_a_time_is_what_indexing_takes(long: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_columns, "LONG", long)
    monkeypatch.setattr(long_columns, "PIECE", 7)
    table = np.arange(40, 60, dtype=np.int64)
    for count in (0, 1, 7, 20):
        index = (np.arange(count, dtype=np.int32) * 3) % 21 - 1
        found = taken(table, index)
        assert found.dtype == table.dtype
        assert found.tolist() == table[index].tolist()
        assert in_file(found) == (count > long)


def test_a_trace_that_nobody_else_holds_is_let_go_while_it_is_nested() -> None:
    given = [kineto.read(TRACES[0])]
    column = ref(given[0].start)
    tree = nest(given.pop())
    assert column() is None
    assert len(tree)


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.parent.name)
def test_a_trace_in_files_reads_and_nests_as_one_in_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = nest(kineto.read(path))
    monkeypatch.setattr(long_columns, "LONG", 0)
    after = nest(kineto.read(path))
    for one, other in zip(before.columns(), after.columns(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(map(in_file, after.columns())) or not len(after)


def test_blocks_beyond_the_first_are_written_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    event = '{"ph": "X", "ts": %d.5, "dur": 2, "name": "a%d", "pid": 1, "tid": %d, "cat": "cpu_op"}'
    events = ",".join(event % (n, n % 7, n % 3) for n in range(100))
    path = tmp_path / "trace.json"
    path.write_text(f'{{"traceEvents": [{events}]}}')
    before = kineto.read(path)
    monkeypatch.setattr(collected, "BLOCK_ROWS", 8)
    grown = kineto.read(path)
    assert grown.start.tolist() == before.start.tolist()
    assert grown.start.base is None  # no more is kept than there are rows
    monkeypatch.setattr(collected, "LONG", 20)
    monkeypatch.setattr(long_columns, "LONG", 20)
    after = kineto.read(path)
    assert in_file(after.start)
    assert after.start.tolist() == before.start.tolist()
    assert after.name.tolist() == before.name.tolist()
    after.check()
