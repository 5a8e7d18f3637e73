"""A few steps of a window of the lab under the profiler: asked for before the load is sent, whole when all of it is answered."""

import json
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teller_core.collect.bundle import Service
from teller_core.collect.finished import regular_files
from teller_core.collect.windows.control import Window, ask, close
from teller_core.data.table import UNKNOWN
from teller_core.errors import TellerError
from teller_core.lab import load
from teller_core.lab.serving import Live

STEPS = 4
"""About 3,000 events of the lab's models: a window of more would be felt by those who come after it."""
AFTER_S = 0.6
"""When it opens, after it was asked for: processes look every quarter of a second, and one that is struck later."""
LONGEST_S = 10.0
"""Of a window whose steps are few or very slow."""
WRITTEN_S = 60.0
LOOK_S = 0.02
WARM = tuple(load.Ask(f"warmup-{number:03d}", 0.3 * number, 20 + 20 * number, 32) for number in range(4, 9))
OVER = ("profile_stop", "profile_lost", "profile_refused")


@dataclass
class Profiled:
    """What a window of the profiler was.

    ``begin``, ``end``: Unix ns, when its first worker began to open it and its last one had written it. ``stall``: ns for
    which threads of a worker stood still for it, of the worker that had it worst. ``steps``: that ran inside wholly, of the
    worker that has the fewest. ``events``: of all workers, by the size of their traces.
    """

    begin: int = UNKNOWN
    end: int = UNKNOWN
    stall: int = 0
    steps: int = 0
    events: int = 0


@contextmanager
def profiled(live: Live, *, others: Sequence[Service] = (), steps: int = STEPS) -> Generator[Profiled]:
    """Profile ``steps`` steps of every worker of ``live``, all from the same moment on, AFTER_S after this begins.

    Nothing is waited for before the block runs. On leaving it, what is still open is closed, and waited for until it is written;
    what is yielded is whole then. ``others``: recordings that hold further workers. The same is asked whatever is done to the
    service: no recording tells by its windows. Raises TellerError where a worker does not open it, or leaves no trace.
    """
    recordings = [live.service, *others]
    pids = {process.pid for role, process in live.processes.items() if role.startswith("worker")}
    before = _sizes(recordings, pids)
    at = time.time_ns() + int(AFTER_S * 1e9)
    for each in recordings:
        ask(each.cap, Window(LONGEST_S, steps, None, at=at))
    found = Profiled()
    try:
        yield found
        _wait(live, recordings, pids, before, ("profile_start", *OVER))
    finally:
        for each in recordings:
            close(each.cap)
    _fill(found, _wait(live, recordings, pids, before, OVER))


def warm(live: Live, *, others: Sequence[Service] = ()) -> list[dict[str, Any]]:
    """Open the first window of the life, which takes each process longer than those after it. Returns the client's rows."""
    began = WARM[0].at
    with profiled(live, others=others):
        return load.send(live.target, [ask._replace(at=ask.at - began) for ask in WARM], len(WARM), 0)


def _fill(found: Profiled, said: Mapping[int, Sequence[Mapping[str, Any]]]) -> None:
    """Say in ``found`` what the workers told of it."""
    rows = [row for of_worker in said.values() for row in of_worker]
    if any(row["name"] in ("profile_lost", "profile_refused") for row in rows):
        raise TellerError("The profiler's window", "a worker wrote no trace of it", "Read the events of its recording")
    found.begin = min(row["t"] - row["cost"] for row in rows if row["name"] == "profile_start")
    found.end = max(row["t"] for row in rows)
    found.stall = max(sum(row.get("cost", 0) for row in of_worker) for of_worker in said.values())
    stops = [row for row in rows if row["name"] == "profile_stop"]
    found.steps = min(row["steps"] for row in stops)
    found.events = sum(row["events"] for row in stops)


def _wait(
    live: Live, recordings: Sequence[Service], pids: set[int], before: Mapping[Path, int], names: Sequence[str]
) -> Mapping[int, Sequence[Mapping[str, Any]]]:
    """What each worker said of the window, once each has said one of ``names``."""
    deadline = time.monotonic() + WRITTEN_S
    while True:
        said = {pid: _said(recordings, pid, before) for pid in pids}
        if all(any(row["name"] in names for row in rows) for rows in said.values()):
            return said
        if live.service.process.poll() is not None or time.monotonic() > deadline:
            raise TellerError("The profiler's window", "a worker did not answer", "Read server.log in its bundle")
        time.sleep(LOOK_S)


def _said(recordings: Sequence[Service], pid: int, before: Mapping[Path, int]) -> Sequence[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    for path in _files(recordings, pid):
        lines = _since(path, before.get(path, 0)).split(b"\n")[:-1]  # the last one is still being written, or empty
        rows += [json.loads(line) for line in lines if b'"name": "profile_' in line]
    return rows


def _since(path: Path, place: int) -> bytes:
    with suppress(FileNotFoundError), path.open("rb") as file:  # its ring may have taken it away
        file.seek(place)
        return file.read()
    return b""


def _sizes(recordings: Sequence[Service], pids: set[int]) -> Mapping[Path, int]:
    return {path: path.lstat().st_size for pid in pids for path in _files(recordings, pid)}


def _files(recordings: Sequence[Service], pid: int) -> Sequence[Path]:
    names = (f"host-{pid}.jsonl", f"host-{pid}-*.jsonl")
    return [path for each in recordings for name in names for path in regular_files(each.cap, name)]
