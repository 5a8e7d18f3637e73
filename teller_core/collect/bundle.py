"""Run somebody's command under the recorder and keep what it leaves in one folder.

bundle.json     what was recorded: engine, command, start, stop, clock anchors
server.log      the command's own output
samples.jsonl   counters of its processes and of the machine
cap/            what the recorder wrote inside its processes: host-PID.jsonl, torch-PID-T.json.gz, nvtx-PID.tsv
client.jsonl    what a client measured, where one writes it
"""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isal import isal_zlib

from teller_core.collect.sampler import sample
from teller_core.errors import InputError

zlib: Any = isal_zlib  # its own types are partial
SCHEMA = 1
SHIM = Path(__file__).parent / "shim"
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
) -> Generator[Service]:
    """Run ``command`` under the recorder, writing a bundle into the new or empty ``folder``, and stop it on leaving.

    ``variables`` are added to the environment that the command inherits; ``import_first`` folders go before the
    recorder's on PYTHONPATH; it runs in ``working_folder``, or in the caller's. Raises InputError where the folder is
    in use or the command cannot be run.
    """
    _prepare(folder)
    about: dict[str, Any] = {
        "schema": SCHEMA,
        "engine": engine_of(command),
        "command": Path(command[0]).name,
        "start_ns": time.time_ns(),
        "anchors": [_anchor()],
    }
    _write(folder, about)
    process = _run(command, folder, _environment(folder, variables or {}, import_first), working_folder)
    stop = threading.Event()
    sampler = threading.Thread(target=sample, args=(process.pid, folder / "samples.jsonl", stop), daemon=True)
    sampler.start()
    try:
        yield Service(process, folder)
    finally:
        about["exit"] = _end(process)
        stop.set()
        sampler.join()
        compress_traces(folder / "cap")
        about |= {"stop_ns": time.time_ns(), "anchors": [*about["anchors"], _anchor()]}
        _write(folder, about)


def engine_of(command: Sequence[str]) -> str:
    """The engine that ``command`` starts, by its words: vllm, sglang, transformers, or empty."""
    words = [Path(word).name.partition(".")[0] for word in command if not word.startswith("-")]
    return next((engine for engine in ENGINES if engine in words), "")


def open_window(cap: Path, seconds: float, shapes: bool = False) -> None:
    """Ask every process of the service that has torch for a profiler window of at most ``seconds``."""
    hidden = cap / ".PROFILE"
    hidden.write_text(f"{seconds:g}{' shapes' if shapes else ''}")
    hidden.replace(cap / "PROFILE")


def close_window(cap: Path) -> None:
    """End the window that ``open_window`` asked for. Stopping stalls the service; ``events`` says when it is over."""
    (cap / "PROFILE").unlink(missing_ok=True)


def events(cap: Path, name: str) -> list[dict[str, Any]]:
    """The recorder's events called ``name`` that have been written so far, of all processes."""
    wanted = f'"name": "{name}"'
    lines = (
        line for path in sorted(cap.glob("host-*.jsonl")) for line in path.read_text("utf-8", "replace").splitlines()
    )
    return [json.loads(line) for line in lines if wanted in line and line.endswith("}")]


def compress_traces(cap: Path) -> None:
    """Compress the profiler's traces: inside the service this would lengthen the stall."""
    for path in sorted(cap.glob("torch-*.json")):
        packed = path.with_name(f".{path.name}.gz")
        gzip = zlib.compressobj(1, wbits=31)
        with path.open("rb") as source, packed.open("wb") as target:
            while block := source.read(1 << 20):
                target.write(gzip.compress(block))
            target.write(gzip.flush())
        packed.replace(path.with_name(f"{path.name}.gz"))
        path.unlink()


def _prepare(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise InputError("The folder to record into", "it is not empty", "Name a new folder")
    (folder / "cap").mkdir(parents=True, exist_ok=True)


def _environment(folder: Path, variables: Mapping[str, str], import_first: Sequence[Path]) -> dict[str, str]:
    inherited = dict(os.environ)  # noqa: TID251  # handed on to the command, no setting of ours is read from it
    paths = [*map(str, import_first), str(SHIM), inherited.get("PYTHONPATH", "")]
    return {
        **inherited,
        **variables,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "TELLER_CAPTURE_DIR": str((folder / "cap").resolve()),
    }


def _run(
    command: Sequence[str], folder: Path, environment: dict[str, str], working_folder: Path | None
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


def _anchor() -> list[int]:
    return [time.time_ns(), time.monotonic_ns(), time.perf_counter_ns()]


def _write(folder: Path, about: Mapping[str, Any]) -> None:
    hidden = folder / ".bundle.json"
    hidden.write_text(json.dumps(about, indent=1) + "\n")
    hidden.replace(folder / "bundle.json")
