"""Faults from outside: they take a processor for real, they end, and a disk that is memory is not taken for one."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.collect.environment import SHIM
from teller_core.collect.proc import family
from teller_core.lab import faults
from teller_core.lab.faults import Delay, logged, strike, write_plan
from teller_core.lab.plan import plan_episode
from tests.waiting import alive


@pytest.fixture
def one_processor() -> Iterator[None]:
    """This process, and all that it starts, has one processor: three who want it take it from each other on any machine."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


@pytest.mark.usefixtures("one_processor")
def test_burners_make_a_busy_thread_wait_and_leave_with_the_fault(tmp_path: Path) -> None:
    if not Path("/proc/self/schedstat").exists():
        pytest.skip("this system does not count what threads wait for a processor")
    plan = replace(plan_episode(1, "cpu_hog"), strike=0.0, length=2.0, severity={"burners": 3})
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as victim:
        task = Path("/proc") / str(victim.pid) / "task" / str(victim.pid)
        delays = strike(plan, tmp_path / "plan", task, threading.Event())
        victim.kill()
    assert sum(delay.delay for delay in delays) > 100_000_000
    assert all(0 <= delay.delay <= delay.stop - delay.start for delay in delays)
    begin, end = map(int, (tmp_path / "plan.window").read_text().split())
    assert end - begin == 2_000_000_000
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in family(os.getpid()) if alive(pid)]
    assert not [command for command in commands if b"while True" in command]


def test_an_episode_that_ends_early_is_not_struck(tmp_path: Path) -> None:
    stop = threading.Event()
    stop.set()
    assert strike(plan_episode(1, "cpu_hog"), tmp_path / "plan", Path("/proc/self/task/1"), stop) == []
    assert not (tmp_path / "plan.window").exists()


def test_the_injectors_log_is_read_as_delays(tmp_path: Path) -> None:
    assert logged(tmp_path / "plan") == []
    (tmp_path / "plan.log").write_text("100 250\n400 401\n")
    assert logged(tmp_path / "plan") == [Delay(100, 250, 150), Delay(400, 401, 1)]


def test_the_plan_for_the_service_names_a_file_on_a_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"a / ext4 rw 0 0\nb {tmp_path.resolve()} tmpfs rw 0 0\n")
    monkeypatch.setattr(faults, "MOUNTS", mounts)
    content = json.loads(write_plan(plan_episode(1, "disk_stall"), tmp_path).read_text())
    assert not Path(content["file"]).is_relative_to(tmp_path)
    mounts.write_text("a / ext4 rw 0 0\n")
    content = json.loads(write_plan(plan_episode(1, "disk_stall"), tmp_path).read_text())
    assert Path(content["file"]).parent == tmp_path


HEAP = """
import pathlib, sys, time
import teller_lab_inject as inject
sys.setswitchinterval(1e-6)  # so that nothing but a collection keeps a thread from its turn for long
begin = time.time_ns()
window, log = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
hidden = pathlib.Path(sys.argv[1] + ".hidden")
hidden.write_text(f"{begin} {begin + 600_000_000_000}")
hidden.rename(window)
worst, last = 0, time.monotonic_ns()
looked = last
while True:
    now = time.monotonic_ns()
    worst = max(worst, now - last)
    last = now
    if now - looked > 100_000_000:
        if log.read_text().count("\\n") >= 4: break
        looked = last = time.monotonic_ns()
print(worst)
"""


def test_a_full_heap_stops_every_thread_while_it_is_collected(tmp_path: Path) -> None:
    plan = tmp_path / "plan"
    plan.write_text(json.dumps({"fault": "gc_pause", "objects": 400_000, "period_s": 0.05}))
    variables = {"PYTHONPATH": f"{faults.INJECT}{os.pathsep}{SHIM}", "TELLER_LAB_PLAN": str(plan)}
    command = [sys.executable, "-c", HEAP, str(tmp_path / "plan.window"), str(tmp_path / "plan.log")]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=True, timeout=200)
    delays = logged(plan)
    assert len(delays) >= 4
    assert min(delay.delay for delay in delays) > 1_000_000  # hundreds of thousands of objects are looked at
    assert int(done.stdout) > 0.5 * min(delay.delay for delay in delays)
