"""Ten times a second, from outside: who of the service ran, who waited for a processor, what it wrote, what was scarce.

``samples.jsonl`` holds one counter a line: ``t`` (Unix ns), ``pid`` (0 for the whole machine), ``name`` ending with its
unit, ``value`` and, for one thread, ``tid``. Counters only grow; one that is missing has not changed. No code runs in
the service.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from teller_core.collect import proc

INTERVAL_S = 0.1
SLOW_EVERY = 10
"""New processes are looked for, and context switches counted, once in this many samples: both are dear to read."""


@dataclass
class _Seen:
    """The last value of every counter, and what threads had run and waited for when they ended."""

    values: dict[tuple[int, int, str], int] = field(default_factory=dict[tuple[int, int, str], int])
    threads: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict[int, dict[int, tuple[int, int]]])
    switches: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict[int, dict[int, tuple[int, int]]])


def sample(root: int, path: Path, stop: threading.Event) -> None:
    """Sample the process ``root`` and its descendants into ``path`` until ``stop`` is set or all have ended."""
    seen = _Seen()
    members: list[int] = []
    with path.open("w", buffering=1 << 14) as file:
        turn = 0
        while not stop.is_set():
            slow = turn % SLOW_EVERY == 0
            if slow and not (members := proc.family(root)):
                return
            _write(file.write, seen, members, slow)
            file.flush()
            turn += 1
            stop.wait(INTERVAL_S)
        _write(file.write, seen, members, True)


def _write(write: Callable[[str], object], seen: _Seen, members: list[int], slow: bool) -> None:
    for pid in members:
        now = time.time_ns()
        for reading in _process(seen, pid, slow):
            _write_new(write, seen, now, pid, reading)
    now = time.time_ns()
    for reading in proc.machine():
        _write_new(write, seen, now, 0, reading)


def _write_new(write: Callable[[str], object], seen: _Seen, now: int, pid: int, reading: proc.Reading) -> None:
    key = (pid, reading.thread, reading.name)
    if seen.values.get(key) == reading.value:
        return
    seen.values[key] = reading.value
    row = {"t": now, "pid": pid, "name": reading.name, "value": reading.value}
    if reading.thread:
        row["tid"] = reading.thread
    write(json.dumps(row) + "\n")


def _process(seen: _Seen, pid: int, slow: bool) -> Iterator[proc.Reading]:
    """The counters of one process: its threads that moved, then their sums (ended threads included), I/O, throttling."""
    known = seen.threads.setdefault(pid, {})
    for thread, run, waited in proc.threads(pid):
        if known.get(thread) != (run, waited):
            known[thread] = (run, waited)
            yield proc.Reading("run_ns", run, thread)
            yield proc.Reading("run_queue_wait_ns", waited, thread)
    yield proc.Reading("run_ns", sum(run for run, _ in known.values()))
    yield proc.Reading("run_queue_wait_ns", sum(waited for _, waited in known.values()))
    if slow:
        counted = seen.switches.setdefault(pid, {})
        counted |= {thread: proc.switches(pid, thread) for thread, _, _ in proc.threads(pid)}
        yield proc.Reading("voluntary_switches", sum(own for own, _ in counted.values()))
        yield proc.Reading("involuntary_switches", sum(forced for _, forced in counted.values()))
    yield from proc.io(pid)
    yield from proc.throttling(pid)
