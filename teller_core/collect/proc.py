"""What Linux says about processes and the machine in /proc and cgroups. Everything is a counter that only grows."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")
CGROUP = Path("/sys/fs/cgroup")
TICK_NS = 10_000_000
"""One unit of the times in /proc/stat: USER_HZ is 100 on every Linux that Python runs on (man 5 proc)."""


class Reading(NamedTuple):
    """One counter: its name ends with its unit. ``thread`` is 0 for the whole process."""

    name: str
    value: int
    thread: int = 0


def family(root: int) -> list[int]:
    """``root`` and the processes below it, and those of its session, in order of pid."""
    parents: dict[int, tuple[int, int]] = {}
    for name in filter(str.isdigit, _names(str(PROC))):
        fields = _text(f"{PROC}/{name}/stat").rpartition(") ")[2].split()
        if len(fields) > 3:
            parents[int(name)] = (int(fields[1]), int(fields[3]))
    members = {pid for pid, (_, session) in parents.items() if session == root} | {root}
    grown = True
    while grown:
        found = {pid for pid, (parent, _) in parents.items() if parent in members} - members
        members |= found
        grown = bool(found)
    return sorted(members & parents.keys())


def threads(pid: int) -> Iterator[tuple[int, int, int]]:
    """(thread, ns run, ns waited in the run queue) of every thread of ``pid`` that lives."""
    folder = f"{PROC}/{pid}/task"  # no Path here: it would cost more than the reading, hundreds of times a second
    for name in _names(folder):
        numbers = _text(f"{folder}/{name}/schedstat").split()
        if len(numbers) == 3:
            yield int(name), int(numbers[0]), int(numbers[1])


def switches(pid: int, thread: int) -> tuple[int, int]:
    """(voluntary, involuntary) context switches of one thread."""
    found = _fields(PROC / str(pid) / "task" / str(thread) / "status")
    return found.get("voluntary_ctxt_switches", 0), found.get("nonvoluntary_ctxt_switches", 0)


def io(pid: int) -> Iterator[Reading]:
    """Bytes that ``pid`` caused to be read from and written to storage, and its write calls."""
    found = _fields(PROC / str(pid) / "io")
    for name, field in (("read_bytes", "read_bytes"), ("write_bytes", "write_bytes"), ("write_calls", "syscw")):
        if field in found:
            yield Reading(name, found[field])


def throttling(pid: int) -> Iterator[Reading]:
    """How often and how long the CPU quota of the cgroup of ``pid`` stopped it, where there is a quota controller."""
    for line in _text(PROC / str(pid) / "cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            base = CGROUP if controllers == "" else CGROUP / "cpu"
            found = _fields(base / path.lstrip("/") / "cpu.stat", "")
            if "nr_throttled" in found:
                yield Reading("cgroup_throttled_periods", found["nr_throttled"])
                yield Reading(
                    "cgroup_throttled_us", found.get("throttled_usec", found.get("throttled_time", 0) // 1000)
                )
                return


def machine() -> Iterator[Reading]:
    """Pressure (microseconds in which some or all work waited) and the busy and idle time of all processors together."""
    for resource in ("cpu", "io", "memory"):
        for line in _text(PROC / "pressure" / resource).splitlines():
            share, _, total = line.partition(" avg10=")
            yield Reading(f"pressure_{resource}_{share}_us", int(total.rpartition("total=")[2]))
    words = _text(PROC / "stat").partition("\n")[0].split()[1:]
    if len(words) >= 8:
        user, nice, system, idle, iowait, irq, softirq, steal = (int(word) * TICK_NS for word in words[:8])
        yield Reading("machine_busy_ns", user + nice + system + irq + softirq)
        yield Reading("machine_idle_ns", idle)
        yield Reading("machine_iowait_ns", iowait)
        yield Reading("machine_steal_ns", steal)


def _fields(path: Path, separator: str = ":") -> dict[str, int]:
    found: dict[str, int] = {}
    for line in _text(path).splitlines():
        name, _, value = line.partition(separator or " ")
        if value.strip().isdigit():
            found[name] = int(value)
    return found


def _text(path: Path | str) -> str:
    """The file, or nothing where it does not exist, may not be read, or its process ended."""
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
