"""A strike of a life: what its fault cost, and what was predicted of that."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

What = Literal["requests", "steps", "profiled", "told"]


class Sums(NamedTuple):
    """ns, summed over ``size`` requests or steps: ``before``, what they took with the fault; ``truth``, by how much less in
    their healthy twins; ``apart``, by how much twins differ; and by how much less they were predicted to take: ``ours``;
    ``own``, less what they themselves lost; ``scaled``, their time shortened as what they consist of is.
    """

    size: int
    before: float
    truth: float
    apart: float
    ours: float
    own: float
    scaled: float


@dataclass(frozen=True)
class Pair:
    """One strike, with the fault and without it. ``noise`` ns: how far ``sums.truth`` may be off, by what twins differ by;
    ``silent``: why nothing is predicted, empty where something is.
    """

    life: str
    engine: str
    fault: str
    cause: str
    severity: str
    role: str
    what: What
    sums: Sums
    noise: float
    silent: str

    def error(self, way: Literal["ours", "own", "scaled"]) -> float:
        """By how much of the truth a prediction is off."""
        return abs(getattr(self.sums, way) / self.sums.truth - 1)


def summed(windows: Sequence[Sums]) -> tuple[Sums, float]:
    """All of a strike's windows, and their noise: each window's is a draw of its own. All 0 without any."""
    columns = np.array(list(windows), dtype=np.float64).reshape(-1, len(Sums._fields))
    size, *rest = columns.sum(axis=0).tolist()
    return Sums(round(size), *rest), float(np.sqrt((columns[:, Sums._fields.index("apart")] ** 2).sum()))
