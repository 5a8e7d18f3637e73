"""Run somebody's command as it is, and record it: its terminal, its signals and its exit status stay what they were.

The command stays in our process group, so that Ctrl-C and Ctrl-Z of a terminal reach it as if we were not there. A signal that
was sent to us alone is handed on, once. Its output goes into a file that it writes itself, and from there to our own. Without
us, even killed, it runs on.
"""

import os
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.collect.bundle import engine_of, started
from teller_core.collect.environment import Environment, environment
from teller_core.collect.finished import regular_files
from teller_core.collect.output import Shown, follow, log_line
from teller_core.collect.record import begin, finish, prepare, unwritable
from teller_core.collect.ring import Bounds
from teller_core.collect.signals import HANDED_ON, WINDOW, Held, let_through
from teller_core.collect.unread import EVERY_S, Unread
from teller_core.collect.windows.triggers import Plan, Watch
from teller_core.errors import InputError

OUTPUT, ERRORS = "server.log", "server-errors.log"
BLOCK = 4 << 20
PATIENCE_S = 2.0
"""How long after the end of the command a signal to end is not for us yet: it may be the one that ended the command."""
REQUESTS = (b"request.received", b"request.arrived", b"request.added", b"cb.add_request")
"""Each engine says some of these of a request."""
_MARKS = re.compile(rb'"name": ?"(' + rb"|".join(re.escape(name) for name in REQUESTS) + rb'|vllm\.schedule|cb\.step)"')


@dataclass(frozen=True)
class Wanted:
    """How to record. ``outs``: descriptors that get what the command prints, its output and its errors; None: neither."""

    bounds: Bounds = field(default_factory=Bounds)
    plan: Plan = field(default_factory=Plan)
    without: Collection[str] = ()
    outs: tuple[int, int] | None = (1, 2)


class Captured(NamedTuple):
    """What was recorded: the status of the command (negative: its signal), and what ``bundle.json`` says."""

    status: int
    about: Mapping[str, Any]
    seen: Mapping[str, int]
    """Events of the engine that were counted: requests and steps."""


def capture(
    command: Sequence[str],
    folder: Path,
    inherited: Mapping[str, str],
    wanted: Wanted,
    told: Callable[[Environment], object],
    *,
    signals: Held,
) -> Captured:
    """Run ``command`` with the environment ``inherited`` and record it into the new or empty ``folder``, until it ends.

    ``told`` is called with what is recorded when all is ready. Runs in the main thread, inside of ``held``, which gave
    ``signals``. Raises InputError where the folder is
    in use or cannot be written, where the command cannot be run, or where another capture records it already.
    """
    if inherited.get("TELLER_CAPTURE_DIR"):
        why = "it is part of a capture already, which records it too"
        raise InputError("The command to record", why, "Leave one `capture` out, or unset TELLER_CAPTURE_DIR")
    if shutil.which(command[0], path=inherited.get("PATH")) is None:
        raise InputError("The command to record", "there is no such program", "Check its name and that it runs alone")
    there = folder.exists()
    cap = prepare(folder)
    engine = engine_of(command)
    try:
        made = environment(cap, inherited, engine, wanted.bounds.of_writer(), without=wanted.without, words=command)
        about = started(command, made.on, made.off)
        watch = Watch(cap, wanted.plan, about["start_ns"])
        files = _files(folder)
    except OSError as error:
        _take_back(folder, there)
        raise unwritable(error) from None
    try:
        let_through(signals)
        pid = _spawn(command, made.variables, files, signals.mask)
    except (InputError, KeyboardInterrupt):
        _take_back(folder, there)
        raise
    told(made)
    shown = [Shown(unread=wanted.outs is None) for _ in files]
    with_samples = "samples" not in made.off
    recording = begin(
        folder, pid, about, watch, bounds=wanted.bounds, outputs=files, shown=shown, with_samples=with_samples
    )
    followers = _follow(pid, list(zip(files, shown, strict=True)), wanted.outs, engine)
    status = _wait(pid, signals.heard, watch)
    followers.end()
    finish(recording, status)
    for path in files[1:]:
        if _is_empty(path):
            path.unlink(missing_ok=True)
    return Captured(status, recording.about, _count(cap))


def _take_back(folder: Path, there: bool) -> None:
    """Remove what was made for a command that did not begin; the folder itself unless it was ``there``."""
    for path in folder.iterdir() if there else (folder,):
        shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


def exit_code(status: int) -> int:
    """The exit code that a shell would give for ``status``: 128 and the signal where one ended the command."""
    return 128 - status if status < 0 else status


def _files(folder: Path) -> list[Path]:
    """Where the command writes: errors into a file of their own where they go elsewhere than its output does now."""
    together = os.path.sameopenfile(1, 2)
    return [folder / OUTPUT] if together else [folder / OUTPUT, folder / ERRORS]


def _is_empty(path: Path) -> bool:
    try:
        return path.stat().st_size == 0
    except OSError:
        return False


def _spawn(command: Sequence[str], variables: Mapping[str, str], files: Sequence[Path], mask: set[int]) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    # What a service prints may be its users' affair: for its owner alone, as the answers are.
    actions: list[Any] = [
        (os.POSIX_SPAWN_OPEN, number, str(path), flags, 0o600) for number, path in enumerate(files, start=1)
    ]
    if len(files) == 1:
        actions.append((os.POSIX_SPAWN_DUP2, 1, 2))
    try:
        return os.posix_spawnp(
            command[0],
            list(command),
            variables,
            file_actions=actions,
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores both
        )
    except OSError as error:
        reason = (error.strerror or "the system refused it").lower()
        raise InputError("The command to record", reason, "Check its name and that it runs alone") from None


@dataclass
class _Followers:
    stop: threading.Event
    threads: Sequence[threading.Thread]

    def end(self) -> None:
        """Wait until all is shown, as long as its reader takes, or until a signal tells us to end too."""
        self.stop.set()
        until = time.monotonic() + PATIENCE_S
        for thread in self.threads:
            while thread.is_alive() and (time.monotonic() < until or not signal.sigpending() & set(HANDED_ON)):
                thread.join(EVERY_S / 10)


def _follow(pid: int, files: Sequence[tuple[Path, Shown]], outs: tuple[int, int] | None, engine: str) -> _Followers:
    stop = threading.Event()
    readable = log_line if engine == "vllm" else None

    def show(path: Path, out: int, shown: Shown) -> None:
        follow(path, out, stop, readable, shown)
        unread = Unread(pid, path)
        with suppress(OSError):  # the folder was taken away
            while not stop.wait(EVERY_S):
                unread.turn()

    threads = [
        threading.Thread(target=show, args=(path, out, shown), name="teller-output", daemon=True)
        for (path, shown), out in zip(files, outs or (), strict=False)
    ]
    for thread in threads:
        thread.start()
    return _Followers(stop, threads)


def _wait(pid: int, heard: Collection[signal.Signals], watch: Watch) -> int:
    """Wait for ``pid`` to end, and hand on what is meant for it. Returns its status, negative for a signal."""
    while True:
        # Without a time limit: with one, Python 3.11 makes up a signal when it was stopped, as by Ctrl-Z, beyond that time.
        came = signal.sigwaitinfo(heard)
        if (status := _ended(pid)) is not None:
            return status
        if came.si_signo == WINDOW:
            watch.signal()
        elif came.si_signo != signal.SIGCHLD and came.si_code <= 0:
            os.kill(pid, came.si_signo)  # somebody sent it; a terminal's own goes to the whole group, the command too


def _ended(pid: int) -> int | None:
    """The status of ``pid``, None while it runs. Where we are the first process of a container, orphans come to us too."""
    while True:
        try:
            found, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return 0
        if not found:
            return None
        if found == pid:
            return os.waitstatus_to_exitcode(status)


def _count(cap: Path) -> Counter[str]:
    """How many requests and steps of the engine the hooks saw."""
    marks: Counter[bytes] = Counter()
    for path in regular_files(cap, "host-*.jsonl"):
        held = b""
        try:
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    text = held + block
                    whole = text.rfind(b"\n") + 1
                    marks.update(found[1] for found in _MARKS.finditer(text, 0, whole))
                    held = text[whole:]
        except OSError:
            continue
    requests = max((marks[name] for name in REQUESTS), default=0)
    return Counter(requests=requests, steps=marks[b"vllm.schedule"] + marks[b"cb.step"])
