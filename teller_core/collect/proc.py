"""What Linux says about processes and the machine in /proc and cgroups. Everything is a counter that only grows."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

PROC = "/proc"
"""Text: it is put together with numbers hundreds of times a second."""
CGROUP = Path("/sys/fs/cgroup")
HIERARCHIES = ("", "unified")
"""Where below CGROUP version 2 is mounted: alone, or beside version 1."""
TICK_NS = 10_000_000
"""One unit of the times in /proc/stat: USER_HZ is 100 on every Linux that Python runs on (man 5 proc)."""
MOST_READ, FEW_BYTES = 8192, 448
"""Bytes: what is read asks for as much memory as it may become, and Python has little pieces (of 512, of which bytes take 33
themselves) at hand.
"""


class Reading(NamedTuple):
    """One counter: its name ends with its unit."""

    name: str
    value: int


def family(root: int) -> list[int]:
    """``root`` and the processes below it, and those of its session, in order of pid."""
    return Family(root).members()


class Family:
    """A process and all that ever came from it. Whoever was a member stays one, though its parent ends before it."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._origins: dict[int, tuple[int, int]] = {}
        self._inside: set[int] = set()

    def members(self) -> list[int]:
        """Those that live, in order of pid. Reads of /proc only what is new since the last call."""
        living = set(map(int, filter(str.isdigit, _names(str(PROC)))))
        for pid in self._origins.keys() - living:
            del self._origins[pid]
        for pid in living - self._origins.keys():
            self._origins[pid] = _origin(pid)
        self._inside &= living
        self._inside |= {pid for pid in living if pid == self._root or self._origins[pid][1] == self._root}
        grown = True
        while grown:
            found = {pid for pid in living if self._origins[pid][0] in self._inside} - self._inside
            self._inside |= found
            grown = bool(found)
        return sorted(self._inside)


def _origin(pid: int) -> tuple[int, int]:
    """(parent, session) of ``pid``, zeros where it is gone."""
    fields = _text(f"{PROC}/{pid}/stat").rpartition(") ")[2].split()
    return (int(fields[1]), int(fields[3])) if len(fields) > 3 else (0, 0)


def thread_count(pid: int) -> int:
    """How many threads ``pid`` has, 0 where it is gone. Far cheaper than to list them."""
    try:
        return os.stat(f"{PROC}/{pid}/task").st_nlink - 2
    except OSError:
        return 0


def thread_ids(pid: int) -> list[int]:
    """The threads of ``pid`` that live."""
    return [int(name) for name in _names(f"{PROC}/{pid}/task")]


def ticks(pid: int) -> int:
    """Hundredths of a second that ``pid`` ran, ended threads included, -1 where it is gone."""
    fields = _text(f"{PROC}/{pid}/stat").rpartition(") ")[2].split()
    return int(fields[11]) + int(fields[12]) if len(fields) > 12 else -1


class Kept:
    """Files of /proc and of control groups that stay open: to read one again is a third of the cost."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._files: dict[str, int] = {}
        self._missing: set[str] = set()

    def read(self, path: str) -> str:
        """The file, or nothing where it does not exist, may not be read, or its process ended."""
        return self.raw(path).decode("utf-8", "replace")

    def raw(self, path: str, most: int = MOST_READ) -> bytes:
        """Its first bytes as they are: most files say what they said before, and need no decoding."""
        file = self._files.get(path)
        if file is None:
            if path in self._missing:
                return b""
            if len(self._files) >= self._most:
                return _raw(path)
            try:
                file = self._files[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:  # a kernel that has no such file will not get one; a process or thread does not come back
                self._missing.add(path)
                return b""
        try:
            return os.pread(file, most, 0)
        except OSError:
            return b""

    def forget(self, path: str) -> None:
        """Close the file that was at ``path``."""
        self._missing.discard(path)
        if (file := self._files.pop(path, None)) is not None:
            os.close(file)

    def close(self) -> None:
        """Close all."""
        for path in [*self._files]:
            self.forget(path)


def schedstat(pid: int, thread: int) -> str:
    """The file that tells how long one thread ran and waited."""
    return f"{PROC}/{pid}/task/{thread}/schedstat"


def ran(text: bytes) -> tuple[int, int] | None:
    """(ns run, ns waited in the run queue) of the ``text`` of a schedstat; None where it is none."""
    numbers = text.split()
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 3 else None


def switches(pid: int, thread: int) -> tuple[int, int]:
    """(voluntary, involuntary) context switches of one thread."""
    words = _text(f"{PROC}/{pid}/task/{thread}/status").rpartition("\nvoluntary_ctxt_switches:")[2].split()
    return (int(words[0]), int(words[2])) if len(words) > 2 else (0, 0)


def io(text: str) -> Iterator[Reading]:
    """Bytes that a process caused to be read from and written to storage, and its write calls, of its /proc/PID/io."""
    for name, field in (("write_calls", "syscw:"), ("read_bytes", "\nread_bytes:"), ("write_bytes", "\nwrite_bytes:")):
        value = text.partition(field)[2].partition("\n")[0]
        if value:
            yield Reading(name, int(value))


def groups(pid: int) -> tuple[str, ...]:
    """The control groups of ``pid`` that may hold it back, innermost first: those with a quota controller, and the ones
    above them that can be seen."""
    found: list[str] = []
    for line in _text(f"{PROC}/{pid}/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        inner = Path(path.lstrip("/"))
        for base in [CGROUP / "cpu"] if controllers else [CGROUP / name for name in HIERARCHIES]:
            found += [str(base / group) for group in (inner, *inner.parents) if (base / group / "cpu.stat").exists()]
    return tuple(dict.fromkeys(found))


def throttling(inside: tuple[str, ...], read: Callable[[str], str]) -> Iterator[Reading]:
    """How often and how long the CPU quotas of control groups stopped their processes, where there is a quota controller."""
    periods, micros, known = 0, 0, False
    for group in inside:
        found = _fields(read(f"{group}/cpu.stat"))
        if "nr_throttled" in found:
            known = True
            periods += found["nr_throttled"]
            micros += found.get("throttled_usec", found.get("throttled_time", 0) // 1000)
    if known:
        yield Reading("cgroup_throttled_periods", periods)
        yield Reading("cgroup_throttled_us", micros)


def limited(inside: tuple[str, ...], read: Callable[[str], str]) -> bool:
    """Whether any of the control groups has, or had, a quota: only then periods are counted."""
    return any(_fields(read(f"{group}/cpu.stat")).get("nr_periods", 0) > 0 for group in inside)


def group_pressure(inside: tuple[str, ...], read: Callable[[str], str]) -> Iterator[Reading]:
    """Microseconds in which some or all work of the innermost group waited; only version 2 counts this."""
    for resource in ("cpu", "io", "memory"):
        yield from _pressure("cgroup_pressure", resource, read(f"{inside[0]}/{resource}.pressure") if inside else "")


def pressure(read: Callable[[str], str]) -> Iterator[Reading]:
    """Microseconds in which some or all work on the machine waited for a resource."""
    for resource in ("cpu", "io", "memory"):
        yield from _pressure("pressure", resource, read(f"{PROC}/pressure/{resource}"))


def processors(read: Callable[[str], str]) -> Iterator[Reading]:
    """The busy and idle time of all processors together."""
    words = read(f"{PROC}/stat").partition("\n")[0].split()[1:]
    if len(words) >= 8:
        user, nice, system, idle, iowait, irq, softirq, steal = (int(word) * TICK_NS for word in words[:8])
        yield Reading("machine_busy_ns", user + nice + system + irq + softirq)
        yield Reading("machine_idle_ns", idle)
        yield Reading("machine_iowait_ns", iowait)
        yield Reading("machine_steal_ns", steal)


def _pressure(prefix: str, resource: str, text: str) -> Iterator[Reading]:
    for line in text.splitlines():
        share, found, total = line.partition(" avg10=")
        if found:
            yield Reading(f"{prefix}_{resource}_{share}_us", int(total.rpartition("total=")[2]))


def _fields(text: str) -> dict[str, int]:
    words = text.split()
    return {name: int(value) for name, value in zip(words[::2], words[1::2], strict=False) if value.isdigit()}


def _text(path: Path | str) -> str:
    """The file, or nothing where it does not exist, may not be read, or its process ended."""
    return _raw(path).decode("utf-8", "replace")


def _raw(path: Path | str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
