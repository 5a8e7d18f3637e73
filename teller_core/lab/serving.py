"""A real engine that serves the lab's model under the recorder, and to which something may be done while it runs."""

import os
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from teller_core.collect.bundle import Service, record
from teller_core.errors import InputError, MissingExtra, TellerError, UnknownName
from teller_core.lab import inside, load, nodes
from teller_core.lab.disk import in_memory, on_disk
from teller_core.lab.injectors import ENGINES
from teller_core.lab.link import Link, linked
from teller_core.lab.model import SHAPES, tiny_model
from teller_core.lab.outside import Groups, Process, grouped
from teller_core.lab.requests import warm_up

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
VLLM = (
    *("--served-model-name", "tiny", "--dtype", "float32", "--enforce-eager"),
    *("--block-size", "32", "--enable-logging-iteration-details"),
)
"""A line of its log tells each step. What prompts share is found by whole blocks: the usual ones of 128 tokens are longer than
most prompts.
"""
TRANSFORMERS = (
    *("--continuous-batching", "--attn-implementation", "sdpa", "--cb-num-blocks", "768"),
    *("--device", "cpu"),
)
CHUNK = {"vllm": None, "transformers": 512}
"""Tokens of a step at most; None: the engine's own."""
SEATS = {"vllm": 8, "transformers": None}
"""Requests of a step at most."""
ROOMY = ("--max-model-len", "2048")
SMALL_CACHE = ("--max-model-len", "1984", "--num-gpu-blocks-override", "64")
"""Room for 2048 tokens, a third of them of what all prompts begin with, of which one request may take most."""
CACHES = ("roomy", "small")
BEGINNING_WORDS = {"vllm": 600, "transformers": 0}
"""What all prompts begin with, where it is found in a cache: there it costs next to nothing."""


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

    @property
    def beginning(self) -> int:
        """How many words all ordinary prompts begin with."""
        return BEGINNING_WORDS[self.engine]

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
        usual = (self.ranks, self.apart, self.cache) == (1, False, "roomy")
        shared = (self.ranks, self.apart) in ((1, False), (2, False), (2, True))
        if not shared or (self.engine == "transformers" and not usual):
            raise InputError("The service", f"{self.engine} is not served so", "Ask for one rank and a roomy cache")


@dataclass(frozen=True)
class Live:
    """A service that is up. ``folder`` is where it looks for what is to be done; ``provides`` are needs of injectors.

    ``service`` is recorded where clients talk to it: what they measured belongs into its folder. ``others`` are recorded on the
    other machines, over ``link``. ``processes`` by role: the worker of the second rank is ``worker_1``.

    ``first``: what clients measured of what was sent before it was warm, in order.
    """

    setup: Setup
    service: Service
    target: load.Target
    folder: Path
    processes: Mapping[str, Process]
    groups: Groups | None
    provides: Collection[str]
    disk: Path
    first: Sequence[dict[str, Any]] = ()
    others: Sequence[Service] = ()
    link: Link | None = None

    @property
    def workers(self) -> Sequence[Process]:
        """The process that computes, of each rank in order."""
        return [self.processes[role] for role in _workers(1 + len(self.processes)) if role in self.processes]

    def ended(self) -> bool:
        """Whether a part of the service is not there any more."""
        return _ended([self.service, *self.others])


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
def served(
    setup: Setup, start: Path, bundle: Path, progress: Callable[[str], None], first: Sequence[load.Ask] = ()
) -> Generator[Live]:
    """Serve, warm up, and stop on leaving. ``start`` is the engine's program.

    ``first``: what is sent before it is warmed up.

    Raises TellerError where it does not come up or does not answer.
    """
    with tempfile.TemporaryDirectory(prefix="teller-", ignore_cleanup_errors=True) as scratch:
        model = tiny_model(Path(scratch), setup.model)
        folder = Path(scratch) / "folder"
        folder.mkdir()
        inside.ask(folder, {})
        with ExitStack() as stack:
            link = stack.enter_context(linked()) if setup.apart else None
            name = "tiny" if setup.engine == "vllm" else f"./{model.name}"
            target = load.Target(free_port(), name, "" if link is None else link.spaces[0])
            command = command_of(setup, start, target, model.name)
            variables = {**VARIABLES, inside.VARIABLE: str(folder)}
            if link is None:
                running = record(command, bundle, variables, import_first=(inside.INJECT,), working_folder=model.parent)
                services = [stack.enter_context(running)]
            else:
                commands = [[*command, *nodes.words(side)] for side in range(setup.ranks)]
                services = stack.enter_context(
                    nodes.recorded(
                        link, commands, bundle, variables, working_folder=model.parent, import_first=(inside.INJECT,)
                    )
                )
            progress("starting the service")
            _wait_until_up(services, target)
            progress("warming up")
            early = load.send(target, first, max(1, len(first)), 1)
            asks = warm_up(setup.beginning, grammar=setup.engine == "vllm")
            rows = [*early, *load.send(target, asks, len(asks), 0)]
            load.write(services[0].folder / "client.jsonl", rows)
            processes = _processes(services, folder, setup.ranks)
            groups = stack.enter_context(grouped([*{process.pid: process for process in processes.values()}.values()]))
            disk = on_disk(Path(scratch))
            provided = _provided(setup, groups, disk)
            yield Live(setup, services[0], target, folder, processes, groups, provided, disk, early, services[1:], link)


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def command_of(setup: Setup, start: Path, target: load.Target, model: str) -> Sequence[str]:
    """What starts the engine: ``start`` is its program, ``model`` a folder where it runs."""
    place = ["--host", "127.0.0.1", "--port", str(target.port)]
    chunk = CHUNK[setup.engine]
    if setup.engine == "transformers":
        return [str(start), "serve", f"./{model}", *TRANSFORMERS, "--cb-max-batch-tokens", str(chunk), *place]
    room = SMALL_CACHE if setup.cache == "small" else ROOMY
    steps = ["--max-num-seqs", str(SEATS["vllm"])]
    shared = ["-tp", str(setup.ranks)] if setup.ranks > 1 else []
    return [str(start), "serve", f"./{model}", *VLLM, *room, *steps, *place, *shared]


def _provided(setup: Setup, groups: Groups | None, disk: Path) -> Collection[str]:
    provided = {"fresh_start"} | ({"small_cache"} if setup.cache == "small" else set[str]())
    provided |= {"shared_prefix", "grammar"} if setup.engine == "vllm" else set[str]()
    provided |= {"second_rank"} if setup.ranks > 1 else set()
    provided |= {"link"} if setup.apart else set()
    provided |= {"root"} if os.geteuid() == 0 else set()
    provided |= {"cpu_quota"} if groups is not None else set()
    return provided | ({"disk"} if not in_memory(disk) else set())


def _wait_until_up(services: Sequence[Service], target: load.Target) -> None:
    deadline = time.monotonic() + START_S
    while not load.healthy(target.port, target.space):
        if _ended(services) or time.monotonic() > deadline:
            raise TellerError("The lab's service", "it did not come up", "Read server.log in its bundle")
        time.sleep(0.1)


def _processes(services: Sequence[Service], folder: Path, ranks: int) -> Mapping[str, Process]:
    """Which process has which role, as the hook points told while the service warmed up."""
    deadline = time.monotonic() + TOLD_S
    wanted = {"front_end", "engine", *_workers(ranks)}
    while not wanted <= (known := inside.told(folder).processes).keys():
        if _ended(services) or time.monotonic() > deadline:
            lacking = ", ".join(sorted(wanted - known.keys()))
            why = f"the installed version has no hook point where it was expected ({lacking})"
            raise TellerError("The lab's service", why, "Install the version in constraints.txt, or vLLM 0.32")
        time.sleep(0.1)
    return known


def _workers(ranks: int) -> Sequence[str]:
    """The roles of the processes that compute, by rank."""
    return ["worker", *(f"worker_{rank}" for rank in range(1, ranks))]


def _ended(services: Sequence[Service]) -> bool:
    return any(service.process.poll() is not None for service in services)
