"""What a job records besides a command of its own: a window in a capture that runs, or a profile by an engine's endpoint."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from teller_core.collect.bundle import events
from teller_core.collect.finished import copy_files, finished_files
from teller_core.collect.jobs import JobPlan
from teller_core.collect.packing import compress_traces
from teller_core.collect.windows.control import Window, ask, close
from teller_core.collect.windows.endpoints import start_profile, stop_profile
from teller_core.collect.windows.triggers import Plan
from teller_core.errors import InputError, LimitError

Stop = Callable[[], str]
"""Waits a moment and says why to end; empty to go on."""
DEFAULT_WINDOW_S = 2.0
OPENING_S = 3.0
"""Processes look for what they are asked ten times a second or more; one that is busy looks later."""
WRITING_S = 60.0
"""An engine writes its profile after it has answered that it stopped: how long the first file is waited for."""
WINDOW_AFTER_REQUESTS = 3
"""The first requests of a service compile and warm up: they are no picture of it."""


def size_of(folder: Path) -> int:
    """Bytes of all files below ``folder``; one that goes away meanwhile counts nothing."""
    return sum(size for _, size in finished_files(folder))


def windows_of(plan: JobPlan) -> Plan:
    """When windows open in the command of ``plan``: once, after its third request or at half of its time."""
    if not plan.window_s:
        return Plan()
    return Plan((plan.seconds / 2,), (WINDOW_AFTER_REQUESTS,), most=1, window=Window(seconds=plan.window_s))


def attached(plan: JobPlan, stop: Stop) -> str:
    """Open a window in the capture that runs in ``plan.source``, wait for its end, and copy what is recorded so far.

    Returns why it ended. Errors: InputError where no capture runs there, LimitError where it is too large to copy.
    """
    source = plan.source
    if source is None or not (source / "cap").is_dir():
        raise InputError(
            "The capture to attach to", "none is recorded there", "Start it with `capture`, or correct attach"
        )
    cap, asked = source / "cap", time.time_ns()
    seconds = plan.window_s or DEFAULT_WINDOW_S
    ask(cap, Window(seconds=seconds), "mcp")
    why = ""
    while not why:
        why = stop() or ("itself" if _over(cap, asked, seconds) else "")
    close(cap)
    _copy(list(finished_files(source)), source, plan)
    compress_traces(plan.folder / "cap")
    return why


def _over(cap: Path, asked: int, seconds: float) -> bool:
    """Whether every window that was opened since ``asked`` (Unix ns) is closed and written."""
    begun, ended = (
        sum(event.get("t", 0) >= asked for event in events(cap, name)) for name in ("profile_start", "profile_stop")
    )
    return time.time_ns() - asked > (seconds + OPENING_S) * 1e9 and ended >= begun


def from_endpoint(plan: JobPlan, stop: Stop) -> str:
    """Let the engine at ``plan.endpoint`` profile itself, and copy the files that it writes into ``plan.source``.

    Returns why it ended. The profile is stopped however the job ends. Errors: InputError for an endpoint that is not allowed,
    does not answer or refuses; for an engine that wrote nothing. LimitError for what is too large to copy.
    """
    before = set[Path]() if plan.source is None else {path for path, _ in finished_files(plan.source)}
    start_profile(plan.endpoint, plan.allowed)
    why, end = "", time.monotonic() + (plan.window_s or DEFAULT_WINDOW_S)
    try:
        while not why:
            why = stop() or ("itself" if time.monotonic() >= end else "")
    finally:
        stop_profile(plan.endpoint, plan.allowed)
    if plan.source is not None:
        _copy_new(plan.source, before, plan)
    return why


def _copy_new(source: Path, before: set[Path], plan: JobPlan) -> None:
    late = time.monotonic() + WRITING_S
    while not (new := [item for item in finished_files(source) if item[0] not in before]) or _growing(new):
        if time.monotonic() > late:
            why = "the engine answered, and wrote no profile there"
            raise InputError("The profile's folder", why, "Set traces to the folder that the engine writes to")
        time.sleep(0.2)
    _copy(new, source, plan)


def _growing(files: list[tuple[Path, int]]) -> bool:
    time.sleep(0.5)
    return any(path.exists() and path.stat().st_size != size for path, size in files)


def _copy(files: Sequence[tuple[Path, int]], source: Path, plan: JobPlan) -> None:
    if sum(size for _, size in files) > plan.most_bytes:
        most = plan.most_bytes // 1_000_000
        raise LimitError("The capture", f"it is larger than {most} MB", "Allow more megabytes in the profile")
    copy_files(files, source, plan.folder)
