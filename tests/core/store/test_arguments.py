"""Arguments of single rows, as they were read."""

from pathlib import Path

import numpy as np
import pytest

from teller_core import answers
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

TRACE = """{"baseTimeNanoseconds": 1700000000000000000, "traceEvents": [%s]}"""
EVENT = '{"ph":"X","cat":"%s","name":"%s","pid":7,"tid":7,"ts":%d,"dur":%d,"args":{%s}}'


def event(name: str, ts: int, dur: int, args: str = "", cat: str = "cpu_op") -> str:
    return EVENT % (cat, name, ts, dur, args)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    small = '"Input Dims":[[4,4]],"Input type":["float"]'
    large = '"Input Dims":[[64,4]],"Input type":["float"]'
    events = [event("aten::mm", 10 * k, 5 + 20 * (k == 9) // 5, large if k == 9 else small) for k in range(10)]
    events += [event("aten::add", 200, 3), event("aten::mul", 300, 3, '"Sequence number":4')]
    path = tmp_path / "rank0.json"
    path.write_text(TRACE % ",".join(events))
    made = Store.open(tmp_path / "db")
    import_paths([path], made)
    return made


def test_rows_have_the_arguments_that_were_read_and_others_none(store: Store) -> None:
    with store:
        capture = store.resolve()
        tree = store.tree_rows(capture, 0)
        rows = np.arange(len(tree), dtype=np.int64)[::-1]
        expected = [tree.trace.args[int(a)] if a >= 0 else "" for a in tree.trace.arg[::-1]]
        assert store.arguments(capture, 0, rows) == expected
        assert store.arguments(capture, 0, rows[:0]) == []
        assert expected.count("") == 2


def test_an_operator_is_told_by_what_it_was_called_with(store: Store) -> None:
    with store:
        report, other = (answers.explain_operator(store, name) for name in ("aten::mm", "aten::add"))
    assert {(one.inputs, one.calls) for one in report.shapes} == {("float[4x4]", 9), ("float[64x4]", 1)}
    assert sum(one.total_ms for one in report.shapes) == pytest.approx(report.total_ms)
    assert other.shapes == []
