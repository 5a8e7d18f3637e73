"""A recording that somebody else waits for: a process of its own that ends when it was told to, or when its owner is gone.

The owner holds the other end of the job's standard input. One line asks it to end; the end of the file, which comes
however the owner dies, ends it too, with the command that it records and all that the command started. What the job
says about itself comes as lines of JSON on its standard output: see :mod:`teller_core.collect.job_process`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from teller_core.errors import OutOfRoom


@dataclass(frozen=True)
class JobPlan:
    """What to record into ``folder``. ``kind``: ``command`` runs ``command`` under the recorder; ``attach`` opens a window in
    the capture that runs in ``source``; ``endpoint`` asks the engine there for a profile, which it writes to ``source``.
    """

    kind: str
    folder: Path
    seconds: float
    """The longest: a command that ends sooner ends the job."""
    most_bytes: int
    window_s: float = 0.0
    """Seconds of the profiler's window, 0 for none."""
    command: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    working_folder: Path | None = None
    endpoint: str = ""
    allowed: tuple[str, ...] = ()
    """HOST:PORT of endpoints that are allowed besides those of this machine."""
    source: Path | None = None


class Told(NamedTuple):
    """What a job said last. ``ended_by``: time, size, itself, asked or owner_gone; empty while it runs."""

    state: str
    """starting, recording, ending, ended or failed."""
    elapsed_s: float = 0.0
    bytes: int = 0
    pid: int = 0
    """The process that is recorded, which leads a session of its own; 0 for none."""
    exit: int | None = None
    """Its exit status, negative for a signal."""
    ended_by: str = ""
    error: str = ""


@dataclass
class Job:
    """A job that was started. ``told`` changes until ``done`` is set."""

    process: subprocess.Popen[str]
    told: Told = field(default_factory=lambda: Told("starting"))
    done: threading.Event = field(default_factory=threading.Event)


def start(plan: JobPlan) -> Job:
    """Start ``plan`` and return at once. What goes wrong later is told as ``failed``. Raises OutOfRoom without a process."""
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "teller_core.collect.job_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C at the owner's terminal reaches the owner, whose end this job sees
        )
    except OSError as error:
        why = f"the system starts no process ({error.strerror})"
        raise OutOfRoom("The capture", why, "Try again when the machine is less busy") from None
    job = Job(process)
    _send(job, json.dumps(asdict(plan), default=str))
    threading.Thread(target=_listen, args=(job,), daemon=True).start()
    return job


def stop(job: Job) -> None:
    """Ask ``job`` to end now: it closes what it has recorded, as when its time is up."""
    _send(job, "stop")


def kill(job: Job) -> None:
    """End ``job`` and what it records at once: for one that does not end when asked."""
    with suppress(ProcessLookupError):
        job.process.kill()
    _kill_session(job.told.pid)


def _send(job: Job, line: str) -> None:
    if job.process.stdin is not None:
        with suppress(OSError, ValueError):  # it has ended by itself, and the pipe may be closed
            job.process.stdin.write(line + "\n")
            job.process.stdin.flush()


def _listen(job: Job) -> None:
    """Keep what the job says, until it says no more."""
    assert job.process.stdout is not None and job.process.stdin is not None
    for line in job.process.stdout:
        with suppress(ValueError, TypeError):
            job.told = Told(**json.loads(line))
    status = job.process.wait()
    if job.told.state not in ("ended", "failed"):
        _kill_session(job.told.pid)
        job.told = job.told._replace(state="failed", error=f"its process ended early (status {status})")
    with suppress(OSError):
        job.process.stdin.close()
    job.process.stdout.close()
    job.done.set()


def _kill_session(pid: int) -> None:
    if pid > 1:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
