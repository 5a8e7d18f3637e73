"""What steps took beyond what their work predicts, and what of that the end of causes would save: where no profile tells.

It was checked on real faults, lifted (``teller lab lifted``): what is said of a cause here came true within OFF as a rule.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import UNKNOWN, Float64, Int32, Int64
from teller_core.judge.around import SLOW, slowdown
from teller_core.judge.assess import SLOW_RESIDUAL
from teller_core.judge.evidence import Clue
from teller_core.judge.prepare import Case, Engine
from teller_core.judge.regress import MIN_PEERS
from teller_core.judge.scene import Scene

ELSEWHERE = "it delays the request outside of steps, or gives them other work"
NOT_TIMED = "what its steps should have taken is not known"
OFF = 0.15
"""By which such a saving may be off."""
IN_STEPS = 0.5
"""Of what a cause cost: where less of it lies in steps, what these would save says nothing of its end."""
LENGTHENS = frozenset(
    {
        "comm.degraded_link",
        "comm.straggler_rank",
        "host.blocking_call",
        "host.cpu_starvation",
        "host.gc_pause",
        "host.interpreter_lock",
        "host.io_stall",
        "host.memory_bandwidth",
        "host.observer_overhead",
        "host.slow_operator",
        "host.step_overhead",
    }
)
"""Causes that make steps longer and leave them their work, as far as that was checked: replay alone tells of devices."""


class _Over(NamedTuple):
    """float64 ns a step of the capture, 0 where not known: what it and the turnaround before it took beyond what is usual for
    its work; and by how much one step may lie off that by chance.
    """

    over: Float64
    chance: Float64


class Overtime(NamedTuple):
    """What steps save of their overtime: a ``part`` of it, at ``least`` another one. ``steps``: over how many chance adds up."""

    found: _Over
    part: float
    least: float
    steps: int

    def of(self, step: Int32 | Int64) -> tuple[Int64, Int64, Int64]:
        """int64 ns a step of ``step`` (positions in the capture), negative where it would take longer: a lower bound, what it
        saves, an upper one.
        """
        over = self.found.over[step]
        # Chance adds up as draws do: over n steps to that of one times the root of n.
        chance = self.found.chance[step] / np.sqrt(self.steps) + OFF * np.abs(over * self.part)
        low, middle, high = over * self.least - chance, over * self.part, over * self.part + chance
        return _whole(low), _whole(middle), _whole(high)


def _whole(ns: Float64) -> Int64:
    return np.round(ns).astype(np.int64)


def overtime(view: Scene, clues: Sequence[Clue], named: Sequence[Clue]) -> Overtime | str:
    """What the steps of the request's engine save without all of ``clues``, or why that cannot be said: what they took beyond
    their work, divided among all causes that are ``named`` by what each cost the request; at least what they cost.
    """
    case, life = view.case, view.life
    inside = [clue for clue in clues if clue.cause in LENGTHENS]
    if not inside:
        return ELSEWHERE
    found = case.once("overtime", _measured)
    if life.engine is None or not len(life.step) or not found.over[life.step].any():
        return NOT_TIMED
    here = life.engine.step[life.engine.window(max(view.low, life.begin), life.last)]
    lost = float(found.over[here].sum())
    if lost <= 0 or lost < IN_STEPS * max(clue.ns for clue in inside):
        return ELSEWHERE
    ns, every = (sum(clue.ns for clue in some if clue.cause in LENGTHENS) for some in (inside, named))
    return Overtime(found, ns / every, min(ns / lost, ns / every), len(life.step))


def _measured(case: Case) -> _Over:
    known = (case.took != UNKNOWN) & (case.expected != UNKNOWN) & (case.expected > 0)
    took, expected = (np.where(known, column, 0).astype(np.float64) for column in (case.took, case.expected))
    calm = np.nan_to_num(slowdown(case), nan=np.inf) <= np.log(SLOW)
    usual = known & calm & (np.nan_to_num(case.assessment.steps.residual, nan=np.inf) < SLOW_RESIDUAL)
    if usual.sum() < MIN_PEERS:
        return _Over(np.zeros(len(took)), np.zeros(len(took)))
    # What is expected was learned from all steps, slow ones too, and is a middle: calm ones say what a step takes on average.
    expected *= took[usual].sum() / expected[usual].sum()
    over = took - expected
    spread = float(np.std(over[usual] / expected[usual]))
    for engine in case.engines.values():
        between = _between(case, engine)
        over[engine.step] += np.where(known[engine.step], between, 0.0)
    return _Over(over, spread * expected)


def _between(case: Case, engine: Engine) -> Float64:
    """float64 ns a step of ``engine``: its turnaround before it beyond the usual one. Where nobody goes on from the step before,
    the engine may have had nothing to do.
    """
    goes_on = case.capture.steps.generation_requests[engine.step] > 0
    before = np.append(np.int64(0), engine.after[:-1])[: len(engine.step)].astype(np.float64)
    usual = goes_on & (before <= engine.turnaround_limit)
    mean = float(before[usual].mean()) if usual.any() else 0.0
    return np.where(goes_on, before - mean, 0.0)
