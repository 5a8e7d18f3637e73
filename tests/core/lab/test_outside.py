"""What is done from outside ends with its block: processes run again, quotas are lifted, neighbors are gone."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from teller_core.collect.proc import family
from teller_core.lab import outside
from teller_core.lab.outside import (
    Delay,
    Groups,
    Process,
    burn,
    freeze,
    grouped,
    quota_root,
    stream,
    together,
    waited,
    waits_of,
)
from tests.waiting import alive, until


@pytest.fixture
def victim() -> Iterator[int]:
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as process:
        yield process.pid
        process.kill()


def neighbors() -> list[bytes]:
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in family(os.getpid()) if alive(pid)]
    return [command for command in commands if b"os.getppid() == parent" in command]


@pytest.mark.parametrize(
    ("do", "knobs"),
    [(burn, {"burners": 2, "duty_percent": 50}), (stream, {"streams": 1, "duty_percent": 100})],
    ids=["burn", "stream"],
)
def test_neighbors_are_there_meanwhile_and_gone_afterwards(
    do: Callable[[Mapping[str, float]], AbstractContextManager[None]], knobs: Mapping[str, float]
) -> None:
    with do(knobs):
        assert len(neighbors()) == (knobs.get("burners") or knobs["streams"]) * max(
            1, len(os.sched_getaffinity(0)) // 2
        )
    assert neighbors() == []


def test_a_frozen_process_stands_still_and_runs_again(victim: int) -> None:
    with freeze([victim], {"ms": 20.0, "every_s": 0.001}) as pulses:
        until(lambda: len(pulses) >= 3)
    assert all(delay.stop - delay.start == delay.delay >= 20_000_000 for delay in pulses[:3])
    assert Path(f"/proc/{victim}/stat").read_text().rpartition(") ")[2][0] != "T"


def test_a_process_that_is_gone_is_not_frozen() -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as ended:
        ended.wait()
    with freeze([ended.pid], {"ms": 1.0, "every_s": 0.001}) as pulses:
        pass
    assert pulses == []


def test_delays_that_overlap_cost_what_they_last_and_no_more() -> None:
    waits = [Delay(0, 10, 10), Delay(4, 12, 8), Delay(20, 30, 2), Delay(29, 31, 1), Delay(31, 35, 4)]
    assert together(waits[::-1]) == [(0, 12, 12), (20, 31, 3), (31, 35, 4)]
    assert together([]) == []


def test_all_processes_that_are_named_stand_still_together(victim: int) -> None:
    with subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"]) as other:
        with freeze([victim, other.pid], {"ms": 400.0, "every_s": 0.001}):
            stopped = lambda pid: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T"  # noqa: E731
            until(lambda: stopped(victim) and stopped(other.pid))
        until(lambda: not stopped(victim) and not stopped(other.pid))
        assert other.poll() is None
        other.kill()


def test_a_thread_that_is_gone_waits_for_nothing(tmp_path: Path) -> None:
    assert waited(tmp_path) is None
    with waits_of([tmp_path]) as seen:
        pass
    assert seen == []


def made(root: Path, *, version: int) -> Path:
    """A control group file system as the kernel shows it, and where groups with quotas are in it."""
    place = root if version == 2 else root / "cpu"
    place.mkdir(exist_ok=True)
    (place / "cgroup.procs").touch()
    if version == 2:
        (place / "cgroup.controllers").write_text("cpuset cpu io\n")
    return place


@pytest.mark.parametrize(
    ("version", "limit", "during", "after"),
    [(2, "cpu.max", "30000 100000", "max 100000"), (1, "cpu.cfs_quota_us", "30000", "-1")],
)
def test_a_quota_holds_for_its_block_only(tmp_path: Path, version: int, limit: str, during: str, after: str) -> None:
    root = quota_root(made(tmp_path, version=version).parent if version == 1 else made(tmp_path, version=2))
    assert root is not None
    groups = Groups(root, [Process(41, 41), Process(42, 43)])
    groups.place()
    (folder,) = [group for group in root.glob("service-*") if (group / "cgroup.procs").read_text() == "42"]
    with groups.quota(42, {"percent": 30.0}):
        assert (folder / limit).read_text() == during
    assert (folder / limit).read_text() == after


@pytest.mark.parametrize("told", ["nr_throttled 4\nthrottled_time 5000\n", "nr_throttled 4\nthrottled_usec 5\n"])
def test_what_a_quota_took_is_read_in_both_versions(tmp_path: Path, told: str) -> None:
    groups = Groups(made(tmp_path, version=1), [Process(41, 41)])
    groups.place()
    assert groups.throttled(41) is None
    (folder,) = (tmp_path / "cpu").glob("service-*")
    (folder / "cpu.stat").write_text(told)
    assert groups.throttled(41) == 5000
    assert groups.throttled(99) is None


def test_there_are_no_groups_where_the_system_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert quota_root(tmp_path) is None
    monkeypatch.setattr(outside, "quota_root", lambda: None)
    with grouped([Process(41, 41)]) as groups:
        assert groups is None
