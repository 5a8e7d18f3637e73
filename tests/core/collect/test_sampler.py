"""Counters read from outside: of a child that works, waits, writes and has children, and of the machine."""

import json
import os
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from teller_core.collect import proc
from teller_core.collect.bundle import record
from teller_core.collect.sampler import Sampler
from teller_core.collect.segments import Segments

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
    assert (proc.thread_ids(gone), proc.thread_count(gone), proc.ticks(gone)) == ([], 0, -1)
    assert (proc.groups(gone), proc.family(gone)) == ((), [])
    kept = proc.Kept(4)
    assert proc.ran(kept.read(proc.schedstat(gone, gone))) is None
    assert list(proc.io(kept.read(f"/proc/{gone}/io"))) == []


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (("0::/box", "box", "nr_periods 9\nnr_throttled 4\nthrottled_usec 700\n"), {"periods": 4, "us": 700}),
        (("0::/box", "unified/box", "nr_throttled 4\nthrottled_usec 700\n"), {"periods": 4, "us": 700}),
        (("0::/pod/box", "pod", "nr_throttled 4\nthrottled_usec 700\n"), {"periods": 4, "us": 700}),
        (("4:cpu,cpuacct:/box", "cpu/box", "nr_throttled 2\nthrottled_time 3000\n"), {"periods": 2, "us": 3}),
        (("0::/box", "box", "usage_usec 5\n"), {}),
    ],
)
def test_throttling_is_read_from_both_kinds_of_cgroup_and_from_those_above(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, str], expected: dict[str, int]
) -> None:
    line, place, stat = case
    folder = tmp_path / "cgroup" / place
    folder.mkdir(parents=True)
    (folder / "cpu.stat").write_text(stat)
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "cgroup").write_text(line + "\n")
    monkeypatch.setattr(proc, "PROC", tmp_path)
    monkeypatch.setattr(proc, "CGROUP", tmp_path / "cgroup")
    readings = proc.throttling(proc.groups(7), proc.Kept(8).read)
    assert {reading.name.removeprefix("cgroup_throttled_"): reading.value for reading in readings} == expected


def test_pressure_is_read_of_the_machine_and_of_a_control_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=70\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"
    (tmp_path / "pressure").mkdir()
    (tmp_path / "pressure" / "memory").write_text(text)
    (tmp_path / "io.pressure").write_text(text)
    monkeypatch.setattr(proc, "PROC", tmp_path)
    kept = proc.Kept(8)
    assert list(proc.pressure(kept.read)) == [("pressure_memory_some_us", 70, 0), ("pressure_memory_full_us", 3, 0)]
    found = proc.group_pressure((str(tmp_path),), kept.read)
    assert list(found) == [("cgroup_pressure_io_some_us", 70, 0), ("cgroup_pressure_io_full_us", 3, 0)]


def test_threads_that_come_and_go_stay_in_the_sums_of_their_process(tmp_path: Path) -> None:
    code = """
import threading, time
def burn():
    end = time.thread_time() + 0.05
    while time.thread_time() < end: pass
    time.sleep(0.25)
for _ in range(8):
    thread = threading.Thread(target=burn); thread.start(); thread.join()
"""
    pid, rows = _samples(tmp_path, code)
    ran = [row["value"] for row in rows if row["pid"] == pid and row["name"] == "run_ns" and "tid" not in row]
    assert ran == sorted(ran)
    assert ran[-1] >= 400_000_000


def test_a_daemon_is_still_sampled_when_its_parent_has_ended(tmp_path: Path) -> None:
    work = "\nwhile time.monotonic() < end: sum(range(20_000)); time.sleep(0.02)"
    daemon = (
        f"import os, time\nif os.fork(): time.sleep(1.5); os._exit(0)\nos.setsid()\nend = time.monotonic() + 4{work}"
    )
    code = f"import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {daemon!r}])"
    pid, rows = _samples(tmp_path, f"{code}\nend = time.monotonic() + 2{work}")
    last = max(row["t"] for row in rows)
    late = {row["pid"] for row in rows if row["t"] > last - 1_000_000_000} - {0}
    assert pid in late and len(late) == 2  # the command and the daemon; the one between them is gone


def test_every_piece_of_a_long_recording_says_all_counters_again(tmp_path: Path) -> None:
    file = Segments(tmp_path, "samples", 8 * 4096, 3600)
    sampler = Sampler(os.getpid(), file)
    for _ in range(600):
        sampler.turn()
    sampler.close()
    pieces = [piece.read_text().splitlines() for piece in sorted(tmp_path.glob("samples*.jsonl"))]
    assert len(pieces) > 2
    for rows in pieces[1:-1]:
        names = {json.loads(row)["name"] for row in rows}
        assert {"run_ns", "run_queue_wait_ns", "machine_busy_ns", "machine_idle_ns"} <= names


def test_a_disk_that_refuses_costs_lines_and_they_are_counted(tmp_path: Path) -> None:
    file = Segments(tmp_path / "gone", "samples", 1 << 20, 3600)
    file.write(["a", "b"])
    assert file.lost == 2
    (tmp_path / "gone").mkdir()
    file.write(["c"])
    file.close()
    assert (file.lost, (tmp_path / "gone" / "samples.jsonl").read_text()) == (2, "c\n")
