"""How far off predictions are, cause by cause, beside two that anybody could make."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teller_core.lab.lifting.pairs import Pair, What

WITHIN = 0.15
"""Of what a fault cost: by how much a prediction may be off as a rule."""
LEAST_PAIRS = 3
"""Fewer strikes than this say nothing of a cause."""
AS_GOOD = 0.01
"""Where a simpler prediction is closer by less than this, it is no better: in steps of one thread they are the same."""
FELT = 0.1
"""A fault that took less of the time of what it struck is no yardstick."""
SIGMAS = 3.0
"""Nor is one that cost less than so many times its noise: the error of a prediction would be that of its truth."""
WORDS: dict[What, str] = {
    "requests": "requests",
    "steps": "steps",
    "profiled": "profiled steps",
    "told": "requests, as why says of a capture",
}


@dataclass(frozen=True)
class Figures:
    """Strikes of one cause, ``all`` of them together, or those of all causes. ``pairs``: of which something is predicted and that
    were felt; ``silent``: of which nothing is. Medians over pairs of the error of three predictions, and of ``noise`` beside
    the truth; NaN without a pair.
    """

    cause: str
    what: What
    pairs: int
    silent: int
    ours: float
    own: float
    scaled: float
    noise: float

    @property
    def why_not(self) -> str:
        """Why no saving of this cause is to be claimed; empty where one is."""
        if self.pairs < LEAST_PAIRS:
            return f"it was checked on {self.pairs} faults only"
        if self.ours > WITHIN:
            return f"predictions were off by {self.ours:.0%} as a rule"
        if self.ours > min(self.own, self.scaled) + AS_GOOD:
            return "simpler predictions were better"
        return ""


def figures(pairs: Sequence[Pair]) -> list[Figures]:
    """Of all causes together, then of each, of requests, of steps and of profiled steps."""
    found: list[Figures] = []
    for what in WORDS:
        mine = [pair for pair in pairs if pair.what == what]
        found.append(_figures("all", what, mine))
        found += [_figures(cause, what, [pair for pair in mine if pair.cause == cause]) for cause in _causes(mine)]
    return found


def felt(pair: Pair) -> bool:
    """Whether its fault took enough time to be compared."""
    return pair.sums.truth >= max(FELT * pair.sums.before, SIGMAS * pair.noise) and pair.sums.before > 0


def _figures(cause: str, what: What, pairs: Sequence[Pair]) -> Figures:
    told = [pair for pair in pairs if not pair.silent and felt(pair)]
    ours, own, scaled = ([pair.error(way) for pair in told] for way in ("ours", "own", "scaled"))
    noise = [pair.noise / pair.sums.truth for pair in told]
    silent = sum(bool(pair.silent) for pair in pairs)
    return Figures(cause, what, len(told), silent, *map(_middle, (ours, own, scaled, noise)))


def _causes(pairs: Sequence[Pair]) -> list[str]:
    return sorted({pair.cause for pair in pairs})


def _middle(values: Sequence[float]) -> float:
    return float(np.median(values)) if values else float("nan")
