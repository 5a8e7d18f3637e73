"""Episodes: captures that a method is asked about, cut from a life, with what is true of them beside."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from teller_core.data.capture import Capture
from teller_core.lab.benchmark import chosen as choose
from teller_core.lab.benchmark.chosen import Chosen, effect
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.labels import Labels, labels_of
from teller_core.lab.benchmark.pack import Packed
from teller_core.lab.benchmark.twins import lost
from teller_core.lab.blocks import StrikeTruth

PROFILED = 4
"""The tier at which windows of a profiler count: below it nobody would have opened them."""

Composition = Literal["struck", "healthy", "life"]


@dataclass(frozen=True)
class Episode:
    """What is asked about: ``capture`` alone. ``block`` and ``strike`` say which part of ``life`` it is, -1 for several;
    ``truth`` of the one strike, None for none or several; ``d_prime`` as :func:`chosen.effect`, NaN without one.
    ``windows``: what it was cut to, in the order in which ``labels`` count them.
    """

    life: str
    block: int
    strike: int
    truth: StrikeTruth | None
    d_prime: float
    windows: Sequence[Chosen]
    capture: Capture
    labels: Labels


def episodes(life: Packed, capture: Capture, tier: int) -> list[Episode]:
    """One episode a strike of ``life``: the healthy windows of its block and its own. ``capture``: the life's at ``tier``."""
    return [
        _episode(life, capture, choose.of_strike(block, at, profiled=tier >= PROFILED), (block.block, at), truth)
        for block in life.blocks
        for at, truth in enumerate(block.strikes)
    ]


def composed(life: Packed, capture: Capture, tier: int, what: Composition) -> list[Episode]:
    """Episodes of other windows: of each strike those that were ``struck`` alone (all is slow, so no peer is healthy), of each
    block its ``healthy`` ones, or the whole ``life`` in one (little is slow).
    """
    profiled = tier >= PROFILED
    match what:
        case "struck":
            return [
                _episode(life, capture, choose.struck(block, at, profiled=profiled), (block.block, at), truth)
                for block in life.blocks
                for at, truth in enumerate(block.strikes)
            ]
        case "healthy":
            return [
                _episode(life, capture, choose.healthy(block, profiled=profiled), (block.block, -1), None)
                for block in life.blocks
            ]
        case _:
            return [_episode(life, capture, choose.everything(life.blocks, profiled=profiled), (-1, -1), None)]


def _episode(
    life: Packed, capture: Capture, windows: Sequence[Chosen], place: tuple[int, int], truth: StrikeTruth | None
) -> Episode:
    part = cut(capture, [one.interval for one in windows])
    d_prime = float("nan") if truth is None else effect(truth)
    return Episode(life.name, *place, truth, d_prime, windows, part, labels_of(part, windows, lost(capture, windows)))
