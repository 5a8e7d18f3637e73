"""Names of spans are counted when spans are stored, and of those that were stored before there were counts."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.trace import Trace
from teller_core.errors import StoreError
from teller_core.store.span_names import SpanNames, fill, names_of, read_names
from teller_core.store.store import Store
from tests.core.store.made import assessment_of, capture_of, report_of, tree_of


def counted(trace: Trace) -> list[tuple[int, ...]]:
    """The same, span by span."""
    rows: dict[tuple[int, int], list[int]] = {}
    for row, key in enumerate(zip(trace.name.tolist(), trace.layer.tolist(), strict=True)):
        rows.setdefault(key, []).append(row)
    dur, start = trace.dur.tolist(), trace.start.tolist()
    told = {key: max(mine, key=lambda row: (dur[row], -row)) for key, mine in rows.items()}
    return [
        (*key, len(rows[key]), sum(dur[row] for row in rows[key]), told[key], start[told[key]], dur[told[key]])
        for key in sorted(rows)
    ]


def as_rows(names: SpanNames) -> list[tuple[int, ...]]:
    return list(zip(*(column.tolist() for column in names), strict=True))


@pytest.mark.parametrize("spans", [0, 1, 900])
def test_each_name_of_a_layer_has_its_calls_their_time_and_the_first_of_the_longest(spans: int) -> None:
    trace = tree_of(spans, names=7).trace
    trace.dur[:] = trace.dur // 1000  # so that several are as long
    assert as_rows(names_of(trace.name, trace.layer, trace.start, trace.dur)) == counted(trace)


def test_sums_keep_every_nanosecond() -> None:
    name, layer = np.zeros(2, np.int32), np.zeros(2, np.uint8)
    names = names_of(name, layer, np.zeros(2, np.int64), np.array([2**53, 1], np.int64))
    assert names.total.tolist() == [2**53 + 1]


def test_they_are_stored_with_the_spans_and_made_for_those_stored_before(tmp_path: Path) -> None:
    path, tree = tmp_path / "t.db", tree_of(300)
    capture = capture_of("0a", tree)
    with Store.open(path) as store:
        store.save(capture, assessment_of({}), [], report_of(capture))
        assert as_rows(store.ask(read_names, 1, 0)) == counted(tree.trace)
    con = sqlite3.connect(path)
    gone = "SELECT key FROM column_sets WHERE kind = 'span_names'"
    con.execute(f"DELETE FROM chunks WHERE columns IN ({gone})")
    con.execute("DELETE FROM column_sets WHERE kind = 'span_names'")
    fill(con)
    con.commit()
    con.close()
    with Store.open(path) as store:
        assert as_rows(store.ask(read_names, 1, 0)) == counted(tree.trace)


def test_spans_that_are_damaged_leave_the_store_in_use_and_are_refused_when_they_are_searched(tmp_path: Path) -> None:
    path, capture = tmp_path / "t.db", capture_of("0a", tree_of(300))
    with Store.open(path) as store:
        store.save(capture, assessment_of({}), [], report_of(capture))
    con = sqlite3.connect(path)
    con.execute("DELETE FROM column_sets WHERE kind = 'span_names'")
    con.execute("UPDATE chunks SET data = x'00' WHERE field = 'dur'")
    fill(con)
    con.commit()
    con.close()
    with Store.open(path) as store, pytest.raises(StoreError, match="damaged"):
        store.ask(read_names, 1, 0)
