"""One injector at one severity, on a running service, for as long as a block lasts: and the truth of what it did."""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from teller_core.errors import InputError, TellerError
from teller_core.lab import inside, outside
from teller_core.lab.injectors import NEEDS, Injector
from teller_core.lab.link import Conditions
from teller_core.lab.outside import Delay, Process
from teller_core.lab.serving import Live

LEAD_S = 0.25
"""After a process inside was asked to do something: by then it has read it."""
READY_S = 1.25
"""From when a window is asked for until it begins, whatever is done in it: what takes long to prepare, as garbage does, would be
told by when its windows begin.
"""
LOOK_S = 0.02
TOLD_S = 30.0
PRESSURE = Path("/proc/pressure/cpu")


@dataclass
class Struck:
    """``begin``, ``end``: Unix ns; what is done is done all the while. ``noise``: what the machine did meanwhile, in ns."""

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
    ready = time.monotonic() + READY_S
    watched = [process.task for process in (live.workers if one is None else _targets(one, live))]
    with ExitStack() as stack, outside.waits_of(watched) as waits:
        if one is not None and one.where in ("outside", "link"):
            stack.enter_context(_outside(one, knobs, live, found))
        if one is not None and one.where == "inside":
            stack.enter_context(_inside(one, knobs, live, found))
        time.sleep(max(0.0, ready - time.monotonic()))
        begin, before = time.time_ns(), _counters(live)
        yield found
        end, after = time.time_ns(), _counters(live)
    found.begin, found.end = begin, end
    found.noise = {name: _difference(before[name], after[name]) for name in before}
    if one is not None and (one.act in ("burn", "stream", "quota", "threads")):
        found.delays = list(waits)


def _targets(one: Injector, live: Live) -> Sequence[Process]:
    """Whom ``one`` strikes: the workers of all ranks or the one of its rank, a process of another role, or all that compute."""
    if one.rank is not None:
        return [live.workers[one.rank]]
    return live.workers if one.role not in ("front_end", "engine") else [live.processes[one.role]]


@contextmanager
def _outside(one: Injector, knobs: Mapping[str, float], live: Live, found: Struck) -> Generator[None]:
    pids = [process.pid for process in _targets(one, live)]
    delays: list[Delay] = []
    with ExitStack() as stack:
        match one.act:
            case "burn":
                stack.enter_context(outside.burn(knobs))
            case "stream":
                stack.enter_context(outside.stream(knobs))
            case "quota":
                assert live.groups is not None  # as check() saw
                for pid in pids:
                    stack.enter_context(live.groups.quota(pid, knobs))
            case "link":
                assert live.link is not None  # as check() saw
                stack.enter_context(live.link.during(Conditions(**knobs)))
            case _:
                delays = stack.enter_context(outside.freeze(pids, knobs))
        yield
    found.delays = delays


@contextmanager
def _inside(one: Injector, knobs: Mapping[str, float], live: Live, found: Struck) -> Generator[None]:
    """Ask for it, and take from the processes' own words when it began and ended and what it did."""
    known = inside.told(live.folder)
    times = {process.pid: len(known.off.get(process.pid, ())) for process in _targets(one, live)}
    what = {
        **knobs,
        "act": one.act,
        "role": one.role,
        "point": one.point,
        "rank": one.rank,
        "file": str(live.disk / ".journal-"),
        "from": time.time_ns() + int(LEAD_S * 1e9),
        "until": 0,
    }
    inside.ask(live.folder, what)
    try:
        _wait_for(live, lambda said: all(len(said.on.get(pid, ())) > count for pid, count in times.items()))
        yield
    finally:
        inside.ask(live.folder, {**what, "until": time.time_ns()})
    said = _wait_for(live, lambda said: all(len(said.off.get(pid, ())) > count for pid, count in times.items()))
    begin = min(said.on[pid][count] for pid, count in times.items())
    end = max(said.off[pid][count] for pid, count in times.items())
    did = [each for pid in times for each in said.delays.get(pid, ()) if begin <= each.start <= end]
    found.delays = outside.together(did)
    inside.ask(live.folder, {})


def _wait_for(live: Live, true: Callable[[inside.Told], bool]) -> inside.Told:
    deadline = time.monotonic() + TOLD_S
    while not true(said := inside.told(live.folder)):
        if live.ended() or time.monotonic() > deadline:
            raise TellerError("The lab's service", "its injector did not answer", "Read server.log in its bundle")
        time.sleep(LOOK_S)
    return said


def _counters(live: Live) -> dict[str, int | None]:
    waited = [outside.waited(worker.task) for worker in live.workers]
    throttled = [live.groups.throttled(process.pid) for process in live.processes.values()] if live.groups else []
    return {
        "worker_run_queue_wait_ns": None if None in waited else sum(ns or 0 for ns in waited),
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
