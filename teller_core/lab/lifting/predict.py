"""The strikes of packed lives that moved something, each with what lifting its fault was predicted to save."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Float64
from teller_core.judge.reschedule.plan import Plan, plan
from teller_core.lab.benchmark.pack import Packed, captures_of
from teller_core.lab.blocks import ROUNDS, BlockTruth, StrikeTruth, Window, healthy_in
from teller_core.lab.lifting.calm import Calm, calm, others, places, undisturbed
from teller_core.lab.lifting.pairs import Pair, Sums, What, summed
from teller_core.lab.lifting.profiled import of_profiled
from teller_core.lab.lifting.requests import of_requests
from teller_core.lab.lifting.steps import of_steps
from teller_core.lab.lifting.told import of_told
from teller_core.lab.side_by_side import side_by_side

RECORDED, PROFILED = 3, 4
"""Tiers: with records of the scheduler, and with profiles."""
FRONT = "frontend."
ELSEWHERE = "what it delays lies outside of steps, or gives them other work"
FEW = "too few healthy windows are there to learn from"


class _Struck(NamedTuple):
    """A strike that moved something."""

    life: Packed
    block: BlockTruth
    place: int
    truth: StrikeTruth

    def pair(self, what: What, windows: Sequence[Sums], silent: str) -> Pair:
        sums, noise = summed(windows)
        truth = self.truth
        engine = str(self.life.about["kind"]["engine"])
        about = (self.life.name, engine, truth.fault, truth.cause or "", truth.severity, truth.role)
        return Pair(*about, what, sums, noise, silent)

    @property
    def elsewhere(self) -> str:
        """Why no step shows it, empty where one does: clients send other work, or what talks to them is slow, on a thread or in a
        process of its own.
        """
        apart, truth = self.life.about["kind"]["engine"] == "vllm", self.truth
        outside = (
            truth.role == "client" or (truth.cause or "").startswith(FRONT) or (truth.role == "front_end" and apart)
        )
        return ELSEWHERE if outside else ""

    @property
    def windows(self) -> list[Window]:
        return [each for each in self.block.windows if each.strike == self.place and not each.profiled]


def predicted(lives: Sequence[Packed], progress: Callable[[str], None], at_once: int = 1) -> list[Pair]:
    """Every strike of ``lives`` that moved something, as pairs of requests, of steps, of profiled steps and of what is told."""

    def read(at: int, life: Packed) -> list[Pair]:
        progress(f"life {at} of {len(lives)}")
        return of_life(life)

    parts = [partial(read, at, life) for at, life in enumerate(lives, 1)]
    return [pair for found in side_by_side(parts, at_once) for pair in found]


def of_life(life: Packed) -> list[Pair]:
    """The same of one life."""
    struck = [
        _Struck(life, block, place, truth)
        for block in life.blocks
        for place, truth in enumerate(block.strikes)
        if truth.rejected is None and truth.cause is not None
    ]
    capture, whole = captures_of(life, (RECORDED, PROFILED))
    made = plan(capture)
    expected = _expected(capture, made, life.blocks)
    return [*_by_model(capture, made, struck), *_by_replay(whole, struck, expected), *_as_told(capture, struck)]


def _as_told(capture: Capture, struck: Sequence[_Struck]) -> Iterator[Pair]:
    for one in struck:
        sums, why = of_told(capture, one.block, one.place)
        yield one.pair("told", [] if sums is None else [sums], why)


def _expected(capture: Capture, made: Plan, blocks: Sequence[BlockTruth]) -> Float64:
    """float64 ns: what the work of each step of the capture takes in healthy windows without a profiler; NaN where not known."""
    usual = np.full(len(capture.steps.engine), np.nan)
    for setting in made.settings.values():
        here = calm(setting, [each for block in blocks for turn in range(ROUNDS) for each in healthy_in(block, turn)])
        if here is not None:
            usual[setting.ran.step] = np.maximum(here.lasted - here.over, 1.0)
    return usual


def _by_model(capture: Capture, made: Plan, struck: Sequence[_Struck]) -> Iterator[Pair]:
    known = places(capture)
    for engine, setting in made.settings.items():
        calms: dict[tuple[int, int], Calm | None] = {}
        for one in struck:
            requests: list[Sums | None] = []
            steps: list[Sums | None] = []
            for window in one.windows:
                at = one.block.block, window.round
                if at not in calms:
                    calms[at] = calm(setting, others(one.life.blocks, one.block, window.round))
                here, healthy = calms[at], healthy_in(one.block, window.round)
                if here is not None:
                    requests.append(of_requests(capture, known, here, window, healthy))
                    steps.append(of_steps(here, window, healthy))
            silent = one.elsewhere or made.why[engine]
            whole, parts = ([each for each in sums if each is not None] for sums in (requests, steps))
            yield one.pair("requests", whole, silent if whole else silent or FEW)
            yield one.pair("steps", parts, one.elsewhere or ("" if parts else FEW))


def _by_replay(capture: Capture, struck: Sequence[_Struck], expected: Float64) -> Iterator[Pair]:
    for one in struck:
        window = next((each for each in one.block.windows if each.strike == one.place and each.profiled), None)
        elsewhere = [each for block in one.life.blocks if block is not one.block for each in undisturbed(block)]
        if window is not None:
            sums, why = of_profiled(capture, expected, window, undisturbed(one.block), elsewhere)
            yield one.pair("profiled", [] if sums is None else [sums], one.elsewhere or why)
