"""Episodes made of one piece: runs of it, most of them healthy, some struck, and what is true of each.

What a strike cost is known to the nanosecond: each struck run is also replayed without it, with the very same durations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Float64, Mask
from teller_core.judge.robust import NORMAL_MAD
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, Labels
from teller_core.lab.perturb.altering import as_it_is
from teller_core.lab.perturb.assembling import assembled, laid
from teller_core.lab.perturb.benign import Like, Spread, between, drawn, like
from teller_core.lab.perturb.blows import Blow, Given, Target, untouched
from teller_core.lab.perturb.faults import FAULTS, NOTHING
from teller_core.lab.perturb.pieces import Piece
from teller_core.lab.perturb.runs import Run, recorded, replayed

LEAST, MOST = 1.05, 10.0
"""How hard a fault strikes: times as long."""
SEVERITIES = (("slight", 1.15), ("clear", 1.6), ("strong", 3.5), ("extreme", np.inf))
"""Up to which factor a strike is called so."""
RUNS, STRUCK = 12, 3
RUNS_OF_LARGE, STRUCK_OF_LARGE, LARGE = 8, 2, 12_000
"""Of pieces with more rows, so that an episode stays small."""
TOUCHES = 0.6
"""The chance of each step of a struck run to be struck."""
FELT = 0.05
"""Of a step's or a request's own time: what it must lose to be called abnormal. As in the lab."""
LEAST_SIGMA = 0.01
"""Log: nothing repeats itself more closely than this."""
OF_OPERATORS = frozenset(
    {"slow_kernel", "slow_operator", "added_sync", "pageable_copy", "allocator", "late_rank", "slow_link"}
)
"""Faults of which it is known which operators are at fault."""


class Prepared(NamedTuple):
    """A piece of ``capture`` and what is asked of it again and again."""

    given: Given
    alike: Like


@dataclass(frozen=True)
class Made:
    """``capture``: what is asked about. The truth: ``labels``; ``runs``: of each, whether it was struck, and ``touched`` bool
    [runs, steps]; ``target`` and ``factor`` of the strike; ``loss`` float64 [runs, steps]: the log of how many times as long each
    step took as without it.
    """

    capture: Capture
    labels: Labels
    runs: Mask
    touched: Mask
    target: Target
    factor: float
    loss: Float64


def prepared(capture: Capture, piece: Piece) -> Prepared:
    """``piece`` of ``capture``, ready for many episodes."""
    return Prepared(Given(capture, piece, recorded(piece).took()), like(piece))


def possible(ready: Prepared) -> list[str]:
    """The faults that can be made of a piece."""
    return [name for name, fault in FAULTS.items() if fault.choose(ready.given, np.random.default_rng(0)) is not None]


def severity(factor: float) -> str:
    """The word for how hard a strike was."""
    return next(word for word, most in SEVERITIES if factor <= most)


def made(
    ready: Prepared, spread: Spread, name: str, seed: Sequence[int], since: int, *, real: bool = False
) -> Made | None:
    """An episode of the fault ``name``, from ``seed`` bit for bit, which begins at ``since`` ns; None where the piece has nothing
    that it could strike. With ``real`` the first healthy run is the recorded one: a control, for who asks whether that can be
    told.
    """
    chance = np.random.default_rng(list(seed))
    fault, piece = FAULTS[name], ready.given.piece
    target = fault.choose(ready.given, chance)
    if target is None:
        return None
    factor = math.exp(float(chance.uniform(math.log(LEAST), math.log(MOST))))
    struck, touched = _struck(piece, chance, once=fault.once, none=name == NOTHING)
    center = drawn(piece, ready.alike, spread, chance)
    runs: list[Run] = []
    calm: list[Run] = []
    for at in range(len(struck)):
        draw = between(piece, ready.alike, drawn(piece, ready.alike, spread, chance), center, chance)
        calm.append(replayed(untouched(as_it_is(piece)), draw))
        hit = fault.strike(Blow(ready.given, target, factor, touched[at], chance)) if touched[at].any() else None
        if hit is None and touched[at].any():
            return None
        runs.append(calm[at] if hit is None else replayed(hit, draw))
    if real:
        first = int(np.flatnonzero(~struck)[0])
        runs[first] = calm[first] = recorded(piece)
    work = [factor if fault.works and hit else 1.0 for hit in struck.tolist()]
    capture = assembled(ready.given.capture, laid(runs, since, work))
    losses = _losses(runs, calm)
    labels = _labels(losses, touched, (name, target, factor), [part.rank for part in runs[0].parts])
    labels.check(capture)
    return Made(capture, labels, struck, touched, target, factor, losses.step)


class _Losses(NamedTuple):
    """Logs of how many times as long each step [runs, steps] and request [runs] took as without the strike, and ``sigma``: of how
    much healthy steps differ.
    """

    step: Float64
    request: Float64
    sigma: float


def _struck(piece: Piece, chance: np.random.Generator, *, once: bool, none: bool) -> tuple[Mask, Mask]:
    """bool [runs]: which ones are struck; bool [runs, steps]: which of their steps."""
    large = len(piece.linked) > LARGE
    runs, many = (RUNS_OF_LARGE, STRUCK_OF_LARGE) if large else (RUNS, STRUCK)
    struck = np.zeros(runs, dtype=np.bool_)
    struck[chance.choice(runs, many, replace=False)] = True
    steps = len(piece.steps)
    touched = chance.random((runs, steps)) < TOUCHES
    one = chance.integers(0, steps, runs)
    touched[np.arange(runs), one] = True
    if once:
        touched[:] = False
        touched[np.arange(runs), one] = True
    if none:
        struck[:] = False
    touched &= struck[:, None]
    return struck, touched


def _losses(runs: Sequence[Run], calm: Sequence[Run]) -> _Losses:
    usual = _took(calm)
    away = usual - np.median(usual, axis=0)
    sigma = max(float(np.median(np.abs(away))) * NORMAL_MAD, LEAST_SIGMA)
    return _Losses(_took(runs) - usual, _lasted(runs) - _lasted(calm), sigma)


def _took(runs: Sequence[Run]) -> Float64:
    """float64 [runs, steps]: logs of how long each took."""
    return np.log(np.stack([run.took() for run in runs]).astype(np.float64) + 1.0)


def _lasted(runs: Sequence[Run]) -> Float64:
    """float64 [runs]: logs of how long all steps together took."""
    return np.log(np.array([run.over.max() - run.began().min() for run in runs]) + 1.0)


def _labels(losses: _Losses, touched: Mask, strike: tuple[str, Target, float], ranks: Sequence[int]) -> Labels:
    name, target, factor = strike
    fault = FAULTS[name]
    runs, steps = touched.shape
    felt = np.log1p(FELT)
    hard, cause = fault.cause is None, fault.cause or ""
    step = np.where(losses.step >= felt, 1, np.where(losses.step == 0, 0, -1)).astype(np.int8)
    step[(step == 1) & ~touched] = -1  # what a step before it held up
    step[(step == 0) & touched] = -1
    if hard:
        step = np.zeros_like(step)
    struck = np.asarray(touched.any(axis=1), dtype=np.bool_)
    lost = losses.request >= felt
    request = [HEALTHY if hard or not struck[at] else cause if lost[at] else NOT_JUDGED for at in range(runs)]
    window = np.arange(runs, dtype=np.int32)
    at = np.flatnonzero(step.reshape(-1) == 1).tolist()
    hit = losses.step[touched]
    effect = float(np.median(hit)) / losses.sigma if len(hit) and not hard else float("nan")
    known = name in OF_OPERATORS and target.names
    return Labels(
        request=request,
        hard=struck if hard else np.zeros_like(struck),
        request_window=window,
        step=step.reshape(-1),
        step_window=np.repeat(window, steps),
        operators=dict.fromkeys(at, target.names) if known else {},
        ranks=dict.fromkeys(at, ranks[target.part]) if len(ranks) > 1 and target.part >= 0 else {},
        fault=name,
        cause=cause,
        severity=severity(factor) if cause or hard else "",
        d_prime=effect,
    )
