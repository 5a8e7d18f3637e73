"""The windows of the benchmark's lives as the probe has them: a bag of features a view, and what was done beside."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from teller_core.data.capture import Capture
from teller_core.lab.benchmark.chosen import MARGIN_NS
from teller_core.lab.benchmark.cut import cut
from teller_core.lab.benchmark.pack import Packed, capture_of
from teller_core.lab.blocks import HEALTHY, BlockTruth, Window
from teller_core.lab.injectors import injector
from teller_core.lab.probe.views import VIEWS, Bag, Glance

TIER = 4
"""All that was recorded: what gives nothing away there does not at a lower tier."""
HARD = "(hard negative)"


@dataclass(frozen=True)
class Seen:
    """A window. ``round``: of all rounds of its life; ``strike``: which of its life, -1 for none; ``cause``: of the strike, HARD
    where it is no fault.
    """

    life: str
    round: int
    strike: int
    cause: str
    bags: Mapping[str, Bag]


def windows_of(life: Packed) -> list[Seen]:
    """Every window of ``life``, in the order of their running, without what strikes at the beginning of a life."""
    capture, found, rounds, strikes, last = capture_of(life, TIER), list[Seen](), 0, 0, 0
    usual = _usual(capture, [window for block in life.blocks for window in block.windows])
    for block in life.blocks:
        for glance, strike in _glances(block, capture, usual, (len(found), last)) if _dealt(block) else ():
            bags = {name: view(glance) for name, view in VIEWS.items()}
            cause = "" if strike == HEALTHY else block.strikes[strike].cause or HARD
            number = -1 if strike == HEALTHY else strikes + strike
            found.append(Seen(life.name, rounds + glance.round, number, cause, bags))
        rounds += 1 + max((window.round for window in block.windows), default=0)
        strikes += len(block.strikes)
        last = max((window.end for window in block.windows), default=last)
    return found


def _dealt(block: BlockTruth) -> bool:
    """Whether its faults might have struck in any other block: not those of a life's beginning."""
    return not any("fresh_start" in injector(strike.fault).needs for strike in block.strikes)


def _usual(capture: Capture, windows: Sequence[Window]) -> frozenset[tuple[str, str]]:
    """(role, process) of which most of ``windows`` have samples."""
    samples, count = capture.samples, Counter[tuple[str, str]]()
    for window in windows:
        inside = np.flatnonzero((samples.stop >= window.begin) & (samples.stop <= window.end))
        count.update({(samples.role[at], samples.process[at]) for at in map(int, inside)})
    return frozenset(each for each, times in count.items() if 2 * times > len(windows))


def _glances(
    block: BlockTruth, capture: Capture, usual: frozenset[tuple[str, str]], past: tuple[int, int]
) -> list[tuple[Glance, int]]:
    """``past``: how many windows were before, and when the last of them ended."""
    before, last = past
    found: list[tuple[Glance, int]] = []
    windows = sorted(block.windows, key=lambda window: window.begin)
    for number, window in enumerate(windows):
        fellows = [each.begin for each in windows if each.round == window.round]
        part = cut(capture, [(window.begin - MARGIN_NS, window.end + MARGIN_NS)])
        since = window.begin - last if last else 0
        place = (fellows.index(window.begin), len(fellows), before + number, since, window.end - window.begin, usual)
        found.append((Glance(part, window.round, *place), window.strike))
        last = window.end
    return found


def lives_in(windows: Sequence[Seen]) -> list[str]:
    """Their lives, each once."""
    return sorted({window.life for window in windows})
