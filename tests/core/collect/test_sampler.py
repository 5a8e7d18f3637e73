"""Counters read from outside: of a child that works, waits, writes and has children, and of the machine."""

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from teller_core.collect import proc
from teller_core.collect.bundle import Service, record
from teller_core.collect.sampler import Sampler
from teller_core.collect.segments import Segments
from tests.waiting import GO, alive, until

MS = 1_000_000

WORK = f"""
import os, threading, time
{GO}
def burn():
    end = time.process_time() + 0.3
    while time.process_time() < end: pass
    wait_for("go")
thread = threading.Thread(target=burn); thread.start()
fd = os.open("written", os.O_WRONLY | os.O_CREAT)
os.write(fd, os.urandom(1 << 20)); os.fsync(fd)
thread.join()
"""
"""Burns 0.3 s in a thread and writes a megabyte; neither the thread nor the process ends before there is ``go``."""
Rows = list[dict[str, Any]]


def _rows(tmp_path: Path) -> Rows:
    """What has been sampled so far."""
    path = tmp_path / "b" / "samples.jsonl"
    whole = path.read_text().rpartition("\n")[0] if path.exists() else ""
    return [json.loads(line) for line in whole.splitlines()]


@contextmanager
def _sampling(tmp_path: Path, code: str) -> Generator[Service]:
    """``code`` while it is recorded; its process has ended by itself on leaving."""
    with record([sys.executable, "-c", code], tmp_path / "b", working_folder=tmp_path) as service:
        yield service
        service.process.wait()


def _samples(tmp_path: Path, code: str, seen: Callable[[Rows], object]) -> tuple[int, Rows]:
    """The process of ``code`` and its samples; it gets its ``go`` once what was sampled is ``seen``."""
    with _sampling(tmp_path, code) as service:
        until(lambda: seen(_rows(tmp_path)), service.process)
        (tmp_path / "go").touch()
    return service.process.pid, _rows(tmp_path)


def _most(rows: Rows, name: str, threads: bool = False) -> int:
    """The largest value of a counter, of a process or of a thread that is not its first."""
    values = [
        row["value"] for row in rows if row["name"] == name and (row.get("tid", row["pid"]) != row["pid"]) == threads
    ]
    return max(values, default=0)


def test_work_shows_as_run_time_of_its_process_and_thread(tmp_path: Path) -> None:
    pid, rows = _samples(tmp_path, WORK, lambda rows: _most(rows, "run_ns", threads=True) > 250_000_000)
    ran = [row["value"] for row in rows if row["pid"] == pid and row["name"] == "run_ns" and "tid" not in row]
    assert ran[-1] > 250_000_000


def test_writes_to_the_disk_are_seen(tmp_path: Path) -> None:
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    held = [(len(point), kind) for point, kind in mounts if tmp_path.is_relative_to(point)]
    if max(held)[1] == "tmpfs":
        pytest.skip("the temporary folder is in memory: nothing reaches a disk")
    pid, rows = _samples(tmp_path, WORK, lambda rows: _most(rows, "write_bytes") >= 1 << 20)
    assert max(row["value"] for row in rows if row["pid"] == pid and row["name"] == "write_bytes") >= 1 << 20


def _times(rows: Rows, name: str) -> set[int]:
    return {row["t"] for row in rows if row["name"] == name}


def test_every_counter_only_grows_and_is_written_only_when_it_changed(tmp_path: Path) -> None:
    # On a machine of many processors how busy they are is read once a second.
    _, rows = _samples(tmp_path, WORK, lambda rows: len(_times(rows, "machine_busy_ns")) >= 3)
    series: dict[tuple[int, int, str], list[tuple[int, int]]] = defaultdict(list)
    for row in rows:
        assert set(row) - {"tid"} == {"t", "pid", "name", "value"}
        series[row["pid"], row.get("tid", 0), row["name"]].append((row["t"], row["value"]))
    for values in series.values():
        assert all(t1 < t2 and v1 < v2 for (t1, v1), (t2, v2) in pairwise(values))


def _is_told(path: Path) -> bool:
    """Whether this kernel has the file and counts for it; with PSI switched off it has it and refuses to read it."""
    try:
        return bool(path.read_text())
    except OSError:
        return False


def test_the_machine_has_its_own_counters(tmp_path: Path) -> None:
    _, rows = _samples(tmp_path, WORK, lambda rows: _most(rows, "machine_busy_ns"))
    names = {row["name"] for row in rows if row["pid"] == 0}
    assert {"machine_busy_ns", "machine_idle_ns"} <= names
    if _is_told(Path("/proc/pressure/cpu")):
        assert {"pressure_cpu_some_us", "pressure_io_some_us", "pressure_memory_some_us"} <= names


def test_children_of_the_service_are_sampled_too(tmp_path: Path) -> None:
    child = f"{GO}\nwait_for('go')"
    code = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    pid, rows = _samples(tmp_path, code, lambda rows: len({row["pid"] for row in rows} - {0}) > 1)
    assert len({row["pid"] for row in rows} - {0, pid}) == 1


def test_a_process_that_is_gone_has_no_threads_and_no_io() -> None:
    gone = 2**22 + 1
    assert (proc.thread_ids(gone), proc.thread_count(gone), proc.ticks(gone)) == ([], 0, -1)
    assert (proc.groups(gone), proc.family(gone)) == ((), [])
    kept = proc.Kept(4)
    assert proc.ran(kept.raw(proc.schedstat(gone, gone))) is None
    assert list(proc.io(kept.read(f"/proc/{gone}/io"))) == []


def test_what_is_read_at_every_turn_is_read_whole_and_into_a_piece_of_memory_that_python_has_at_hand() -> None:
    names = ("rchar", "wchar", "syscr", "syscw", "read_bytes", "write_bytes", "cancelled_write_bytes")
    assert len("".join(f"{name}: {2**64 - 1}\n" for name in names)) <= proc.FEW_BYTES
    assert sys.getsizeof(bytes(proc.FEW_BYTES)) <= 512  # SMALL_REQUEST_THRESHOLD of CPython's Objects/obmalloc.c


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
    assert list(proc.pressure(kept.read)) == [("pressure_memory_some_us", 70), ("pressure_memory_full_us", 3)]
    found = proc.group_pressure((str(tmp_path),), kept.read)
    assert list(found) == [("cgroup_pressure_io_some_us", 70), ("cgroup_pressure_io_full_us", 3)]


def test_threads_that_come_and_go_stay_in_the_sums_of_their_process(tmp_path: Path) -> None:
    code = f"""
import threading, time
{GO}
def burn(number):
    end = time.thread_time() + 0.05
    while time.thread_time() < end: pass
    wait_for("go-%d" % number)
for number in range(8):
    thread = threading.Thread(target=burn, args=(number,)); thread.start(); thread.join()
"""

    def burned(pid: int) -> int:
        """How many threads were seen to have burned what they are to."""
        return len(
            {
                row["tid"]
                for row in _rows(tmp_path)
                if row.get("tid", pid) != pid and _most([row], "run_ns", True) >= 50 * MS
            }
        )

    with _sampling(tmp_path, code) as service:
        pid = service.process.pid
        for number in range(8):
            until(lambda wanted=number + 1: burned(pid) == wanted, service.process)
            (tmp_path / f"go-{number}").touch()
    rows = _rows(tmp_path)
    ran = [row["value"] for row in rows if row["pid"] == pid and row["name"] == "run_ns" and "tid" not in row]
    assert ran == sorted(ran)
    assert ran[-1] >= 400 * MS


def test_a_daemon_is_still_sampled_when_its_parent_has_ended(tmp_path: Path) -> None:
    work = "while not os.path.exists('go'): sum(range(20_000)); time.sleep(0.02)"
    begun = "file = open('.pid', 'w'); file.write(str(os.getpid())); file.close(); os.rename('.pid', 'pid')"
    daemon = f"{GO}\nimport os, time\nif os.fork(): wait_for('seen'); os._exit(0)\nos.setsid(); {begun}\n{work}"
    code = f"import os, subprocess, sys, time\nsubprocess.run([sys.executable, '-c', {daemon!r}])\n{work}"
    with _sampling(tmp_path, code) as service:
        until((tmp_path / "pid").exists, service.process)
        both = {service.process.pid, int((tmp_path / "pid").read_text())}
        until(lambda: len({row["pid"] for row in _rows(tmp_path)} - {0}) == 3, service.process)
        (tmp_path / "seen").touch()
        (between,) = {row["pid"] for row in _rows(tmp_path)} - {0, *both}
        until(lambda: not alive(between), service.process)
        ended = time.time_ns()
        until(lambda: both <= {row["pid"] for row in _rows(tmp_path) if row["t"] > ended}, service.process)
        later = {row["pid"] for row in _rows(tmp_path) if row["t"] > ended}
        (tmp_path / "go").touch()
    assert both <= later


def test_every_piece_of_a_long_recording_says_all_counters_again(tmp_path: Path) -> None:
    code = "import time\nwhile True: time.sleep(0.0002)"
    file = Segments(tmp_path, "samples", 8 * 32768, 3600)
    with subprocess.Popen([sys.executable, "-S", "-c", code]) as sampled:
        sampler = Sampler(sampled.pid, file)
        while len(list(tmp_path.glob("samples*.jsonl"))) < 5:
            sampler.turn()
        sampler.close()
        sampled.kill()
    pieces = [piece.read_text().splitlines() for piece in sorted(tmp_path.glob("samples*.jsonl"))]
    for rows in pieces[1:-1]:
        names = {json.loads(row)["name"] for row in rows}
        assert {"run_ns", "run_queue_wait_ns", "machine_busy_ns", "machine_idle_ns"} <= names


def test_the_time_that_a_kernel_takes_back_is_no_decrease(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``man 5 proc``: what waited for input and output may become less."""
    (tmp_path / "proc").mkdir()
    monkeypatch.setattr(proc, "PROC", tmp_path / "proc")
    sampler = Sampler(1, Segments(tmp_path, "samples", 1 << 20, 3600))
    for iowait in (70, 60, 90):
        (tmp_path / "proc" / "stat").write_text(f"cpu 1 2 3 4 {iowait} 6 7 8\n")
        sampler.turn(last=True)
    sampler.close()
    rows = [json.loads(line) for line in (tmp_path / "samples.jsonl").read_text().splitlines()]
    assert [row["value"] // proc.TICK_NS for row in rows if row["name"] == "machine_iowait_ns"] == [70, 90]


def test_a_disk_that_refuses_costs_lines_and_they_are_counted(tmp_path: Path) -> None:
    file = Segments(tmp_path / "gone", "samples", 1 << 20, 3600)
    file.write(["a", "b"])
    assert file.lost == 2
    (tmp_path / "gone").mkdir()
    file.write(["c"])
    file.close()
    assert (file.lost, (tmp_path / "gone" / "samples.jsonl").read_text()) == (2, "c\n")
