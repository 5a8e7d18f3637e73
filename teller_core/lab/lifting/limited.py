"""What requests would have taken under another limit of the scheduler, foretold from windows under one: ``lab rerun`` has both.

A prediction looks at the windows of one arm alone: what their steps cost, and the batches that a scheduler with the other arm's
limit would have made of the same arrivals. The truth is of the other arm's windows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from teller_core.judge.reschedule.background import background
from teller_core.judge.reschedule.plan import Plan, plan
from teller_core.judge.reschedule.scheduler import Limits, Share
from teller_core.judge.reschedule.simulate import Run, Setting, run
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.pack import read_bundle
from teller_core.lab.blocks import Window
from teller_core.lab.counterfactual import AFTER, BEFORE, Asked, Ran, Rerun
from teller_core.lab.effect import Row, latency
from teller_core.lab.lifting.calm import places
from teller_core.lab.lifting.pairs import Sums, summed
from teller_core.lab.savings import rows_of

LATENCIES = ("ttft", "e2e")
"""What a scheduler decides on."""
NONE_SERVED = "no step is known to have served their requests"
NONE_COMPARED = "no request was answered under both limits and comes to its end where it is simulated"
SEVERAL = "several engines served them, and which of them gets a request is not simulated"
LARGER = "its steps would compute more of a prompt than any that it was learned from"
"""A token of a prompt costs less in a larger step: what small ones teach says too little of what is saved."""


@dataclass(frozen=True)
class Foretold:
    """One latency of one start, of requests that were sent under the limit of ``arm`` and would have been under the other one.
    ``sums``: over all requests and rounds, ``noise`` ns: how far their truth may be off, by what rounds differ by, None for fewer
    than two; ``silent``: why nothing is foretold, empty where something is.
    """

    start: int
    arm: int
    latency: str
    sums: Sums
    noise: float | None
    silent: str


class _Change(NamedTuple):
    """``setting`` and ``limits`` of the scheduler under one limit and under that of the ``other`` arm."""

    asked: Asked
    other: int
    setting: Setting
    limits: Limits


def foretold(truth: Rerun, folder: Path) -> list[Foretold]:
    """Each start of ``truth``, recorded in ``folder``, from either arm's windows. Raises TellerError for a damaged recording."""
    return [
        each
        for bundle in dict.fromkeys(one.bundle for one in truth.windows)
        for each in _of_start(truth.asked, [one for one in truth.windows if one.bundle == bundle], folder / bundle)
    ]


def _of_start(asked: Asked, windows: Sequence[Ran], bundle: Path) -> Iterator[Foretold]:
    capture, rows = read_bundle(bundle), rows_of(bundle)
    for arm, other in ((BEFORE, AFTER), (AFTER, BEFORE)):
        mine = {one.window.round: one.window for one in windows if one.arm == arm}
        theirs = {one.window.round: one.window for one in windows if one.arm == other}
        # What the other limit does is not to be learned from.
        part = cut(capture, [(window.begin, window.end) for window in mine.values()])
        made, known = plan(part), places(part)
        change = _change(made, asked, other)
        silent, sums = change if isinstance(change, str) else "", list[Mapping[str, Sums]]()
        if not isinstance(change, str):
            sums = [_window(change, mine[turn], theirs[turn], known, rows) for turn in mine]
        for name in LATENCIES:
            rounds = [each[name] for each in sums if name in each]
            whole, _ = summed(rounds)
            why = silent or ("" if rounds else NONE_COMPARED)
            yield Foretold(windows[0].start, arm, name, whole, _noise(rounds), why)


def _change(made: Plan, asked: Asked, other: int) -> _Change | str:
    """What would be different under the limit of the ``other`` arm, or why nothing is foretold."""
    if len(made.why) != 1:
        return SEVERAL if made.why else NONE_SERVED
    ((engine, why),) = made.why.items()
    if why:
        return why
    setting = made.settings[engine]
    if asked.what == "chunk" and other == BEFORE and setting.limits.tokens is not None:
        return LARGER
    return _Change(asked, other, setting, _limits(setting.limits, asked, other))


def _noise(rounds: Sequence[Sums]) -> float | None:
    """ns of the sum of the truths of ``rounds``, a standard deviation; None for fewer than two, which do not differ."""
    return float(np.std([each.truth for each in rounds], ddof=1) * len(rounds) ** 0.5) if len(rounds) > 1 else None


def _limits(limits: Limits, asked: Asked, arm: int) -> Limits:
    """Those of the other ``arm``: None is the engine's own limit, which is larger than what a step needs."""
    most = asked.limits(arm).get(asked.what, asked.before)
    return replace(limits, tokens=most) if asked.what == "chunk" else replace(limits, requests=most)


def _window(
    change: _Change, window: Window, twin: Window, known: Mapping[str, int], rows: Mapping[str, Row]
) -> Mapping[str, Sums]:
    """Each latency, summed over the requests of ``window`` that can be compared with those of its ``twin``."""
    setting = change.setting
    own = [known.get(name, -1) for name in window.requests]
    served = [at for at in own if at >= 0 and int(setting.ran.first[at]) >= 0]
    low = int(np.searchsorted(setting.ran.decided, window.begin))
    if not served or low >= len(setting.ran.decided):
        return {}
    met = background(setting)
    was, now = (run(each, met, low, served) for each in (setting, replace(setting, limits=change.limits)))
    found: dict[str, Sums] = {}
    for name in LATENCIES:
        less: list[tuple[float, ...]] = []
        for at, mine, theirs in zip(own, window.requests, twin.requests, strict=True):
            took, usual = (latency(rows[each], name) for each in (mine, theirs))
            before, after = (_of(made, name).get(at) for made in (was, now))
            if took is not None and usual is not None and before is not None and after is not None:
                less.append((1, took, took - usual, 0, before - after, *_simply(change, at, took, name)))
        if less:
            size, *sums = np.sum(less, axis=0).tolist()
            found[name] = Sums(round(size), *sums)
    return found


def _of(made: Run, name: str) -> Mapping[int, int]:
    return made.answered if name == "ttft" else made.ended


def _simply(change: _Change, request: int, took: float, name: str) -> tuple[float, float]:
    """ns by which two that anybody could make would have it end sooner. By its own steps: what its prompt takes, alone, in steps
    of the one size and of the other; who waits for a seat has the same steps. Scaled: a prompt in half as many steps takes half
    the time to its first token, and with twice the seats all take half the time.
    """
    asked, other, setting, limits = change
    if asked.what == "seats":
        had, gets = (asked.limits(arm).get("seats", asked.before) for arm in (1 - other, other))
        scaled = took * (1 - had / gets) if had and gets and name == "e2e" else 0.0
        return 0.0, scaled
    was, now = (_alone(setting, request, each.tokens) for each in (setting.limits, limits))
    first = took if name == "ttft" else float(_first(setting, request))
    return sum(was) - sum(now), first * (1 - len(now) / len(was))


def _alone(setting: Setting, request: int, most: int | None) -> list[float]:
    """ns of each step that computes the prompt of ``request`` and nothing else, in steps of at most ``most`` tokens."""
    left, held = int(setting.ran.prompt[request]), int(setting.ran.cached[request])
    found: list[float] = []
    while left > 0:
        tokens = left if most is None else min(left, most)
        found.append(setting.costs.of([Share(request, tokens, True, held)]))
        left, held = left - tokens, held + tokens
    return found or [0.0]


def _first(setting: Setting, request: int) -> int:
    """ns from its arrival to the end of the step that gave its first token; 0 where that is not known."""
    answers = int(setting.ran.answers[request])
    return int(setting.ran.ended[answers] - setting.came.time[request]) if answers >= 0 else 0
