"""One episode: a real service under load and under the recorder, struck by one real fault, or by none."""

import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from teller_core.collect.bundle import Service, close_window, events, open_window, record
from teller_core.errors import MissingExtra, TellerError
from teller_core.lab import load
from teller_core.lab.faults import INJECT, Delay, logged, strike, write_plan
from teller_core.lab.model import tiny_model
from teller_core.lab.plan import CONNECTIONS, Plan, plan_episode
from teller_core.lab.truth import Truth, find_truth, prefill_delays

NEEDED = ("torch", "transformers", "fastapi", "uvicorn", "tokenizers", "safetensors")
START_S = 300.0
WINDOW_S = 600.0
"""The profiler runs until the load is over, however slow the machine is."""
STOP_S = 300.0
WARM_UP = (load.Ask("warmup-000", 0, 30, 12), load.Ask("warmup-001", 0, 100, 12), load.Ask("warmup-002", 0, 10, 12))
WARM_PROFILER = (load.Ask("warmup-003", 0, 40, 8), load.Ask("warmup-004", 0, 90, 8))


def run_episode(seed: int, fault: str | None, folder: Path, progress: Callable[[str], None]) -> Truth:
    """Serve, load, strike, record. ``folder`` gets ``bundle/`` and, beside it, ``truth.json``.

    ``fault`` is one of ``plan.CAUSES``, or None for the seed's own. ``progress`` is told what goes on, never the fault.
    Raises MissingExtra without the lab extra, TellerError where the service does not come up or does not answer.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise MissingExtra("The demo's service", ", ".join(missing) + " is not installed", "Install teller-mcp[lab]")
    plan = plan_episode(seed, fault)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="teller-", dir=folder.parent, ignore_cleanup_errors=True) as scratch:
        model = tiny_model(Path(scratch))
        file = write_plan(plan, Path(scratch))
        target = load.Target(_free_port(), f"./{model.name}")  # relative: no output names a folder of this machine
        with record(
            _command(target),
            folder / "bundle",
            {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TELLER_LAB_PLAN": str(file)},
            import_first=(INJECT,),
            working_folder=model.parent,
        ) as service:
            progress("starting the service")
            _wait_until_up(service, target.port)
            rows = _warm_up(service, target, seed, progress)
            answered, delays = _load(plan, file, service, target, progress)
            rows += answered
            progress("stopping the profiler")
            close_window(service.cap)
            _wait_for(service, "profile_stop", STOP_S)
        load.write(folder / "bundle" / "client.jsonl", rows)
        truth = find_truth(plan, [*delays, *logged(file), *_prefills(plan, folder / "bundle" / "cap")], answered)
    truth.write(folder / "truth.json")
    return truth


def _command(target: load.Target) -> Sequence[str]:
    options = ["--continuous-batching", "--attn-implementation", "sdpa", "--cb-num-blocks", "768"]
    options += ["--cb-max-batch-tokens", "512", "--device", "cpu", "--host", "127.0.0.1", "--port", str(target.port)]
    return [str(Path(sys.executable).with_name("transformers")), "serve", target.model, *options]


def _warm_up(service: Service, target: load.Target, seed: int, progress: Callable[[str], None]) -> list[dict[str, Any]]:
    """Send what makes everything load, start the profiler over the whole run, send what makes the profiler load."""
    progress("warming up")
    rows = load.send(target, WARM_UP, CONNECTIONS, seed, _ignore)
    open_window(service.cap, WINDOW_S)
    _wait_for(service, "profile_start", STOP_S)
    return rows + load.send(target, WARM_PROFILER, CONNECTIONS, seed, _ignore)


def _load(
    plan: Plan, file: Path, service: Service, target: load.Target, progress: Callable[[str], None]
) -> tuple[list[dict[str, Any]], list[Delay]]:
    count = iter(range(1, len(plan.asks) + 1))
    stop = threading.Event()
    with ThreadPoolExecutor(1) as aside:
        striking = aside.submit(strike, plan, file, _task(service), stop)
        try:
            rows = load.send(
                target,
                plan.asks,
                CONNECTIONS,
                plan.seed,
                lambda: progress(f"{next(count)} of {len(plan.asks)} answered"),
            )
        finally:
            stop.set()
        delays = striking.result()
    if any(row["err"] for row in rows):
        raise TellerError("The demo's service", "it did not answer every request", "Read server.log in the bundle")
    return rows, delays


def _task(service: Service) -> Path:
    """The thread that makes the tokens, as the warm-up showed it."""
    steps = events(service.cap, "cb.step")
    if not steps:
        why = "the recorder does not know the installed version of transformers"
        raise TellerError("The demo's service", why, "Install the version in constraints.txt")
    return Path("/proc") / str(service.process.pid) / "task" / str(steps[-1]["tid"])


def _prefills(plan: Plan, cap: Path) -> list[Delay]:
    if plan.fault != "long_prefill":
        return []
    return prefill_delays(events(cap, "cb.prepare"), events(cap, "cb.update"), plan.long_requests)


def _wait_until_up(service: Service, port: int) -> None:
    deadline = time.monotonic() + START_S
    while not load.healthy(port):
        _check(service, deadline, "it did not come up")


def _wait_for(service: Service, event: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not events(service.cap, event):
        _check(service, deadline, "its profiler did not answer")


def _check(service: Service, deadline: float, why: str) -> None:
    if service.process.poll() is not None or time.monotonic() > deadline:
        raise TellerError("The demo's service", why, "Read server.log in the bundle")
    time.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _ignore() -> None:
    pass
