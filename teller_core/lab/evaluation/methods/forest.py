"""Isolation forest on the features of a step."""

from collections.abc import Sequence

from teller_core.data.table import Float64
from teller_core.lab.evaluation.density import Density, learned, scores
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.learners import isolation_forest
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen

GRID: Sequence[Options] = tuple({"all": every, "samples": n} for every in (0, 1) for n in (256, 1024, 4096))
"""Times alone or all features, and how many steps each tree is made of."""


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Density:
    """A forest of 100 trees."""

    def fit(value: Float64) -> object:
        samples = min(1.0, options["samples"] / max(len(value), 1))
        return isolation_forest(value, trees=100, samples=samples, seed=seed)

    return learned(episodes, options, seed, fit)


def score(model: Density, seen: Seen) -> Float64:
    """float64 a step: how soon it is isolated."""
    return scores(model, seen)


METHOD = method_of(Scorer("forest", "isolation forest, learned from healthy steps", learn, score, GRID, seeds=3))
