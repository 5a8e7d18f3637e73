"""Run somebody's command under the recorder and keep what it leaves in one folder.

bundle.json     what was recorded: engine, command, start, stop, clock anchors, parts on and off, windows, what was dropped
server.log      the command's own output
samples.jsonl   counters of its processes and of the machine
cap/            what the recorder wrote inside its processes: host-PID.jsonl, torch-PID-T.json.gz, nvtx-PID.tsv, ...
client.jsonl    what a client measured, where one writes it
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teller_core.collect.environment import environment
from teller_core.collect.finished import regular_files
from teller_core.collect.record import anchor, begin, finish, prepare
from teller_core.collect.ring import Bounds
from teller_core.collect.windows.triggers import Plan, Watch
from teller_core.errors import InputError

ENGINES = ("vllm", "sglang", "transformers")
GRACE_S = 5.0


@dataclass(frozen=True)
class Service:
    """A command that runs under the recorder."""

    process: subprocess.Popen[bytes]
    folder: Path

    @property
    def cap(self) -> Path:
        """Where the recorder inside the service writes."""
        return self.folder / "cap"


@contextmanager
def record(
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str] | None = None,
    import_first: Sequence[Path] = (),
    working_folder: Path | None = None,
    *,
    without: Collection[str] = (),
    bounds: Bounds | None = None,
    plan: Plan | None = None,
) -> Generator[Service]:
    """Run ``command`` under the recorder, writing a bundle into the new or empty ``folder``, and stop it on leaving.

    ``variables`` are added to the environment that the command inherits; ``import_first`` folders go before the
    recorder's on PYTHONPATH; it runs in ``working_folder``, or in the caller's; ``without`` are parts that are not wanted;
    ``plan`` says when windows open by themselves. Raises InputError where the folder is in use or the command cannot be run.
    """
    cap, kept = prepare(folder), bounds or Bounds()
    inherited = {**os.environ, **(variables or {})}  # noqa: TID251  # handed on to the command, no setting of ours is read from it
    made = environment(
        cap, inherited, engine_of(command), kept.of_writer(), import_first=import_first, without=without, words=command
    )
    about = started(command, made.on, made.off)
    process = _run(command, folder, made.variables, working_folder)
    watch = Watch(cap, plan or Plan(), about["start_ns"])
    with_samples = "samples" not in made.off
    recording = begin(
        folder, process.pid, about, watch, bounds=kept, outputs=[folder / "server.log"], with_samples=with_samples
    )
    try:
        yield Service(process, folder)
    finally:
        finish(recording, _end(process))


def started(command: Sequence[str], on: Sequence[str], off: Mapping[str, str]) -> dict[str, Any]:
    """What ``bundle.json`` says of a command that is about to begin."""
    return {
        "engine": engine_of(command),
        "command": Path(command[0]).name,
        "start_ns": time.time_ns(),
        "anchors": [anchor()],
        "on": list(on),
        "off": dict(off),
        "windows": [],
    }


def engine_of(command: Sequence[str]) -> str:
    """The engine that ``command`` starts, by its words: vllm, sglang, transformers, or empty."""
    words = [Path(word).name.partition(".")[0] for word in command if not word.startswith("-")]
    return next((engine for engine in ENGINES if engine in words), "")


def events(cap: Path, name: str) -> list[dict[str, Any]]:
    """The recorder's events called ``name`` that have been written so far, of all processes."""
    wanted = f'"name": "{name}"'
    lines = (
        line for path in regular_files(cap, "host-*.jsonl") for line in path.read_text("utf-8", "replace").splitlines()
    )
    return [json.loads(line) for line in lines if wanted in line and line.endswith("}")]


def _run(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], working_folder: Path | None
) -> subprocess.Popen[bytes]:
    with (folder / "server.log").open("wb") as log:
        try:
            return subprocess.Popen(
                command,
                env=environment,
                cwd=working_folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            reason = error.strerror or "the system refused it"
            raise InputError("The command to record", reason.lower(), "Check its name and that it runs alone") from None


def _end(process: subprocess.Popen[bytes]) -> int:
    """Ask the command to end, then make it. Returns its exit status."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
    status = process.wait()
    with suppress(ProcessLookupError):  # what is left of the session that we began
        os.killpg(process.pid, signal.SIGKILL)
    return status
