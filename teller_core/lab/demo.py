"""One episode: a real service under load and under the recorder, struck by one of the lab's faults, or by none."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from teller_core.collect.bundle import events
from teller_core.collect.windows.control import Window, ask, close
from teller_core.data.whole import made_folder
from teller_core.errors import TellerError
from teller_core.lab import load
from teller_core.lab.injectors import injector
from teller_core.lab.life import CONNECTIONS
from teller_core.lab.outside import Delay
from teller_core.lab.plan import Plan, plan_episode
from teller_core.lab.profiling import WARM
from teller_core.lab.serving import Live, Setup, program, served
from teller_core.lab.striking import check, struck
from teller_core.lab.truth import Truth, find_truth, prefill_delays

SETUP = Setup("transformers")
WINDOW_S = 600.0
"""The profiler runs until the load is over, however slow the machine is."""
STOP_S = 300.0

Progress = Callable[[str], None]


def run_episode(seed: int, fault: str | None, folder: Path, progress: Progress) -> Truth:
    """Serve, load, strike, record. ``folder`` gets ``bundle/`` and, beside it, ``truth.json``.

    ``fault`` is one of ``plan.FAULTS``, or None for the seed's own. ``progress`` is told what goes on, never the fault.
    Raises MissingExtra without the lab extra, InputError where the fault needs what this machine lacks, TellerError where the
    service does not come up or does not answer.
    """
    plan = plan_episode(seed, fault)
    start = program(SETUP.engine)
    made_folder(folder)
    bundle = folder / "bundle"
    with served(SETUP, start, bundle, progress) as live:
        if plan.strike is not None:
            check(injector(plan.strike.fault), live)
        ask(live.service.cap, Window(WINDOW_S, steps=None, events=None))
        _wait_for(live, "profile_start")
        warm = load.send(live.target, WARM, CONNECTIONS, seed)
        rows, delays = _load(plan, live, progress)
        load.append(bundle / "client.jsonl", [*warm, *rows])
        progress("stopping the profiler")
        close(live.service.cap)
        _wait_for(live, "profile_stop")
    truth = find_truth(plan, [*delays, *_prefills(plan, bundle / "cap")], rows)
    truth.write(folder / "truth.json")
    return truth


def _load(plan: Plan, live: Live, progress: Progress) -> tuple[list[dict[str, Any]], list[Delay]]:
    count = iter(range(1, len(plan.asks) + 1))
    stop = threading.Event()
    with ThreadPoolExecutor(1) as aside:
        striking = aside.submit(_strike, plan, live, stop)
        try:
            rows = load.send(
                live.target, plan.asks, CONNECTIONS, plan.seed, lambda: progress(f"{next(count)} answered")
            )
        finally:
            stop.set()
        delays = striking.result()
    if any(row["err"] for row in rows):
        raise TellerError("The demo's service", "it did not answer every request", "Read server.log in the bundle")
    return rows, delays


def _strike(plan: Plan, live: Live, stop: threading.Event) -> list[Delay]:
    """Wait until it is time, let the fault strike, wait until it is over. Returns the delays that the injector saw."""
    if plan.strike is None or stop.wait(plan.at):
        return []
    with struck(injector(plan.strike.fault), plan.strike.knobs, live) as what:
        stop.wait(plan.length)
    return what.delays


def _prefills(plan: Plan, cap: Path) -> list[Delay]:
    return prefill_delays(events(cap, "cb.prepare"), events(cap, "cb.update"), plan.others) if plan.others else []


def _wait_for(live: Live, event: str) -> None:
    deadline = time.monotonic() + STOP_S
    while not events(live.service.cap, event):
        if live.ended() or time.monotonic() > deadline:
            raise TellerError("The demo's service", "its profiler did not answer", "Read server.log in the bundle")
        time.sleep(0.1)
