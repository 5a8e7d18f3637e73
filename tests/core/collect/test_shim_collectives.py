"""Collectives of a real process over Gloo, recorded as they are called; and calls that hang."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from teller_core.collect.environment import SHIM

CALLS = """
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://%s", rank=0, world_size=1)
value = torch.ones(3, 4)
dist.barrier()
dist.all_reduce(value, op=dist.ReduceOp.SUM)
dist.broadcast(value, 0)
dist.all_gather([torch.zeros(3, 4)], value)
work = dist.all_reduce(value, async_op=True)
work.wait()
dist.broadcast(value, group_src=0)
dist.reduce(value, dst=0)
dist.gather(value, [torch.zeros(3, 4)])
dist.scatter(torch.zeros(3, 4), [value])
group = dist.new_group([0])
dist.all_reduce(torch.ones(5, dtype=torch.int64), group=group)
try:
    dist.all_reduce("no tensor")
except Exception as error:
    print(type(error).__name__)
print(value.sum().item(), dist.all_reduce.__name__, dist.all_reduce is dist.distributed_c10d.all_reduce)
dist.destroy_process_group()
"""


def run(code: str, cap: Path, **variables: str) -> str:
    environment = {"PYTHONPATH": str(SHIM), "TELLER_CAPTURE_DIR": str(cap), "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def rows(cap: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in cap.glob("host-*.jsonl") for line in path.read_text().splitlines()]


def test_every_call_is_recorded_with_its_number_and_its_length_and_runs_as_before(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = run(CALLS % (tmp_path / "store"), tmp_path / "cap", TORCH_FR_BUFFER_SIZE="100")
    assert out.splitlines()[-1] == "12.0 all_reduce True"
    calls = [row for row in rows(tmp_path / "cap") if row["ph"] == "K"]
    first, second = {row["group"] for row in calls if row["n"] == 0}, calls[-1]["group"]
    assert len(first) == 2 and second in first
    assert [(row["name"], row["n"], row.get("elems"), row.get("later", False)) for row in calls[:5]] == [
        ("barrier", 0, None, False),
        ("all_reduce", 1, 12, False),
        ("broadcast", 2, 12, False),
        ("all_gather", 3, 12, False),
        ("all_reduce", 4, 12, True),
    ]
    roots = [(row["name"], row.get("root")) for row in calls if row["group"] == calls[0]["group"]]
    assert roots[2] == ("broadcast", 0)
    assert roots[5:9] == [("broadcast", 0), ("reduce", 0), ("gather", 0), ("scatter", 0)]
    assert {root for name, root in roots if name in ("barrier", "all_reduce", "all_gather")} == {None}
    assert {(row["rank"], row["size"]) for row in calls} == {(0, 1)}
    assert all(row["dur"] > 0 for row in calls)
    assert [row["dtype"] for row in calls if row.get("elems") == 5] == ["int64"]
    assert not [row for row in rows(tmp_path / "cap") if row["name"] == "hook_error"]
    [dump] = (tmp_path / "cap").glob("fr-*.json")
    document = json.loads(dump.read_text())
    assert document["rank"] == 0
    assert [entry["profiling_name"] for entry in document["entries"]].count("gloo:all_reduce") >= 3


def test_a_collective_is_recorded_once_by_whichever_of_its_names_it_is_called(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = """
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method="file://%s", rank=0, world_size=1)
for function in (dist.all_gather_single, dist.all_gather_into_tensor):
    function(torch.zeros(4), torch.ones(4))
"""
    run(code % (tmp_path / "store"), tmp_path / "cap")
    calls = [row for row in rows(tmp_path / "cap") if row["ph"] == "K"]
    assert [(row["name"], row["n"], row["elems"]) for row in calls] == [
        ("all_gather_single", 0, 4),
        ("all_gather_single", 1, 4),
    ]


def test_a_process_without_collectives_leaves_no_dump(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run("import torch.distributed", tmp_path / "cap", TORCH_FR_BUFFER_SIZE="100")
    assert not list((tmp_path / "cap").glob("fr-*.json"))


HANG = """
import sys, time
import teller_shim_collectives as collectives, teller_shim_events as events
dumped = []
collectives.dump = dumped.append
collectives._open[1] = (time.time_ns() - 60 * 10**9, "all_reduce", "0", 5, 0, 2)
collectives._open[2] = (time.time_ns(), "broadcast", "0", 6, 0, 2)
for _ in range(3):
    collectives.watch("folder")
print(dumped)
"""


def test_a_call_that_hangs_is_told_and_dumped_once(tmp_path: Path) -> None:
    assert run(HANG, tmp_path / "cap") == "['folder']\n"
    [told] = [row for row in rows(tmp_path / "cap") if row["name"] == "collective_hangs"]
    assert (told["call"], told["group"], told["n"]) == ("all_reduce", "0", 5)
