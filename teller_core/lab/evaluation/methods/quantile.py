"""Quantiles: how rarely healthy steps of the training side are as far out as this one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from teller_core.data.table import Float64
from teller_core.judge.step_numbers import HOST, NAMES, STOOD, TIMES
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.training import healthy_steps

SETS: Sequence[Sequence[str]] = (TIMES[:1], TIMES, (*TIMES, *HOST, *STOOD))
GRID: Sequence[Options] = tuple({"columns": at, "summed": summed} for at in range(3) for summed in (0, 1))
"""Which columns are looked at, and whether their rarities add up or the largest counts."""


@dataclass(frozen=True)
class Healthy:
    """``columns`` int: of the features; ``known``: the sorted healthy values of each."""

    columns: Sequence[int]
    known: Sequence[Float64]
    summed: bool


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Healthy:
    """The distribution of each column over healthy steps."""
    columns = [NAMES.index(name) for name in SETS[int(options["columns"])]]
    value = healthy_steps(episodes, columns, seed)
    known = [np.sort(column[~np.isnan(column)]) for column in value.T]
    return Healthy(columns, known, bool(options["summed"]))


def score(model: Healthy, seen: Seen) -> Float64:
    """float64 a step: minus the log of the share of healthy values that are as large; NaN where none of its values is known."""
    value = seen.steps.value[:, list(model.columns)]
    rare = np.full(value.shape, np.nan)
    for at, known in enumerate(model.known):
        if len(known):
            above = len(known) - np.searchsorted(known, value[:, at], "left")
            rare[:, at] = np.where(np.isnan(value[:, at]), np.nan, -np.log((above + 1.0) / (len(known) + 1.0)))
    told = ~np.isnan(rare)
    filled = np.where(told, rare, 0.0)
    best = filled.sum(axis=1) if model.summed else filled.max(axis=1, initial=0.0)
    return np.where(told.any(axis=1), best, np.nan)


METHOD = method_of(Scorer("quantile", "how rare its times and counters are among healthy steps", learn, score, GRID))
