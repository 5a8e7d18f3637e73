"""Captures of damaged files: imported and asked about, or refused. tests/fuzz/imports.py says what is damaged and asked."""

import json
import shutil
from pathlib import Path
from random import Random
from tempfile import mkdtemp

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fuzz.imports import imported, mixed, recorded

SEEDS = st.integers(0, 2**40)
FUZZ = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


@settings(FUZZ, max_examples=20)
@given(seed=SEEDS)
def test_a_folder_of_cases_of_any_formats_is_imported_or_refused(tmp_path: Path, seed: int) -> None:
    work = Path(mkdtemp(dir=tmp_path))
    (work / "files").mkdir()
    mixed(work / "files", Random(seed))
    assert imported(work / "files", work / "store.db") <= 8
    shutil.rmtree(work)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tfserve_shim", "vllm_2node", "vllm_faults/base", "vllm_full"])
@settings(FUZZ, max_examples=2)
@given(seed=SEEDS)
def test_a_recorded_capture_with_damaged_files_is_imported_or_refused(name: str, tmp_path: Path, seed: int) -> None:
    work = Path(mkdtemp(dir=tmp_path))
    recorded(name, work / "files", Random(seed))
    assert imported(work / "files", work / "store.db") <= 3
    shutil.rmtree(work)


def test_a_capture_of_operators_of_centuries_is_compared_with_itself(tmp_path: Path) -> None:
    century = 4 * 10**15
    events = [
        {"ph": "X", "name": name, "cat": "cpu_op", "pid": 1, "tid": tid, "ts": 0, "dur": century}
        for tid, name in enumerate(("aten::mm", "aten::mm", "aten::add"))
    ]
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "trace.json").write_text(json.dumps({"traceEvents": events}))
    assert imported(tmp_path / "files", tmp_path / "store.db") == 1
