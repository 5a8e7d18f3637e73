"""Kernel density of the features of healthy steps."""

from collections.abc import Sequence

from teller_core.data.table import Float64
from teller_core.lab.evaluation.density import Density, learned, scores
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.learners import kernel_density
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen

MOST_ROWS = 500
"""A density of so many kernels is asked about a million steps."""
GRID: Sequence[Options] = tuple({"all": every, "bandwidth": h} for every in (0, 1) for h in (0.25, 0.5, 1.0))
"""Times alone or all features, and the width of the kernels in scaled units."""


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Density:
    """A Gaussian kernel density."""
    return learned(
        episodes, options, seed=seed, most=MOST_ROWS, fit=lambda value: kernel_density(value, options["bandwidth"])
    )


def score(model: Density, seen: Seen) -> Float64:
    """float64 a step: minus its log density."""
    return scores(model, seen)


METHOD = method_of(Scorer("kde", "kernel density, learned from healthy steps", learn, score, GRID))
