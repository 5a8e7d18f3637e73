"""Workload-aware regression: what a step of this batch, these tokens and this mode takes, by gradient-boosted trees."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from teller_core.data.table import Float64
from teller_core.judge.robust import NORMAL_MAD
from teller_core.judge.step_numbers import NAMES, WORK
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.learners import boosted_trees
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.operator_times import LEAST_WIDTH, by_excess, ordered, totals
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.training import MOST_ROWS, fresh, some

COLUMNS = [NAMES.index(name) for name in WORK]
LOSSES = ("squared_error", "absolute_error")
GRID: Sequence[Options] = tuple({"leaves": n, "loss": at} for at in range(2) for n in (4, 8, 16))
"""Leaves of a tree, and which error is made small: its square, or its size."""


@dataclass(frozen=True)
class Regression:
    """``model`` predicts the log of a step's time over the capture's median step from ``columns`` of the features, those of which
    something is known; None where nothing was learned.
    """

    columns: Sequence[int]
    model: Any


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Regression:
    """From the healthy steps of the training side."""
    work: list[Float64] = []
    target: list[Float64] = []
    for episode, mine in zip(episodes, fresh(episodes), strict=True):
        log = _log(episode.seen)
        use = mine & (episode.labels.step == 0) & ~np.isnan(log)
        work.append(episode.seen.steps.value[use])
        target.append(log[use])
    known = np.column_stack(
        [np.concatenate([np.empty((0, len(NAMES))), *work]), np.concatenate([np.empty(0), *target])]
    )
    drawn = some(known, MOST_ROWS, seed)
    value, aimed = drawn[:, :-1], drawn[:, -1]
    columns = [at for at in COLUMNS if not np.isnan(value[:, at]).all()]
    if not columns:
        return Regression([], None)
    loss = LOSSES[int(options["loss"])]
    leaves = int(options["leaves"])
    return Regression(columns, boosted_trees(value[:, columns], aimed, leaves=leaves, rate=0.05, loss=loss, seed=seed))


def score(given: Regression, seen: Seen) -> Float64:
    """float64 a step: its time over the prediction, in robust standard deviations of the capture's own steps."""
    log = _log(seen)
    known = ~np.isnan(log)
    if given.model is None or not known.any():
        return np.full(len(log), np.nan)
    away = log - np.asarray(given.model.predict(seen.steps.value[:, list(given.columns)]), dtype=np.float64)
    away -= np.median(away[known])
    return away / max(float(np.median(np.abs(away[known]))) * NORMAL_MAD, LEAST_WIDTH)


def _log(seen: Seen) -> Float64:
    """float64 a step: the log of its time over the median of the capture's steps."""
    took = seen.steps.took
    known = took > 0
    log = np.log(np.where(known, took, 1).astype(np.float64))
    return np.where(known, log - (np.median(log[known]) if known.any() else 0.0), np.nan)


def _operators(model: Any, seen: Seen) -> list[list[str]]:
    found = totals(seen)
    return ordered(found, by_excess(found, seen.steps.phase), len(seen.case.begin))


METHOD = method_of(
    Scorer(
        "regression",
        "boosted trees on batch, tokens and mode; operators by excess",
        learn,
        score,
        GRID,
        operators=_operators,
    )
)
