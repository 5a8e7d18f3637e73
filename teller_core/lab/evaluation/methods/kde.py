"""Kernel density of the features of healthy steps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teller_core.data.table import Float64
from teller_core.lab.evaluation.density import Density, learned, scores
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen

AT_ONCE = 64
"""Rows whose distances to all kernels fit into a processor's own cache."""
GRID: Sequence[Options] = tuple({"all": every, "bandwidth": h} for every in (0, 1) for h in (0.25, 0.5, 1.0))
"""Times alone or all features, and the width of the kernels in scaled units."""


@dataclass(frozen=True)
class Kernels:
    """``middle`` float64 [rows, columns]: where each stands; ``width``: of all of them."""

    middle: Float64
    width: float

    def score_samples(self, value: Float64) -> Float64:
        """float64 a row: the log density, but for what is the same everywhere; by products of matrices that stay in a cache."""
        middle, rows = (np.ascontiguousarray(each / self.width, dtype=np.float32) for each in (self.middle, value))
        far = np.float32(0.5) * (middle**2).sum(axis=1)
        found = np.empty(len(rows), dtype=np.float64)
        for low in range(0, len(rows), AT_ONCE):
            part = rows[low : low + AT_ONCE]
            near = part @ middle.T
            near -= far
            most = near.max(axis=1)
            near -= most[:, None]
            own = np.float32(0.5) * (part**2).sum(axis=1)
            found[low : low + AT_ONCE] = np.log(np.exp(near, out=near).sum(axis=1)) + (most - own)
        return found


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Density:
    """A Gaussian kernel (Parzen 1962) on each healthy step."""
    return learned(episodes, options, seed, lambda value: Kernels(value, options["bandwidth"]))


def score(model: Density, seen: Seen) -> Float64:
    """float64 a step: minus its log density."""
    return scores(model, seen)


METHOD = method_of(Scorer("kde", "kernel density, learned from healthy steps", learn, score, GRID))
