"""Two servers of one kind, one plain and one under ``teller capture``: start them, load them, count their CPU."""

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from teller_core.collect.proc import family
from teller_core.lab import load
from teller_core.lab.serving import VARIABLES
from tests.studies.engines import free_port, nothing

CONNECTIONS, REQUESTS, WORDS, TOKENS = 4, 16, 30, 64
"""Of a load; connections where a study names no other number."""
START_S = 180.0
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
VLLM = ("--dtype", "float32", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "8")
TRANSFORMERS = ("--continuous-batching", "--attn-implementation", "sdpa", "--cb-num-blocks", "768")
TRANSFORMERS += ("--cb-max-batch-tokens", "512", "--device", "cpu")
NATIVE_THREAD = "teller-nvtx"


class Server(NamedTuple):
    """One that runs: its first process, where it is asked, and its bundle where it is recorded."""

    process: subprocess.Popen[bytes]
    target: load.Target
    bundle: Path | None


class Run(NamedTuple):
    """One load on one server."""

    tokens: int
    seconds: float
    cpu_ns: int
    recorder_ns: int
    ttft_ms: Sequence[float]
    itl_ms: Sequence[float]

    @property
    def a_token(self) -> float:
        """CPU ms of the service's processes for one token, the recording process included."""
        return (self.cpu_ns + self.recorder_ns) / 1e6 / self.tokens

    @property
    def rate(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds


@contextlib.contextmanager
def serve(given: argparse.Namespace, model: Path, bundle: Path | None) -> Generator[Server]:
    """Start a server of ``model``, under the recorder where it is to write a ``bundle``, and stop it."""
    port = free_port()
    place = ("--host", "127.0.0.1", "--port", str(port))
    if given.transformers:
        command = [
            str(Path(sys.executable).with_name("transformers")),
            "serve",
            f"./{model.name}",
            *TRANSFORMERS,
            *place,
        ]
        target = load.Target(port, f"./{model.name}")
    else:
        command = [given.vllm, "serve", f"./{model.name}", "--served-model-name", "tiny", *VLLM, *place]
        target = load.Target(port, "tiny")
    if bundle:
        command = [sys.executable, "-m", "teller_core.cli", "capture", "--quiet", "--to", str(bundle), "--", *command]
    log = (model.parent / f"log-{port}").open("wb")
    process = subprocess.Popen(
        command, cwd=model.parent, env=_environment(), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        yield Server(process, target, bundle)
    finally:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        log.close()


def wait_until_up(server: Server) -> None:
    deadline = time.monotonic() + START_S
    while not load.healthy(server.target.port):
        if server.process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit("A server did not come up")
        time.sleep(0.3)


def run(server: Server, seed: int, connections: int = CONNECTIONS) -> Run:
    """Send one load and take what it cost."""
    asks = [load.Ask(f"run-{seed:04}-{number:02}", 0, WORDS + number, TOKENS) for number in range(REQUESTS)]
    before, began = cpu(server), time.monotonic()
    rows = load.send(server.target, asks, connections, seed, nothing)
    seconds = time.monotonic() - began
    after = cpu(server)
    if wrong := [row["err"] for row in rows if row["err"]]:
        raise SystemExit(f"{len(wrong)} requests failed: {wrong[0]}")
    gaps = [b - a for row in rows for a, b in zip(row["tok_ns"], row["tok_ns"][1:], strict=False)]
    first = [(row["tok_ns"][0] - row["start_ns"]) / 1e6 for row in rows if row["tok_ns"]]  # one may have no text
    service, recorder = after[0] - before[0], after[1] - before[1]
    return Run(REQUESTS * TOKENS, seconds, service, recorder, first, [gap / 1e6 for gap in gaps])


@contextlib.contextmanager
def busy(server: Server, rows: list[dict[str, Any]]) -> Generator[None]:
    """Keep every connection of ``server`` busy meanwhile; ``rows`` gets what the client measured."""
    ended = threading.Event()
    threads = [threading.Thread(target=_keep_busy, args=(server, number, rows, ended)) for number in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(3.0)
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def _keep_busy(server: Server, number: int, rows: list[dict[str, Any]], ended: threading.Event) -> None:
    count = 0
    while not ended.is_set():
        asks = [load.Ask(f"busy-{number}-{count:05}", 0, WORDS, TOKENS)]
        rows += load.send(server.target, asks, 1, number * 10_000 + count, nothing)
        count += 1


def cpu(server: Server) -> tuple[int, int]:
    """CPU ns so far of the service's processes, ended children included, and of the recording process."""
    root = server.process.pid
    used = {pid: _ticks(pid, ended=pid != root) * TICK_NS for pid in family(root)}
    recorder = used.pop(root, 0) if server.bundle else 0
    return sum(used.values()), recorder


def inside(server: Server) -> dict[str, int]:
    """CPU ns so far inside the hooks, their thread, the plugin and the native library, as they count it themselves."""
    assert server.bundle is not None
    cap = server.bundle / "cap"
    hooks: dict[str, dict[str, Any]] = {}
    for path in sorted(cap.glob("host-*.jsonl")):
        for row in _rows(path, '"shim_cost"'):
            hooks[path.name.split("-")[1].partition(".")[0]] = row
    plugin: dict[str, dict[str, Any]] = {}
    for path in sorted(cap.glob("stats-*.jsonl")):
        for row in _rows(path, '"writer_ns"'):
            plugin[path.name.split("-")[1].partition(".")[0]] = row
    return {
        "hooks": sum(row["hooks_ns"] for row in hooks.values()),
        "the hooks' thread": sum(row["thread_ns"] for row in hooks.values()),
        "plugin": sum(row["cpu_ns"] + row["writer_ns"] for row in plugin.values()),
        "NVTX library's thread": sum(map(_native_ns, family(server.process.pid))),
    }


def events(cap: Path, name: str, since: int) -> list[dict[str, Any]]:
    """Events of all processes called ``name`` that came after ``since`` (Unix ns), in order."""
    rows = (row for path in cap.glob("host-*.jsonl") for row in _rows(path, f'"{name}"'))
    return sorted((row for row in rows if row["name"] == name and row["t"] >= since), key=lambda row: row["t"])


def _rows(path: Path, mark: str) -> list[dict[str, Any]]:
    with contextlib.suppress(FileNotFoundError):
        lines = path.read_text("utf-8", "replace").splitlines()
        return [json.loads(line) for line in lines if mark in line and line.endswith("}")]
    return []


def _ticks(pid: int, ended: bool) -> int:
    with contextlib.suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
        return sum(int(fields[number]) for number in ((11, 12, 13, 14) if ended else (11, 12)))
    return 0


def _native_ns(pid: int) -> int:
    total = 0
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            if (task / "comm").read_text().strip() == NATIVE_THREAD:
                total += int((task / "schedstat").read_text().split()[0])
    return total


def _environment() -> Mapping[str, str]:
    here = str(Path(__file__).parents[2])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, **VARIABLES, "PYTHONPATH": path}
