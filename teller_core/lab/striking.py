"""One injector at one severity, on a running service, for as long as a block lasts: and the truth of what it did."""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from teller_core.errors import InputError, TellerError
from teller_core.lab import inside, outside
from teller_core.lab.injectors import NEEDS, Injector
from teller_core.lab.outside import Delay, Process
from teller_core.lab.serving import Live

LEAD_S = 0.25
LOOK_S = 0.02
TOLD_S = 30.0
PRESSURE = Path("/proc/pressure/cpu")


@dataclass
class Struck:
    """``begin``, ``end``: Unix ns, as the injector itself told them. ``noise``: what the machine did meanwhile, in ns."""

    begin: int = 0
    end: int = 0
    delays: list[Delay] = field(default_factory=list[Delay])
    noise: dict[str, int | None] = field(default_factory=dict[str, int | None])


def check(one: Injector, live: Live) -> None:
    """Raise InputError where ``one`` needs what there is not."""
    if lacking := [NEEDS[need] for need in one.needs if need not in live.provides]:
        why = f"it needs {', '.join(lacking)}, which this service does not have"
        raise InputError(f"The fault {one.name}", why, "Name another one")


@contextmanager
def struck(one: Injector | None, knobs: Mapping[str, float], live: Live) -> Generator[Struck]:
    """Do to ``live`` what ``one`` does, until this ends; None: nothing, in the same way. What is yielded is whole afterwards."""
    found = Struck()
    worker = live.processes["worker"]
    if one is None or one.where != "inside":
        time.sleep(LEAD_S)
    with ExitStack() as stack, outside.waits_of(worker.task) as waits:
        if one is not None and one.where == "outside":
            stack.enter_context(_outside(one, knobs, live, found))
        if one is not None and one.where == "inside":
            stack.enter_context(_inside(one, knobs, live, found))
        begin, before = time.time_ns(), _counters(live, worker)
        yield found
        end, after = time.time_ns(), _counters(live, worker)
    found.begin, found.end = found.begin or begin, found.end or end
    found.noise = {name: _difference(before[name], after[name]) for name in before}
    if one is not None and (one.act in ("burn", "stream", "quota", "threads")):
        found.delays = list(waits)


@contextmanager
def _outside(one: Injector, knobs: Mapping[str, float], live: Live, found: Struck) -> Generator[None]:
    match one.act:
        case "burn":
            doing = outside.burn(knobs)
        case "stream":
            doing = outside.stream(knobs)
        case "quota":
            assert live.groups is not None  # as check() saw
            doing = live.groups.quota(live.processes[one.role].pid, knobs)
        case _:
            doing = outside.freeze(live.processes[one.role].pid, knobs)
    with doing as delays:
        found.begin = time.time_ns()
        yield
        found.end = time.time_ns()
    found.delays = delays or []


@contextmanager
def _inside(one: Injector, knobs: Mapping[str, float], live: Live, found: Struck) -> Generator[None]:
    """Ask for it, and take from the process's own words when it began and ended and what it did."""
    process = live.processes[one.role]
    known = inside.told(live.folder)
    times = len(known.off.get(process.pid, ()))
    what = {
        **knobs,
        "act": one.act,
        "role": one.role,
        "point": one.point,
        "file": str(live.disk / ".journal-"),
        "from": time.time_ns() + int(LEAD_S * 1e9),
        "until": 0,
    }
    inside.ask(live.folder, what)
    try:
        _wait_for(live, lambda said: len(said.on.get(process.pid, ())) > times)
        yield
    finally:
        inside.ask(live.folder, {**what, "until": time.time_ns()})
    said = _wait_for(live, lambda said: len(said.off.get(process.pid, ())) > times)
    found.begin, found.end = said.on[process.pid][times], said.off[process.pid][times]
    found.delays = [did for did in said.delays.get(process.pid, ()) if found.begin <= did.start <= found.end]
    inside.ask(live.folder, {})


def _wait_for(live: Live, true: Callable[[inside.Told], bool]) -> inside.Told:
    deadline = time.monotonic() + TOLD_S
    while not true(said := inside.told(live.folder)):
        if live.service.process.poll() is not None or time.monotonic() > deadline:
            raise TellerError("The lab's service", "its injector did not answer", "Read server.log in its bundle")
        time.sleep(LOOK_S)
    return said


def _counters(live: Live, worker: Process) -> dict[str, int | None]:
    throttled = [live.groups.throttled(process.pid) for process in live.processes.values()] if live.groups else []
    return {
        "worker_run_queue_wait_ns": outside.waited(worker.task),
        "machine_cpu_pressure_ns": _pressure(),
        "throttled_ns": sum(ns or 0 for ns in throttled) if throttled else None,
    }


def _pressure() -> int | None:
    """ns for which some work on the machine waited for a processor; None where the kernel does not count it."""
    try:
        return int(PRESSURE.read_text().partition("total=")[2].split()[0]) * 1000
    except (OSError, IndexError):
        return None


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
