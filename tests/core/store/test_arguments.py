"""Arguments of single rows, as they were read."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from teller_core import answers
from teller_core.data.report_operators import OperatorShapes
from teller_core.errors import StoreError
from teller_core.pipeline import import_paths
from teller_core.store.chunks import chunks_of
from teller_core.store.store import Store
from teller_core.tell.operator_shapes import MOST_ARGUMENTS

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


def test_codes_have_the_arguments_that_were_read_and_none_has_none(store: Store) -> None:
    with store:
        capture = store.resolve()
        tree = store.tree_rows(capture, 0)
        codes = tree.trace.arg[::-1]
        expected = [tree.trace.args[int(a)] if a >= 0 else "" for a in tree.trace.arg[::-1]]
        assert store.arguments(capture, 0, codes) == expected
        assert store.arguments(capture, 0, codes[:0]) == []
        assert expected.count("") == 2


def test_an_operator_is_told_by_what_it_was_called_with(store: Store) -> None:
    with store:
        report, other = (answers.explain_operator(store, name) for name in ("aten::mm", "aten::add"))
    assert {(one.inputs, one.calls) for one in report.shapes} == {("float[4x4]", 9), ("float[64x4]", 1)}
    assert sum(one.total_ms for one in report.shapes) == pytest.approx(report.total_ms)
    assert other.shapes == []


def test_an_operator_of_a_capture_that_keeps_no_calls_by_name_is_told_alike(store: Store, tmp_path: Path) -> None:
    with store:
        names = store.operator_names(store.resolve()).names
        told = [answers.explain_operator(store, name) for name in names]
    assert told and any(one.shapes for one in told) and all(one.places[0].slowest for one in told)
    with sqlite3.connect(tmp_path / "db") as con:
        con.execute("DELETE FROM chunks WHERE columns IN (SELECT key FROM column_sets WHERE kind LIKE 'call%')")
        assert con.execute("DELETE FROM column_sets WHERE kind LIKE 'call%'").rowcount == 3
    con.close()
    with Store.open(tmp_path / "db", read_only=True) as old:
        assert [answers.explain_operator(old, name) for name in names] == told


def test_a_name_out_of_the_table_is_damage(store: Store, tmp_path: Path) -> None:
    store.close()
    with sqlite3.connect(tmp_path / "db") as con:
        con.execute(
            "UPDATE chunks SET data = ? WHERE field = 'above' AND columns IN (SELECT key FROM column_sets WHERE kind = 'calls')",
            (next(chunks_of(np.full(12, 99, dtype=np.int32), delta=False)),),
        )
    con.close()
    with (
        Store.open(tmp_path / "db", read_only=True) as hostile,
        pytest.raises(StoreError, match="a part of it is damaged"),
    ):
        answers.explain_operator(hostile, "aten::mm")


def test_inputs_of_very_many_calls_are_read_of_some_and_the_note_says_so(tmp_path: Path) -> None:
    events = [event("aten::mm", 10 * k, 5, f'"Input Dims":[[{k % 2},4]],"Input type":["float"]') for k in range(1000)]
    (tmp_path / "rank0.json").write_text(TRACE % ",".join(events))
    with Store.open(tmp_path / "many") as many:
        import_paths([tmp_path / "rank0.json"], many)
        report = answers.explain_operator(many, "aten::mm")
    assert sum(one.calls for one in report.shapes) == MOST_ARGUMENTS < report.calls
    assert "was read of 200 of 1000 calls, evenly chosen" in report.note


def test_a_kernel_is_held_against_the_roof_of_its_device(tmp_path: Path) -> None:
    shapes = '"Input Dims":[[4096,4096],[4096,4096]],"Input type":["c10::BFloat16","c10::BFloat16"],"External id":1'
    events = [
        event("aten::mm", 100, 20, shapes),
        event("cudaLaunchKernel", 105, 5, '"correlation":7,"External id":1', "cuda_runtime"),
        event(
            "nvjet_tst_192x192_64x4_2x1_v_bz_TNN",
            130,
            278,
            '"correlation":7,"External id":1,"device":0,"stream":7',
            "kernel",
        ),
    ]
    header = '{"deviceProperties":[{"id":0,"name":"%s"}],"traceEvents":[%s]}'
    told: list[OperatorShapes] = []
    for name in ("NVIDIA H100 80GB HBM3", "A thing"):
        path = tmp_path / f"{len(told)}.json"
        path.write_text(header % (name, ",".join(events)))
        with Store.open(tmp_path / f"db{len(told)}") as made:
            import_paths([path], made)
            told += answers.explain_operator(made, "nvjet_tst_192x192_64x4_2x1_v_bz_TNN").shapes
            host = answers.explain_operator(made, "aten::mm").shapes
    known, unknown = told
    assert known.roofline is not None and known.roofline_note == ""
    assert (known.roofline.flops, known.roofline.bytes, known.roofline.bound) == (2 * 4096**3, 6 * 4096**2, "compute")
    assert known.roofline.reached == pytest.approx(2 * 4096**3 / 989.5e12 / 278e-6, abs=1e-3)
    assert (unknown.roofline, unknown.roofline_note) == (None, "what its device can do is not known")
    assert [one.roofline for one in host] == [None] and "of the host" in host[0].roofline_note
