"""What capturing does to a service when things go wrong: nothing. One line a case, ok or FAIL.

Run: python tests/studies/harm.py [--vllm ENVIRONMENT/bin/vllm] [NAME...]. Every case but the last two starts a real server
under ``teller capture``, does the harm, and asks for answers: ``transformers serve``, some 20 seconds a case, or with
``--vllm`` real vLLM, about a minute a case (``tests/studies/environment.py`` makes it). To fill a disk it needs root, for
one in memory.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.collect.environment import SHIM
from teller_core.collect.proc import family
from teller_core.data.report import CaptureReport
from teller_core.lab import load
from teller_core.lab.model import tiny_model
from teller_core.lab.serving import VARIABLES
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.studies.engines import free_port, nothing, say

TELLER = (sys.executable, "-m", "teller_core.cli")
START_S = 200.0
END_S = 90.0
SAYS_S = 25.0
"""Every engine says something of itself more often."""
REQUESTS = 12
VLLM = (
    *("--served-model-name", "{model}", "--dtype", "float32", "--enforce-eager", "--max-model-len", "2048"),
    *("--max-num-seqs", "8", "--host", "127.0.0.1", "--port"),
)
TRANSFORMERS = (
    *(
        "--continuous-batching",
        "--attn-implementation",
        "sdpa",
        "--cb-max-batch-tokens",
        "256",
        "--cb-num-blocks",
        "512",
    ),
    *("--device", "cpu", "--host", "127.0.0.1", "--port"),
)
SABOTAGE = """

_wrapped = record_call


def record_call(owner, name, event, describe=None, **others):
    _wrapped(owner, name, event, _raise, **others)


def _raise(*given, **named):
    raise ValueError("sabotage")
"""
"""Added to a copy of the shim: whatever a hook wants to say of a call fails."""


@dataclass
class Engine:
    """What is served, and where the case may write."""

    vllm: Path | None
    model: Path
    scratch: Path
    name: str = ""

    @property
    def folder(self) -> Path:
        """Where the case records."""
        return self.scratch / self.name


@dataclass
class Served:
    """A server under ``teller capture``."""

    recorder: subprocess.Popen[bytes]
    target: load.Target
    folder: Path
    service: int

    def answered(self) -> str:
        """Send requests. Returns what was wrong, empty where all were answered."""
        asks = [load.Ask(f"harm-{time.time_ns()}-{number}", 0.0, 12, 8) for number in range(REQUESTS)]
        failed = [row for row in load.send(self.target, asks, 4, 1, nothing) if row["err"]]
        return f"{len(failed)} of {REQUESTS} requests failed" if failed else ""


@contextlib.contextmanager
def served(engine: Engine, folder: Path | None = None, program: tuple[str, ...] = TELLER) -> Generator[Served]:
    """A real server, recorded and up. Whatever is left of it is ended afterwards."""
    target = load.Target(free_port(), f"./{engine.model.name}")
    where = folder or engine.folder
    command = [*program, "capture", "--quiet", "--to", str(where), "--", *_command(engine, target)]
    with (engine.scratch / f"{engine.name}.txt").open("wb") as said:
        recorder = subprocess.Popen(
            command, cwd=engine.model.parent, env={**os.environ, **VARIABLES}, stdout=said, stderr=said
        )
    members: set[int] = set()
    try:
        deadline = time.monotonic() + START_S
        while not load.healthy(target.port):
            if recorder.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"The server did not come up: read {where}/server.log")
            time.sleep(0.2)
        members = {*family(recorder.pid)} - {recorder.pid}
        yield Served(recorder, target, where, json.loads((where / "bundle.json").read_text())["pid"])
    finally:
        for pid in (recorder.pid, *members):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        recorder.wait()


def recorder_killed(engine: Engine) -> str:
    """kill -9 of the recorder: the service answers and prints on, and what was written can be read."""
    with served(engine) as it:
        before = it.answered()
        it.recorder.kill()
        it.recorder.wait()
        size = (it.folder / "server.log").stat().st_size
        after = it.answered()
        deadline = time.monotonic() + SAYS_S
        while not (grown := (it.folder / "server.log").stat().st_size > size) and time.monotonic() < deadline:
            time.sleep(0.2)
        time.sleep(0.5)  # what is not a quarter second old need not be written
        os.kill(it.service, signal.SIGKILL)
    report = _imported(it.folder)
    return (
        before or after or ("" if grown else "its output has stopped") or _read(report, 2 * REQUESTS, "recording_open")
    )


def worker_killed(engine: Engine) -> str:
    """kill -9 of a process of the service: it ends or lives as it would, and the bundle is closed."""
    if engine.vllm is None:
        return "skipped: transformers serve has one process"
    with served(engine) as it:
        wrong = it.answered()
        below = [pid for pid in family(it.service) if pid != it.service and _is_python(pid)]
        time.sleep(0.5)
        os.kill(below[-1], signal.SIGKILL)
        status = it.recorder.wait(END_S)
    about = json.loads((it.folder / "bundle.json").read_text())
    closed = "" if "stop_ns" in about and about["exit"] == status else "the bundle is not closed"
    return wrong or closed or _read(_imported(it.folder), REQUESTS)


def service_killed(engine: Engine) -> str:
    """kill -9 of the service: we end with its code, and the bundle is closed."""
    with served(engine) as it:
        wrong = it.answered()
        time.sleep(0.5)
        os.kill(it.service, signal.SIGKILL)
        status = it.recorder.wait(END_S)
    code = "" if status == 128 + signal.SIGKILL else f"it ended with {status}"
    return wrong or code or _read(_imported(it.folder), REQUESTS)


def disk_full(engine: Engine) -> str:
    """A disk that fills up while the service runs: it answers all, before, during and after."""
    if os.geteuid():
        return "skipped: it needs root"
    disk = engine.scratch / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=96m", "tmpfs", str(disk)]
    if subprocess.run(command, check=False, capture_output=True).returncode:
        return "skipped: no file system may be mounted here"
    try:
        with served(engine, disk / "bundle") as it:
            wrong = it.answered()
            time.sleep(0.5)  # what is younger than a flush is lost with the room for it
            with contextlib.suppress(OSError), (disk / "filler").open("wb") as filler:
                while True:
                    filler.write(b"x" * 65536)
                    filler.flush()
            for _ in range(4):
                wrong = wrong or it.answered()
                time.sleep(1.0)
            (disk / "filler").unlink()
            wrong = wrong or it.answered()
            time.sleep(0.5)
            it.recorder.terminate()
            it.recorder.wait(END_S)
        return wrong or _read(_imported(disk / "bundle"), 2 * REQUESTS)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def folder_taken_away(engine: Engine) -> str:
    """The folder vanishes while the service runs: it answers on, and both end well."""
    with served(engine) as it:
        wrong = it.answered()
        shutil.rmtree(it.folder)
        wrong = wrong or it.answered()
        time.sleep(1.5)
        wrong = wrong or it.answered()
        it.recorder.terminate()
        status = it.recorder.wait(END_S)
    return wrong or ("" if status in (0, 128 + signal.SIGTERM) else f"it ended with {status}")


def hook_raises(engine: Engine) -> str:
    """Hooks that fail at every call: the service answers all, and the failures are counted."""
    broken = engine.scratch / "broken"
    shutil.copytree(SHIM, broken)
    with (broken / "teller_shim_wrap.py").open("a") as file:
        file.write(SABOTAGE)
    program = (
        "import pathlib, sys; from teller_core.collect import environment; "
        "environment.SHIM = pathlib.Path(sys.argv.pop(1)); from teller_core.cli import main; sys.exit(main())"
    )
    with served(engine, program=(sys.executable, "-c", program, str(broken))) as it:
        wrong = it.answered()
        time.sleep(0.5)
        it.recorder.terminate()
        it.recorder.wait(END_S)
    return wrong or _read(_imported(it.folder), 0, "recorder_hook_error")


def captured_twice(engine: Engine) -> str:
    """A capture inside a capture is refused before its command runs; the outer one goes on."""
    inner = [*TELLER, "capture", "--to", str(engine.scratch / "inner"), "--", "echo", "ran"]
    outer = [*TELLER, "capture", "--to", str(engine.folder), "--", "sh", "-c", f"{' '.join(inner)}; echo on; exit 3"]
    done = subprocess.run(outer, check=False, capture_output=True, text=True)
    return "" if (done.returncode, done.stdout) == (3, "on\n") else f"it ended with {done.returncode}: {done.stdout}"


def many_children(engine: Engine) -> str:
    """Six hundred short-lived children: no file of those that did nothing, and a cheap sampler."""
    code = (
        "import subprocess, sys\n"
        "for number in range(300):\n"
        "    subprocess.run(['true'], check=True)\n"
        "    subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
    )
    done = subprocess.run(
        [*TELLER, "capture", "--to", str(engine.folder), "--", sys.executable, "-c", code], check=False
    )
    files = len(list((engine.folder / "cap").iterdir()))
    about = json.loads((engine.folder / "bundle.json").read_text())
    share = about["recorder_cpu_ns"] / (about["stop_ns"] - about["start_ns"])
    wrong = f"it ended with {done.returncode}" if done.returncode else f"{files} files" if files > 12 else ""
    return wrong or (f"the sampler took {share:.1%} of a processor" if share > 0.03 else "")


CASES: dict[str, Callable[[Engine], str]] = {
    case.__name__.replace("_", "-"): case
    for case in (
        *(recorder_killed, worker_killed, service_killed, disk_full, folder_taken_away, hook_raises),
        *(captured_twice, many_children),
    )
}


def main() -> int:
    """Run the cases that are asked for. Returns 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vllm", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *CASES], default=[])
    asked = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="teller-harm-") as scratch:
        model = tiny_model(Path(scratch))
        for name in asked.names or CASES:
            began = time.monotonic()
            wrong = CASES[name](Engine(asked.vllm, model, Path(scratch), name))
            word = "ok" if not wrong else wrong if wrong.startswith("skipped") else f"FAIL: {wrong}"
            failed += word.startswith("FAIL")
            said = " ".join((CASES[name].__doc__ or "").split())
            say(f"{name:<18} {word:<6} {time.monotonic() - began:5.0f} s  {said}")
    return min(1, failed)


def _command(engine: Engine, target: load.Target) -> list[str]:
    if engine.vllm is not None:
        options = [option.format(model=target.model) for option in VLLM]
        return [str(engine.vllm), "serve", target.model, *options, str(target.port)]
    return [str(Path(sys.executable).with_name("transformers")), "serve", target.model, *TRANSFORMERS, str(target.port)]


def _imported(folder: Path) -> CaptureReport:
    with contextlib.closing(Store.open(folder.parent / f"{folder.name}-{time.time_ns()}.db")) as store:
        return import_paths([folder], store).captures[0]


def _read(report: CaptureReport, requests: int, problem: str = "") -> str:
    """What is missing in an imported bundle, empty where it holds as many requests, and the problem, as it must."""
    problems = {name for file in report.files for name in file.problems}
    if report.requests < requests:
        return f"the bundle holds {report.requests} requests of {requests}"
    return f"{problem} is not counted" if problem and problem not in problems else ""


def _is_python(pid: int) -> bool:
    return b"python" in Path(f"/proc/{pid}/exe").resolve().name.encode()


if __name__ == "__main__":
    sys.exit(main())
