"""Counters read from outside: of a child that works, waits, writes and has children, and of the machine."""

import json
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from teller_core.collect import proc
from teller_core.collect.bundle import record

WORK = """
import os, threading, time
def burn():
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
thread = threading.Thread(target=burn); thread.start(); thread.join()
fd = os.open("written", os.O_WRONLY | os.O_CREAT)
os.write(fd, os.urandom(1 << 20)); os.fsync(fd)
time.sleep(0.4)
"""


def _samples(tmp_path: Path, code: str) -> tuple[int, list[dict[str, Any]]]:
    with record([sys.executable, "-c", code], tmp_path / "b", working_folder=tmp_path) as service:
        service.process.wait()
    lines = (tmp_path / "b" / "samples.jsonl").read_text().splitlines()
    return service.process.pid, [json.loads(line) for line in lines]


def test_work_shows_as_run_time_of_its_process_and_thread(tmp_path: Path) -> None:
    pid, rows = _samples(tmp_path, WORK)
    ran = [row["value"] for row in rows if row["pid"] == pid and row["name"] == "run_ns" and "tid" not in row]
    assert ran[-1] >= 200_000_000  # of 300: it ends up to a tenth of a second after it was last looked at
    threads = {row["tid"]: row["value"] for row in rows if row["name"] == "run_ns" and "tid" in row}
    assert max(value for thread, value in threads.items() if thread != pid) > 100_000_000


def test_writes_to_the_disk_are_seen(tmp_path: Path) -> None:
    pid, rows = _samples(tmp_path, WORK)
    written = [row["value"] for row in rows if row["pid"] == pid and row["name"] == "write_bytes"]
    kinds = {line.split()[1]: line.split()[2] for line in Path("/proc/mounts").read_text().splitlines()}
    if kinds.get("/tmp") == "tmpfs":
        pytest.skip("the temporary folder is in memory: nothing reaches a disk")
    assert written[-1] >= 1 << 20


def test_every_counter_only_grows_and_is_written_only_when_it_changed(tmp_path: Path) -> None:
    _, rows = _samples(tmp_path, WORK)
    series: dict[tuple[int, int, str], list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        assert set(row) - {"tid"} == {"t", "pid", "name", "value"}
        series[row["pid"], row.get("tid", 0), row["name"]].append((row["t"], row["value"]))
    for values in series.values():
        assert all(t1 < t2 and v1 < v2 for (t1, v1), (t2, v2) in pairwise(values))
    assert len({t for t, _ in series[0, 0, "machine_busy_ns"]}) >= 3


def test_the_machine_has_its_own_counters(tmp_path: Path) -> None:
    _, rows = _samples(tmp_path, WORK)
    names = {row["name"] for row in rows if row["pid"] == 0}
    assert {"machine_busy_ns", "machine_idle_ns"} <= names
    if Path("/proc/pressure/cpu").exists():
        assert {"pressure_cpu_some_us", "pressure_io_some_us", "pressure_memory_some_us"} <= names


def test_children_of_the_service_are_sampled_too(tmp_path: Path) -> None:
    code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import time; time.sleep(1.5)'])"
    pid, rows = _samples(tmp_path, code)
    assert len({row["pid"] for row in rows} - {0, pid}) == 1


def test_a_process_that_is_gone_has_no_threads_and_no_io() -> None:
    gone = 2**22 + 1
    assert list(proc.threads(gone)) == []
    assert list(proc.io(gone)) == []
    assert list(proc.throttling(gone)) == []
    assert proc.family(gone) == []


@pytest.mark.parametrize(
    ("line", "stat", "expected"),
    [
        ("0::/box", "nr_periods 9\nnr_throttled 4\nthrottled_usec 700\n", {"periods": 4, "us": 700}),
        ("4:cpu,cpuacct:/box", "nr_throttled 2\nthrottled_time 3000\n", {"periods": 2, "us": 3}),
        ("0::/box", "usage_usec 5\n", {}),
    ],
)
def test_throttling_is_read_from_both_kinds_of_cgroup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, stat: str, expected: dict[str, int]
) -> None:
    folder = tmp_path / "cgroup" / ("box" if line.startswith("0::") else "cpu/box")
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text(stat)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(line + "\n")
    monkeypatch.setattr(proc, "PROC", tmp_path)
    monkeypatch.setattr(proc, "CGROUP", tmp_path / "cgroup")
    found = {reading.name.removeprefix("cgroup_throttled_"): reading.value for reading in proc.throttling(7)}
    assert found == expected
