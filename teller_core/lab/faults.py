"""Faults that strike a running service for real, and what they did to it, from the injector's own records."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from teller_core.lab.outside import Delay, waited
from teller_core.lab.plan import Plan

__all__ = ["Delay"]  # what the injectors tell, for all who ask here

INJECT = Path(__file__).parent / "inject"
WATCH_S = 0.05
MOUNTS = Path("/proc/mounts")
IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")


def write_plan(plan: Plan, folder: Path) -> Path:
    """Write what the injector inside the service needs into ``folder``; returns the file."""
    file = folder / "plan"
    content: dict[str, Any] = {
        "fault": plan.fault,
        **plan.severity,
        "file": str(on_disk(folder) / f".{folder.name}.journal"),
    }
    file.write_text(json.dumps(content))
    return file


def strike(plan: Plan, file: Path, task: Path, stop: threading.Event) -> list[Delay]:
    """Wait until it is time, let the fault strike, wait until it is over. Returns the delays seen from outside.

    ``task`` is the folder in /proc of the thread that makes the tokens.
    """
    if stop.wait(plan.strike):
        return []
    begin = time.time_ns()
    end = begin + int(plan.length * 1e9)
    hidden = file.with_suffix(".hidden")
    hidden.write_text(f"{begin} {end}")
    hidden.replace(file.with_name(file.name + ".window"))
    if plan.fault == "cpu_hog":
        return _burn(int(plan.severity["burners"]), task, end, stop)
    stop.wait(plan.length)
    return []


def logged(file: Path) -> list[Delay]:
    """The delays that the injector inside the service wrote down."""
    log = file.with_name(file.name + ".log")
    spans = [tuple(map(int, line.split())) for line in log.read_text().splitlines()] if log.exists() else []
    return [Delay(start, stop, stop - start) for start, stop in spans]


def _burn(burners: int, task: Path, end: int, stop: threading.Event) -> list[Delay]:
    """Programs of somebody else that want the same processors, and how long the thread then waited for one. ``burners``: how many
    on two processors; on more there are more, else one would stay free and the fault strike nobody.
    """
    shares = max(1, len(os.sched_getaffinity(0)) // 2)
    busy = [sys.executable, "-S", "-c", "while True: pass"]
    # Sessions of their own: Linux may share the processors out between sessions, not between processes.
    others = [subprocess.Popen(busy, start_new_session=True) for _ in range(burners * shares)]
    seen: list[Delay] = []
    try:
        before, since = waited(task), time.time_ns()
        while time.time_ns() < end and not stop.wait(WATCH_S):
            after, now = waited(task), time.time_ns()
            lost = now - since if before is None or after is None else after - before
            seen.append(Delay(min(since, now - lost), now, lost))  # a wait is counted when it ends
            before, since = after, now
    finally:
        for other in others:
            other.kill()
            other.wait()
    return seen


def on_disk(folder: Path) -> Path:
    """A folder on a real disk, the one given where it is on one: forcing a file to memory costs nothing."""
    if not MOUNTS.exists():
        return folder
    mounts = [line.split()[1:3] for line in MOUNTS.read_text().splitlines()]

    def in_memory(path: Path) -> bool:
        holding = [(len(point), kind) for point, kind in mounts if path.resolve().is_relative_to(point)]
        return max(holding)[1] in IN_MEMORY if holding else False

    if not in_memory(folder):
        return folder
    others = (Path.cwd(), Path.home(), Path("/var/tmp"))
    return next((other for other in others if other.is_dir() and not in_memory(other)), folder)
