"""A real engine that serves the lab's model under the recorder, and to which something may be done while it runs."""

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from teller_core.collect.bundle import Service, record
from teller_core.errors import InputError, MissingExtra, TellerError, UnknownName
from teller_core.lab import inside, load
from teller_core.lab.faults import IN_MEMORY, INJECT, on_disk
from teller_core.lab.injectors import ENGINES
from teller_core.lab.model import SHAPES, tiny_model
from teller_core.lab.outside import Groups, Process, grouped

NEEDED = ("torch", "transformers", "fastapi", "uvicorn", "tokenizers", "safetensors")
START_S = 300.0
TOLD_S = 60.0
VARIABLES = {
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_DO_NOT_TRACK": "1",
    "DO_NOT_TRACK": "1",
}
"""Nothing is fetched, nothing is reported to anybody, and one thread computes, as on a machine that others share."""
VLLM = ("--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager", "--max-num-seqs", "8")
TRANSFORMERS = (
    *("--continuous-batching", "--attn-implementation", "sdpa", "--cb-num-blocks", "768"),
    *("--cb-max-batch-tokens", "512", "--device", "cpu"),
)
ROOMY = ("--max-model-len", "2048")
SMALL_CACHE = ("--max-model-len", "1024", "--block-size", "32", "--num-gpu-blocks-override", "40")
"""Room for 1280 tokens, of which one request may take most."""
CACHES = ("roomy", "small")
WARM_UP = tuple(load.Ask(f"warmup-{number:03d}", 0.0, words, 12) for number, words in enumerate((30, 100, 10, 60)))


@dataclass(frozen=True)
class Setup:
    """What is served and how: an engine, a model of ``SHAPES``, ranks that share it, each on a machine of its own where they are
    ``apart``, and a cache that is ``roomy``, or ``small``: too small for all that runs.

    Raises UnknownName or InputError for what there is not.
    """

    engine: str = "vllm"
    model: str = "plain"
    ranks: int = 1
    apart: bool = False
    cache: str = "roomy"

    def __post_init__(self) -> None:
        for what, given, known in (
            ("engine", self.engine, ENGINES),
            ("model", self.model, tuple(SHAPES)),
            ("cache", self.cache, CACHES),
        ):
            if given not in known:
                raise UnknownName(
                    f"The {what} that is served", "it is none of " + ", ".join(known), "Name one of these"
                )
        if (self.ranks, self.apart) != (1, False) or (self.engine == "transformers" and self.cache == "small"):
            raise InputError("The service", f"{self.engine} is not served so", "Ask for one rank and a roomy cache")


@dataclass(frozen=True)
class Live:
    """A service that is up. ``folder`` is where it looks for what is to be done; ``provides`` are needs of injectors."""

    service: Service
    target: load.Target
    folder: Path
    processes: Mapping[str, Process]
    groups: Groups | None
    provides: Collection[str]
    disk: Path


def program(engine: str, vllm: Path | None = None) -> Path:
    """What starts ``engine``. Raises MissingExtra or InputError where it is not here."""
    if engine == "transformers":
        missing = [name for name in NEEDED if find_spec(name) is None]
        if missing:
            raise MissingExtra("The lab's service", ", ".join(missing) + " is not installed", "Install teller-mcp[lab]")
        return Path(sys.executable).with_name("transformers")
    found = shutil.which(vllm or "vllm")
    if found is None:
        raise InputError("vLLM", "there is no such program", "Name its program with --vllm")
    return Path(found).absolute()


@contextmanager
def served(setup: Setup, start: Path, bundle: Path, progress: Callable[[str], None]) -> Generator[Live]:
    """Serve, warm up, and stop on leaving. ``start`` is the engine's program.

    Raises TellerError where it does not come up or does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="teller-", ignore_cleanup_errors=True) as scratch:
        model = tiny_model(Path(scratch), setup.model)
        folder = Path(scratch) / "folder"
        folder.mkdir()
        inside.ask(folder, {})
        port = free_port()
        target = load.Target(port, "tiny" if setup.engine == "vllm" else f"./{model.name}")
        command = command_of(setup, start, target, model.name)
        variables = {**VARIABLES, inside.VARIABLE: str(folder)}
        with record(command, bundle, variables, import_first=(INJECT,), working_folder=model.parent) as service:
            progress("starting the service")
            _wait_until_up(service, port)
            progress("warming up")
            rows = load.send(target, WARM_UP, len(WARM_UP), 0, _nothing)
            load.write(bundle / "client.jsonl", rows)
            processes = _processes(service, folder)
            with grouped([*{process.pid: process for process in processes.values()}.values()]) as groups:
                disk = on_disk(Path(scratch))
                yield Live(service, target, folder, processes, groups, _provided(setup, groups, disk), disk)


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def command_of(setup: Setup, start: Path, target: load.Target, model: str) -> Sequence[str]:
    """What starts the engine: ``start`` is its program, ``model`` a folder where it runs."""
    place = ["--host", "127.0.0.1", "--port", str(target.port)]
    if setup.engine == "transformers":
        return [str(start), "serve", f"./{model}", *TRANSFORMERS, *place]
    room = SMALL_CACHE if setup.cache == "small" else ROOMY
    return [str(start), "serve", f"./{model}", *VLLM, *room, *place]


def _provided(setup: Setup, groups: Groups | None, disk: Path) -> Collection[str]:
    provided = {"small_cache"} if setup.cache == "small" else set[str]()
    provided |= {"root"} if os.geteuid() == 0 else set()
    provided |= {"cpu_quota"} if groups is not None else set()
    return provided | ({"disk"} if not _in_memory(disk) else set())


def _in_memory(folder: Path) -> bool:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return False
    found = [line.split()[1:3] for line in mounts.read_text().splitlines()]
    holding = [(len(point), kind) for point, kind in found if folder.resolve().is_relative_to(point)]
    return bool(holding) and max(holding)[1] in IN_MEMORY


def _wait_until_up(service: Service, port: int) -> None:
    deadline = time.monotonic() + START_S
    while not load.healthy(port):
        if service.process.poll() is not None or time.monotonic() > deadline:
            raise TellerError("The lab's service", "it did not come up", "Read server.log in its bundle")
        time.sleep(0.1)


def _processes(service: Service, folder: Path) -> Mapping[str, Process]:
    """Which process has which role, as the hook points told while the service warmed up."""
    deadline = time.monotonic() + TOLD_S
    while not {"front_end", "engine", "worker"} <= (known := inside.told(folder).processes).keys():
        if service.process.poll() is not None or time.monotonic() > deadline:
            lacking = ", ".join(sorted({"front_end", "engine", "worker"} - known.keys()))
            why = f"the installed version has no hook point where it was expected ({lacking})"
            raise TellerError("The lab's service", why, "Install the version in constraints.txt, or vLLM 0.32")
        time.sleep(0.1)
    return known


def _nothing() -> None:
    pass
