"""What an engine is like when nothing is done to it, by some healthy windows; and what each step took beyond that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.table import Float64, Mask
from teller_core.judge.reschedule.background import background
from teller_core.judge.reschedule.costs import features, learn, took
from teller_core.judge.reschedule.simulate import Setting
from teller_core.lab.blocks import HEALTHY, BlockTruth, Window

LONG = 200_000_000
"""ns: a turnaround of a faulty engine is shorter, a longer one is an engine that had nothing to do."""


@dataclass(frozen=True)
class Calm:
    """``setting`` with costs of healthy steps alone. float64 ns a step of ``setting.ran``: ``lasted``, what it and the turnaround
    before it took, and ``over``, by how much that exceeds what healthy ones take on average for this work: a healthy step does
    as often as not. ``healthy`` bool: those that this was learned from.
    """

    setting: Setting
    lasted: Float64
    over: Float64
    healthy: Mask


def places(capture: Capture) -> dict[str, int]:
    """The position of each request by what its client called it: engines put more around it."""
    found: dict[str, int] = {}
    for at, (client, engine) in enumerate(zip(capture.requests.client_id, capture.requests.engine_id, strict=True)):
        for name in (client, *engine.split("-")):
            if name:
                found.setdefault(name, at)
    return found


def during(setting: Setting, windows: Sequence[Window]) -> Mask:
    """bool a step: it was decided on in one of ``windows``."""
    hit = np.zeros(len(setting.ran.step), dtype=np.bool_)
    for window in windows:
        hit |= (setting.ran.decided >= window.begin) & (setting.ran.decided < window.end)
    return hit


def undisturbed(block: BlockTruth) -> list[Window]:
    """The profiled windows of a block in which nothing was done to the service: its clients may have sent other work."""
    calm = [at for at, strike in enumerate(block.strikes) if strike.cause is None and strike.role == "client"]
    return [each for each in block.windows if each.profiled and each.strike in (HEALTHY, *calm)]


def others(blocks: Sequence[BlockTruth], block: BlockTruth, turn: int) -> list[Window]:
    """The healthy windows of all rounds of ``blocks`` but this one."""
    return [
        window
        for each in blocks
        for window in each.windows
        if window.strike == HEALTHY and not window.profiled and (each.block, window.round) != (block.block, turn)
    ]


def calm(setting: Setting, windows: Sequence[Window]) -> Calm | None:
    """What the steps of ``windows`` teach; None where they are too few."""
    healthy = during(setting, windows)
    work, taken = features(setting.ran), took(setting.ran).astype(np.float64)
    costs = learn(work[healthy], took(setting.ran)[healthy])
    if costs is None:
        return None
    here = replace(setting, costs=costs)
    turnaround = background(here).turnaround.astype(np.float64)
    busy = turnaround < LONG
    usual = costs.predict(work)
    usual *= float(taken[healthy].sum()) / float(usual[healthy].sum())
    mean = float(turnaround[healthy & busy].mean()) if (healthy & busy).any() else 0.0
    return Calm(here, taken + turnaround, taken - usual + turnaround - mean, healthy)
