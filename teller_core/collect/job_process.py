"""The process of a job: ``python -m teller_core.collect.job_process``, which :func:`jobs.start` starts and speaks to.

The first line of standard input is the plan, as JSON. Another line, or the end of the input, ends the recording. Twice a
second a line of JSON on standard output says how far it is. Nothing of what is recorded outlives this process, wherever
it forked to: orphans of the command become children of this process, and are ended with it.
"""

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from teller_core.collect import proc
from teller_core.collect.bundle import record
from teller_core.collect.job_sources import Stop, attached, from_endpoint, size_of, windows_of
from teller_core.collect.jobs import JobPlan, Told
from teller_core.collect.ring import Bounds
from teller_core.errors import TellerError

TO_END = (signal.SIGTERM, signal.SIGQUIT)
NOTHING = (signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""The owner ends this process by closing its input; a signal must not end it alone, and leave behind what it records."""
TELL_EVERY_S = 0.5
POLL_S = 0.1
LEAST_BYTES = 1 << 20
END_S = 10.0
"""How long what was killed may take to end: on a busy machine that is not at once, and in a call to a dead disk never."""
PR_SET_CHILD_SUBREAPER = 36
"""``man 2 prctl``: orphans below this process become its children instead of those of the first process."""


def main() -> int:
    """Record what standard input asks for. Returns 0 where a bundle was made, else 1."""
    for number in (*TO_END, *NOTHING):
        signal.signal(number, _Speaker.hear)  # ignored, they would be so for the command too
    with open(
        0, "rb", buffering=0, closefd=False
    ) as owner:  # unbuffered: a line that is read is one that was waited for
        first = owner.readline()
        if not first:
            return 1
        return _run(_plan(json.loads(first)), owner)


def _run(plan: JobPlan, owner: IO[bytes]) -> int:
    speaker = _Speaker(plan, owner)
    _keep_orphans()
    try:
        told = _RUN[plan.kind](plan, speaker)
    except TellerError as error:
        told = Told("failed", speaker.elapsed(), error=str(error))
    except OSError as error:
        told = Told(
            "failed", speaker.elapsed(), error=f"the recording broke off: {error.strerror or 'no reason given'}"
        )
    finally:
        _end_all()
    speaker.say(told)
    return int(told.state == "failed")


def _plan(fields: dict[str, Any]) -> JobPlan:
    paths: dict[str, Any] = {key: fields[key] and Path(fields[key]) for key in ("folder", "working_folder", "source")}
    lists: dict[str, Any] = {key: tuple(fields[key]) for key in ("command", "allowed")}
    return JobPlan(**{**fields, **paths, **lists})


class _Speaker:
    """Listens to the owner and tells it how far the job is."""

    signaled = False
    """Whether somebody asked this process to end by a signal."""

    def __init__(self, plan: JobPlan, owner: IO[bytes]) -> None:
        self.plan = plan
        self.owner = owner
        self.began = time.monotonic()
        self.last = 0.0
        self.size = 0

    @classmethod
    def hear(cls, number: int, _: object) -> None:
        cls.signaled |= number in TO_END

    def elapsed(self) -> float:
        return round(time.monotonic() - self.began, 1)

    def say(self, told: Told) -> None:
        with suppress(BrokenPipeError):
            sys.stdout.write(json.dumps(told._asdict()) + "\n")
            sys.stdout.flush()

    def stop(self, pid: int = 0, state: str = "recording") -> str:
        """Wait a moment, tell, and say why to end now; empty to go on."""
        if select.select([self.owner], [], [], POLL_S)[0]:
            return "asked" if self.owner.readline() else "owner_gone"
        if self.signaled:
            return "asked"
        if time.monotonic() - self.last >= TELL_EVERY_S:
            self.last = time.monotonic()
            self.size = size_of(self.plan.folder)
            self.say(Told(state, self.elapsed(), self.size, pid))
        if self.size > self.plan.most_bytes:
            return "size"
        return "time" if self.elapsed() >= self.plan.seconds else ""


def _command(plan: JobPlan, speaker: _Speaker) -> Told:
    why = ""
    # The ring drops the oldest before the job's own bound ends it: that one is for what no ring holds.
    bounds = Bounds(most_bytes=max(plan.most_bytes * 3 // 4, LEAST_BYTES))
    with record(
        plan.command,
        plan.folder,
        plan.variables,
        working_folder=plan.working_folder,
        bounds=bounds,
        plan=windows_of(plan),
    ) as service:
        speaker.say(Told("recording", speaker.elapsed(), 0, service.process.pid))
        while not why:
            why = "itself" if service.process.poll() is not None else speaker.stop(service.process.pid)
        speaker.say(Told("ending", speaker.elapsed(), speaker.size, service.process.pid))
    return Told("ended", speaker.elapsed(), size_of(plan.folder), 0, service.process.returncode, why)


def _other(source: Callable[[JobPlan, Stop], str]) -> Callable[[JobPlan, _Speaker], Told]:
    """A job that starts nothing itself."""

    def run(plan: JobPlan, speaker: _Speaker) -> Told:
        why = source(plan, speaker.stop)
        return Told("ended", speaker.elapsed(), size_of(plan.folder), 0, None, why)

    return run


_RUN = {"command": _command, "attach": _other(attached), "endpoint": _other(from_endpoint)}


def _keep_orphans() -> None:
    with suppress(OSError, AttributeError):  # elsewhere than on Linux the session alone is ended
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_all() -> None:
    """End everything below this process, until nothing is there that could start more."""
    own, late = os.getpid(), time.monotonic() + END_S
    while time.monotonic() < late:
        below = [pid for pid in proc.family(own) if pid != own]
        if not below:
            return
        for pid in below:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main())
