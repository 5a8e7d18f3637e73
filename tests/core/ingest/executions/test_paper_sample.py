"""Samples of the published data set: a folder becomes steps with their requests, and its label changes nothing."""

import json
import resource
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core import answers, slices
from teller_core.data.report import CaptureReport
from teller_core.ingest.executions import paper_sample
from teller_core.ingest.found import Place
from teller_core.pipeline import import_paths
from teller_core.store.store import Store

SAMPLE = Path(__file__).parents[3] / "data/paper_sample/two_steps/input.json"
MS = 1_000_000
BEGIN = 1_700_000_000_000_000_000


def operator(begin: int, dur: int, kernel: int) -> dict[str, Any]:
    call = {"name": "cudaLaunchKernel", "start": begin + 2_000, "end": begin + 4_000}
    call["kernels"] = [{"name": "gemm", "gpu_start": begin + 5_000, "duration": kernel}]
    inner = {
        "op_name": "aten::mm",
        "start": begin + 1_000,
        "end": begin + dur - 1_000,
        "runtime_calls": [call],
        "driver_calls": [],
    }
    return {"op_name": "torch.linear", "start": begin, "end": begin + dur, "torch_backend_ops": [inner]}


def sample(folder: Path, *, faulty: bool, steps: int = 24) -> Path:
    """Steps of one request each, the last one with a kernel of thirty times the usual time."""
    folder.mkdir()
    rows: list[dict[str, Any]] = []
    for k in range(steps):
        begin, slow = BEGIN + k * 4 * MS, k == steps - 1
        rows.append({
            "step_name": f"step_execute_model[request_ids:req-{k}]", "start": begin, "end": begin + (3 if slow else 1) * MS,
            "torch_frontend_ops": [operator(begin + 10_000, 100_000, 3_000_000 if slow else 100_000)],
        })  # fmt: skip
    said = {
        "engine": "vllm_v1_online",
        "is_fault": faulty,
        "fault_type": "kernel" if faulty else "no_error",
        "steps": rows,
    }
    (folder / "trace.json").write_text(json.dumps(said))
    (folder / "log.txt").write_text("INFO 11-14 22:13:20 [async_llm.py:270] Added request req-0.\n")
    label = {"fault_type": "kernel" if faulty else "no_error", "root_cause": "sesame", "is_anomaly": faulty}
    (folder / "annotation.json").write_text(json.dumps(label))
    return folder


def imported(folder: Path, db: Path) -> tuple[CaptureReport, Store]:
    store = Store.open(db)
    (report,) = import_paths([folder], store).captures
    return report, store


def test_a_folder_becomes_steps_with_their_requests(tmp_path: Path) -> None:
    report, store = imported(sample(tmp_path / "s", faulty=True), tmp_path / "db")
    with store:
        assert (report.engine, report.steps, report.requests, report.kernels) == ("vllm", 24, 24, 24)
        assert (report.mapping, report.log_lines) == ("recorded", 1)
        assert {file.format: file.events_other.get("label", 0) for file in report.files} == {
            "paper_sample": 2, "paper_label": 3, "engine_log": 0
        }  # fmt: skip
        lines = slices.causal_slice(store, "step 3").lines
    named = [line.text for line in lines if line.layer in ("engine", "operator", "runtime", "kernel")]
    assert named[-5:] == ["step_execute_model", "torch.linear", "aten::mm", "cudaLaunchKernel", "gemm"]


def test_the_label_changes_no_answer(tmp_path: Path) -> None:
    said: list[str] = []
    for name, faulty in (("one", True), ("other", False)):
        report, store = imported(sample(tmp_path / name, faulty=faulty), tmp_path / f"{name}.db")
        with store:
            found = [answers.why(store, str(number)).model_dump_json() for number in range(1, report.requests + 1)]
        said.append("".join(found).replace(report.id, ""))
    assert "sesame" not in said[0]
    assert said[0] == said[1]


def test_a_step_is_the_same_place_whoever_it_served(tmp_path: Path) -> None:
    found = paper_sample.read(SAMPLE, Place())
    (trace,) = found.traces
    steps = [i for i in range(len(trace)) if trace.categories[trace.category[i]] == "step"]
    assert {trace.names[trace.name[i]] for i in steps} == {"step_execute_model"}
    assert [list(execution.tokens or ()) for execution in found.executions] == [["req-a", "req-b"], ["req-b"]]
    assert np.array_equal(trace.start[steps], [execution.start for execution in found.executions])


@pytest.mark.slow
def test_one_long_step_is_read_in_bounded_memory(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    begin = BEGIN
    with path.open("w") as file:
        file.write(
            '{"engine": "sglang", "steps": [{"step_name": "step_execute_model[request_ids:a]", "torch_frontend_ops": ['
        )
        for k in range(60_000):
            file.write(("," if k else "") + json.dumps(operator(begin, 100_000, 50_000)))
            begin += 100_000
        file.write(f'], "start": {BEGIN}, "end": {begin}}}]}}')
    size, before = path.stat().st_size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = paper_sample.read(path, Place())
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert found.kept == found.events == 240_001
    assert grown < 2 * size
