"""What of a recording there is at each tier."""

import json
import os
from pathlib import Path

import pytest

from teller_core.lab.benchmark.tiers import TIERS, at_tier

SAID = {
    "created": 1796013492.9818653,
    "process": 23,
    "levelname": "INFO",
    "filename": "launcher.py",
    "lineno": 195,
    "vllm_process_name": "APIServer",
}
STEP = "Engine 000: Iteration(7): 0 context requests, 0 context tokens, 4 generation requests, 4 generation tokens"
STATS = [
    {"k": "P", "name": "engine_stats", "pid": 23},
    {"k": "S", "t": 1, "e": 0, "at": 1.5, "output": 1, "first": [0.25], "running": 3, "step": 1, "context": 2},
    {"k": "S", "t": 2, "e": 0, "at": 1.6, "output": 1, "first": [], "running": 3, "step": 2, "context": 0},
    {"k": "F", "t": 3, "e": 0, "at": 1.7, "rid": "cmpl-a-0", "e2e": 0.5},
    {"k": "C", "t": 4, "calls": 2},
]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle-1"
    (folder / "cap").mkdir(parents=True)
    log = [{**SAID, "message": "up\nand running"}, {**SAID, "message": STEP}]
    lines = [json.dumps(line) for line in log] + [
        'INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK',
        '{"cut',
    ]
    (folder / "server.log").write_text("\n".join(lines) + "\n")
    (folder / "cap" / "stats-23-0000.jsonl").write_text("".join(json.dumps(row) + "\n" for row in STATS) + '{"k":"S",')
    for name in ("client.jsonl", "bundle.json", "samples.jsonl", "samples-0001.jsonl", "metrics.txt"):
        (folder / name).write_text(name)
    for name in (
        "host-23-0000.jsonl",
        "torch-23-1.json.gz",
        "cupti-23-1.bin",
        "PROFILE",
        "vllm-logging.json",
        ".cupti-layout",
    ):
        (folder / "cap" / name).write_text(name)
    os.utime(folder / "server.log", ns=(5, 1_796_013_000_000_000_000))
    return folder


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_each_tier_has_what_the_one_below_has_and_more(bundle: Path, tmp_path: Path) -> None:
    found: list[set[str]] = []
    for tier in TIERS:
        at_tier(bundle, tier, tmp_path / f"T{tier}")
        found.append(files(tmp_path / f"T{tier}"))
    assert found[0] == {"server.log", "metrics.txt"}
    assert found[1] - found[0] == {"client.jsonl", "cap/stats-23-0000.jsonl"}
    assert found[2] == found[1]
    assert found[3] - found[2] == {"bundle.json", "samples.jsonl", "samples-0001.jsonl", "cap/host-23-0000.jsonl"}
    assert found[4] - found[3] == {"cap/torch-23-1.json.gz", "cap/cupti-23-1.bin"}
    for name in found[4]:
        assert (tmp_path / "T4" / name).read_bytes() == (bundle / name).read_bytes()


@pytest.mark.parametrize("tier", [0, 1, 2])
def test_a_log_of_vllm_is_as_it_prints_it_of_its_own_accord(bundle: Path, tmp_path: Path, tier: int) -> None:
    at_tier(bundle, tier, tmp_path / "part")
    head = "(APIServer pid=23) INFO 11-30 04:38:12 [launcher.py:195] "
    expected = [f"{head}up", f"{head}and running", f"{head}{STEP}"]
    expected += ['INFO:     127.0.0.1:4 - "POST /v1/completions HTTP/1.1" 200 OK', '{"cut']
    if tier < 2:
        expected.remove(f"{head}{STEP}")
    log = tmp_path / "part" / "server.log"
    assert log.read_text().splitlines() == expected
    assert log.stat().st_mtime_ns == 1_796_013_000_000_000_000


def test_a_span_of_a_request_tells_of_no_step(bundle: Path, tmp_path: Path) -> None:
    at_tier(bundle, 1, tmp_path / "part")
    rows = [json.loads(line) for line in (tmp_path / "part" / "cap" / "stats-23-0000.jsonl").read_text().splitlines()]
    assert rows == [STATS[0], {"k": "S", "t": 1, "e": 0, "at": 1.5, "first": [0.25]}, STATS[3]]


@pytest.mark.parametrize("tier", [2, 3, 4])
def test_what_the_stat_logger_counts_of_steps_is_there_from_the_tier_that_asks_for_it(
    bundle: Path, tmp_path: Path, tier: int
) -> None:
    at_tier(bundle, tier, tmp_path / "part")
    stats = "cap/stats-23-0000.jsonl"
    assert (tmp_path / "part" / stats).read_bytes() == (bundle / stats).read_bytes()
