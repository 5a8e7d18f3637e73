"""The same requests sent to a real service whose scheduler is limited now so, now so: what the change saves.

The limit is changed while the service runs, before each window of requests, in an order of chance: a start of a service has more
luck of its own than a limit, and what else goes on on the machine strikes both alike. The prompts of two windows are of the
same lengths and come at the same times, and their words are others, so that nothing of them is found in a cache.

A folder holds ``life.json``, what was asked for; ``bundle-N``, a recording of each start of the service; ``windows.jsonl``, a
line a window of each start that is whole; and ``truth.json``, when all are there.
"""

import json
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from teller_core.data.whole import whole
from teller_core.errors import FormatError, InputError, TellerError
from teller_core.lab import inside, nodes
from teller_core.lab.blocks import BROKEN, HEALTHY, Strike, Window, window_of
from teller_core.lab.effect import Ratio, Row, ratios
from teller_core.lab.injectors import injector
from teller_core.lab.life import PAUSE_S, run_window, same_life, sent
from teller_core.lab.requests import REQUESTS, ordinary
from teller_core.lab.savings import Saved, rows_of, saved
from teller_core.lab.serving import CHUNK, SEATS, Live, Setup, program, served
from teller_core.lab.striking import check

CHANGES = ("chunk", "seats")
"""Limits of the scheduler that may be lower ones."""
STARTS, ROUNDS = 2, 6
"""Twelve pairs a request: of that many, the interval of a median leaves out two at each end."""
TOLD_S = 10.0
ONCE = ("first", "prefix")
"""Acts that the same requests do not bring about again: the service has started, the beginning is known."""
BEFORE, AFTER = 0, 1
TRUTH, WINDOWS = "truth.json", "windows.jsonl"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What is served, and which of its limits is ``after`` instead. ``requests``: of one window, alike in all; ``strike``: what
    is done in all windows.

    Raises InputError for a change that is none, or that is no lower limit, and for a fault that cannot be there in every window.
    """

    setup: Setup
    what: str
    after: int
    seed: int = 0
    mix: str = "steady"
    requests: int = REQUESTS
    strike: Strike | None = None
    rounds: int = ROUNDS

    def __post_init__(self) -> None:
        if self.what not in CHANGES:
            raise InputError("The change", f"it is none of {', '.join(CHANGES)}", "Name one of these")
        seats = SEATS[self.setup.engine]
        if self.what == "seats" and seats is None:
            raise InputError("The change", f"{self.setup.engine} has no such limit here", "Change chunk, or name vllm")
        if self.before is not None and self.after >= self.before:
            raise InputError("The change", f"{self.what} is {self.before} already", "Ask for a lower limit")
        if self.what == "chunk" and seats is not None and self.after < seats:
            raise InputError("The change", f"a step has room for {seats} requests", "Ask for as many tokens at least")
        one = None if self.strike is None else injector(self.strike.fault)
        if one is not None and (one.act in ONCE or self.setup.engine not in one.engines):
            raise InputError(f"The fault {one.name}", "it cannot be done in every window", "Name another one")

    @property
    def before(self) -> int | None:
        """None: what the engine has by itself."""
        return (CHUNK if self.what == "chunk" else SEATS)[self.setup.engine]

    def limits(self, arm: int) -> Mapping[str, int]:
        """What is lower BEFORE and AFTER the change, by name."""
        return {self.what: self.after} if arm == AFTER else {}


@dataclass(frozen=True)
class Ran:
    """One window. ``arm``: BEFORE or AFTER; ``start``: which start of the service it was sent to, recorded in ``bundle``."""

    start: int
    arm: int
    bundle: str
    window: Window


@dataclass(frozen=True)
class Rerun:
    """The truth. ``moved``: by latency, after the change over before it, over all requests, and with an interval over rounds;
    ``requests``: of each by itself, in these rounds.
    """

    asked: Asked
    windows: Sequence[Ran]
    moved: Mapping[str, Ratio]
    requests: Sequence[Saved]


def rerun(asked: Asked, folder: Path, progress: Progress, *, starts: int = STARTS, vllm: Path | None = None) -> Rerun:
    """Run the starts that ``folder`` lacks. Returns the whole truth.

    ``progress`` is told what goes on. Raises TellerError where a service does not come up or answer, InputError where ``folder``
    holds something else or a fault needs what is not there, UnknownName for a mix that is not there.
    """
    start = program(asked.setup.engine, vllm)
    same_life(folder, asdict(asked))
    nodes.mend(folder)
    for number in range(starts):
        done = ran(folder)
        if number in {each.start for each in done}:
            continue
        progress(f"start {number + 1} of {starts}")
        bundle = f"bundle-{1 + len([*folder.glob('bundle-*')])}"
        with served(asked.setup, start, folder / bundle, progress) as live:
            done += _windows(asked, number, live, bundle, progress)
        _write(folder / WINDOWS, done)
    truth = _truth(folder, asked)
    _write(folder / TRUTH, [truth])
    return truth


def ran(folder: Path) -> list[Ran]:
    """The windows of all starts that ``folder`` holds whole. Raises FormatError for one that is no window."""
    file = folder / WINDOWS
    try:
        return [_ran(json.loads(line)) for line in (file.read_text().splitlines() if file.exists() else ())]
    except BROKEN as error:
        raise FormatError(WINDOWS, "it is damaged", "Record it again, into a new folder") from error


def _ran(line: dict[str, Any]) -> Ran:
    return Ran(line["start"], line["arm"], line["bundle"], window_of(line["window"]))


def _write(path: Path, lines: Iterable[Any]) -> None:
    with whole(path) as file:
        file.writelines(json.dumps(asdict(line)).encode() + b"\n" for line in lines)


def _windows(asked: Asked, number: int, live: Live, bundle: str, progress: Progress) -> list[Ran]:
    """The windows of one start. Those before round 0 are for warming up, and count nowhere."""
    strike, seed = asked.strike, f"{asked.seed} {number}"
    if strike is not None:
        check(injector(strike.fault), live)
    chance = random.Random(f"asks {asked.seed}")
    asks = sent(strike, ordinary(chance, asked.requests, asked.mix, asked.setup.beginning), chance)
    found: list[Ran] = []
    order = random.Random(f"order {seed}")
    for turn in range(-1, asked.rounds):
        progress(f"round {turn + 1} of {asked.rounds}" if turn >= 0 else "warming up")
        for arm in order.sample((BEFORE, AFTER), 2):
            inside.limit(live.folder, asked.limits(arm))
            what = (turn, HEALTHY if strike is None else 0, False)
            chance = random.Random(f"window {seed} {turn} {arm}")
            window, _ = run_window(what, strike, asks, chance=chance, live=live)
            if turn >= 0:
                found.append(Ran(number, arm, bundle, window))
            time.sleep(PAUSE_S)
        if turn < 0:
            _limited(asked, live)
    return found


def _limited(asked: Asked, live: Live) -> None:
    """Raise InputError where no scheduler took the lower limit, TellerError where the service ended."""
    deadline = time.monotonic() + TOLD_S
    while not inside.told(live.folder).limited.get(asked.what):
        if live.ended():
            raise TellerError("The lab's service", "it ended", "Read server.log in its bundle")
        if time.monotonic() > deadline:
            raise InputError("The change", f"the engine's own {asked.what} is no larger", "Ask for a lower limit")
        time.sleep(PAUSE_S)


def _truth(folder: Path, asked: Asked) -> Rerun:
    windows = ran(folder)
    rows = {bundle: rows_of(folder / bundle) for bundle in {each.bundle for each in windows}}
    pairs: dict[tuple[int, int], dict[int, Sequence[Row]]] = {}
    for each in windows:
        own = [rows[each.bundle][name] for name in each.window.requests]
        pairs.setdefault((each.start, each.window.round), {})[each.arm] = own
    of_request = zip(*(zip(both[BEFORE], both[AFTER], strict=True) for both in pairs.values()), strict=True)
    requests = [saved(place, own) for place, own in enumerate(of_request)]
    by_round = [(both[BEFORE], both[AFTER]) for both in pairs.values()]
    return Rerun(asked, windows, ratios(by_round, asked.seed), requests)
