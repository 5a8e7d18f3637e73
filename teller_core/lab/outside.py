"""What can be done to a running service from outside: to the machine that it runs on, and to its processes."""

import os
import random
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

CGROUP = Path("/sys/fs/cgroup")
WATCH_S = 0.05
PERIOD_US = 100_000
"""The kernel's own default for quotas (sched-bwc.rst)."""
_UNTIL_ORPHANED = """
import os, sys, time
parent, busy, free = os.getppid(), *map(float, sys.argv[1:3])
"""
BURNER = f"""{_UNTIL_ORPHANED}
while os.getppid() == parent:
    until = time.perf_counter() + busy
    while time.perf_counter() < until: pass
    if free: time.sleep(free)
"""
STREAM = f"""{_UNTIL_ORPHANED}
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # memory is to be what it takes, and no processor
import numpy
one, other = numpy.ones(1 << 23), numpy.zeros(1 << 23)  # 64 MiB each: more than caches hold
while os.getppid() == parent:
    until = time.perf_counter() + busy
    while time.perf_counter() < until: numpy.copyto(one, other)
    if free: time.sleep(free)
"""
TURN_S = 0.1


class Delay(NamedTuple):
    """Between ``start`` and ``stop`` (Unix ns) the fault took ``delay`` ns from the thread that makes the tokens."""

    start: int
    stop: int
    delay: int


class Process(NamedTuple):
    """A process of the service, and its thread that does what its role is."""

    pid: int
    thread: int

    @property
    def task(self) -> Path:
        """The folder of that thread in /proc."""
        return Path("/proc") / str(self.pid) / "task" / str(self.thread)


def waited(task: Path) -> int | None:
    """ns that a thread was ready to run and did not; None where the system does not count it."""
    try:
        return int((task / "schedstat").read_text().split()[1])
    except (OSError, IndexError):
        return None


def together(delays: Sequence[Delay]) -> list[Delay]:
    """``delays`` of processes that wait for one another: where they overlap, they cost no more than what they last together."""
    found: list[Delay] = []
    for start, stop, cost in sorted(delays):
        if found and start < found[-1].stop:
            first, last, before = found.pop()
            last = max(last, stop)
            found.append(Delay(first, last, min(last - first, before + cost)))
        else:
            found.append(Delay(start, stop, cost))
    return found


@contextmanager
def waits_of(tasks: Sequence[Path]) -> Generator[list[Delay]]:
    """What threads (their folders in /proc) wait for a processor meanwhile, looked at twenty times a second: the one that waits
    longest, as each waits for the others.
    """
    seen: list[Delay] = []
    with _meanwhile(lambda stop: _watch(tasks, seen, stop)):
        yield seen


@contextmanager
def _meanwhile(work: Callable[[threading.Event], None]) -> Generator[None]:
    """Run ``work`` on a thread of its own until the block is left: it ends soon after its event is set."""
    stop = threading.Event()
    thread = threading.Thread(target=work, args=(stop,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _watch(tasks: Sequence[Path], seen: list[Delay], stop: threading.Event) -> None:
    before, since = [waited(task) for task in tasks], time.time_ns()
    while not stop.wait(WATCH_S):
        after, now = [waited(task) for task in tasks], time.time_ns()
        both = zip(before, after, strict=True)
        if lost := max((new - old for old, new in both if old is not None and new is not None), default=0):
            seen.append(Delay(min(since, now - lost), now, lost))  # a wait is counted when it ends
        before, since = after, now


@contextmanager
def burn(knobs: Mapping[str, float]) -> Generator[None]:
    """Programs of somebody else that want the same processors: ``burners`` on two, more on more, each busy ``duty_percent``."""
    with _others(BURNER, int(knobs["burners"]), knobs["duty_percent"]):
        yield


@contextmanager
def stream(knobs: Mapping[str, float]) -> Generator[None]:
    """Programs of somebody else that copy 64 MiB again and again: ``streams`` on two processors, ``duty_percent`` of the time."""
    with _others(STREAM, int(knobs["streams"]), knobs["duty_percent"]):
        yield


@contextmanager
def _others(code: str, count: int, duty: float) -> Generator[None]:
    shares = max(1, len(os.sched_getaffinity(0)) // 2)  # on more processors one would stay free, and strike nobody
    times = [str(TURN_S * duty / 100), str(TURN_S * (100 - duty) / 100)]
    # Sessions of their own: Linux may share the processors out between sessions, not between processes.
    others = [
        subprocess.Popen([sys.executable, "-S" if code is BURNER else "-u", "-c", code, *times], start_new_session=True)
        for _ in range(count * shares)
    ]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@contextmanager
def freeze(pids: Sequence[int], knobs: Mapping[str, float]) -> Generator[list[Delay]]:
    """Stop processes for ``ms``, about every ``every_s``. They run when this ends, whatever happens."""
    seen: list[Delay] = []

    def signalled(number: int) -> bool:
        """Whether somebody was there."""
        there = False
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                there = True
        return there

    def pulses(stop: threading.Event) -> None:
        while not stop.wait(knobs["every_s"] * random.uniform(0.8, 1.2)):
            start = time.time_ns()
            if signalled(signal.SIGSTOP):
                stop.wait(knobs["ms"] / 1e3)
                signalled(signal.SIGCONT)
                now = time.time_ns()
                seen.append(Delay(start, now, now - start))

    try:
        with _meanwhile(pulses):
            yield seen
    finally:
        signalled(signal.SIGCONT)


def quota_root(cgroup: Path = CGROUP) -> Path | None:
    """Where a control group with a quota of processor time can be made: version 2, or version 1 beside it. None: nowhere."""
    with suppress(OSError):
        if "cpu" in (cgroup / "cgroup.controllers").read_text().split() and os.access(cgroup / "cgroup.procs", os.W_OK):
            return cgroup
    old = cgroup / "cpu"
    return old if (old / "cgroup.procs").exists() and os.access(old / "cgroup.procs", os.W_OK) else None


class Groups:
    """A control group of its own for each process of the service, from the start of its life: only the quota ever changes."""

    def __init__(self, root: Path, processes: Sequence[Process]) -> None:
        self._root = root
        self._folders = {process.pid: root / f"service-{secrets.token_hex(4)}" for process in processes}
        self.is_new = (root / "cgroup.controllers").exists()

    def place(self) -> None:
        """Make the groups, and put the processes into them. Raises OSError where the system refuses."""
        if self.is_new:
            (self._root / "cgroup.subtree_control").write_text("+cpu")
        for pid, folder in self._folders.items():
            folder.mkdir()
            (folder / "cgroup.procs").write_text(str(pid))

    @contextmanager
    def quota(self, pid: int, knobs: Mapping[str, float]) -> Generator[None]:
        """Let ``pid`` run no more than ``percent`` of one processor's time."""
        micros = int(knobs["percent"] / 100 * PERIOD_US)
        self._limit(pid, f"{micros} {PERIOD_US}" if self.is_new else str(micros))
        try:
            yield
        finally:
            self._limit(pid, f"max {PERIOD_US}" if self.is_new else "-1")

    def throttled(self, pid: int) -> int | None:
        """ns for which the quota stopped ``pid`` so far; None where its group does not say."""
        with suppress(OSError, KeyError):
            words = (self._folders[pid] / "cpu.stat").read_text().split()
            told = dict(zip(words[::2], map(int, words[1::2]), strict=False))
            return told["throttled_time"] if "throttled_time" in told else told["throttled_usec"] * 1000
        return None

    def remove(self) -> None:
        """Take the groups away. Who still lives goes back to where groups begin."""
        for folder in self._folders.values():
            with suppress(OSError):
                for pid in (folder / "cgroup.procs").read_text().split():
                    (self._root / "cgroup.procs").write_text(pid)
            with suppress(OSError):
                folder.rmdir()

    def _limit(self, pid: int, text: str) -> None:
        with suppress(FileNotFoundError):  # the process has ended, and its group was taken away
            (self._folders[pid] / ("cpu.max" if self.is_new else "cpu.cfs_quota_us")).write_text(text)


@contextmanager
def grouped(processes: Sequence[Process]) -> Generator[Groups | None]:
    """Groups for ``processes``, taken away on leaving; None where there can be none."""
    root = quota_root()
    if root is None or not processes:
        yield None
        return
    with ExitStack() as stack:
        groups = Groups(root, processes)
        stack.callback(groups.remove)
        try:
            groups.place()
        except OSError:
            yield None
            return
        yield groups
