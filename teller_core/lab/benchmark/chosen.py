"""Windows of a life from which an episode is made, and what the lab's truth says of them: the one place that knows its shape."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.lab.blocks import HEALTHY, BlockTruth, StrikeTruth, Window
from teller_core.lab.outside import Delay

MARGIN_NS = 100_000_000
"""Around a window: the service goes on a little after its last answer. Nothing is done to it for more than twice as long."""

UNSEEN = frozenset({("outside", "engine"), ("outside", "front_end")})
"""From outside the waits of the thread that computes are counted: nothing is known of those of others."""
UNTOLD = frozenset({"host.memory_bandwidth"})
"""Nor is it known how long that thread waited for memory."""


class Chosen(NamedTuple):
    """A window of a block."""

    block: BlockTruth
    window: Window

    @property
    def strike(self) -> StrikeTruth | None:
        """What was done in it, None for nothing."""
        return None if self.window.strike == HEALTHY else self.block.strikes[self.window.strike]

    @property
    def interval(self) -> tuple[int, int]:
        """Unix ns, with MARGIN_NS around it."""
        return self.window.begin - MARGIN_NS, self.window.end + MARGIN_NS

    @property
    def tells(self) -> bool:
        """Whether what was done tells its delays, in this window or in another of the same strike."""
        strike = self.strike
        if strike is None or strike.cause in UNTOLD or (strike.where, strike.role) in UNSEEN:
            return False
        return any(window.delays for window in self.block.windows if window.strike == self.window.strike)


def of_strike(block: BlockTruth, strike: int, *, profiled: bool) -> list[Chosen]:
    """The healthy windows of ``block`` and those of one strike; ``profiled``: also those in which a profiler ran."""
    return _chosen(block, (HEALTHY, strike), profiled)


def struck(block: BlockTruth, strike: int, *, profiled: bool) -> list[Chosen]:
    """The windows of one strike alone."""
    return _chosen(block, (strike,), profiled)


def healthy(block: BlockTruth, *, profiled: bool) -> list[Chosen]:
    """The windows in which nothing was done."""
    return _chosen(block, (HEALTHY,), profiled)


def everything(blocks: Sequence[BlockTruth], *, profiled: bool) -> list[Chosen]:
    """All windows of a life."""
    return [one for block in blocks for one in _chosen(block, (HEALTHY, *range(len(block.strikes))), profiled)]


def effect(strike: StrikeTruth) -> float:
    """d': the logarithm of the ratio that it is judged by over the noise of one healthy window; NaN where it was not measured."""
    ratio = strike.moved.get(strike.judged_by)
    if ratio is None or strike.sigma <= 0 or ratio.median <= 0:
        return float("nan")
    return float(np.log(ratio.median)) / strike.sigma


def overlap(delay: Delay, begin: int, end: int) -> int:
    """ns of ``delay`` that lie between ``begin`` and ``end``: no more than it took from anybody."""
    return max(0, min(delay.delay, min(delay.stop, end) - max(delay.start, begin)))


def _chosen(block: BlockTruth, strikes: Sequence[int], profiled: bool) -> list[Chosen]:
    return [
        Chosen(block, window)
        for window in block.windows
        if window.strike in strikes and (profiled or not window.profiled)
    ]
