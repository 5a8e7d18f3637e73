"""The difference between ranks: who works longest while the others wait."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from teller_core.data.table import UNKNOWN, Float64
from teller_core.judge.step_numbers import FLOOR
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen

GRID: Sequence[Options] = ({"waits": 0}, {"waits": 1})
"""Whether recorded waits in collectives are taken off what a rank worked."""


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Options:
    """Nothing but the options."""
    return options


def worked(seen: Seen, waits: bool) -> Float64:
    """float64 [steps, ranks]: ns that each rank worked on each step, NaN where it did not."""
    capture = seen.capture
    table = np.full((len(seen.case.begin), len(capture.ranks)), np.nan)
    work, met = capture.work, capture.collectives
    table[work.step, work.rank] = work.stop - work.start
    if waits:
        known = np.flatnonzero((met.step >= 0) & (met.rank >= 0) & (met.wait != UNKNOWN))
        np.subtract.at(table, (met.step[known], met.rank[known]), met.wait[known])
    return np.maximum(table, 0.0)


def score(options: Options, seen: Seen) -> Float64:
    """float64 a step: the log of the longest over the shortest, over the capture's usual; NaN for a step of one rank."""
    log = np.log(worked(seen, bool(options["waits"])) + FLOOR)
    several = (~np.isnan(log)).sum(axis=1) > 1
    out = np.full(len(log), np.nan)
    if several.any():
        spread = np.nanmax(log[several], axis=1) - np.nanmin(log[several], axis=1)
        out[several] = spread - np.median(spread)
    return out


def _ranks(options: Any, seen: Seen) -> list[list[int]]:
    table = worked(seen, bool(options["waits"]))
    several = (~np.isnan(table)).sum(axis=1) > 1
    order = np.argsort(-np.nan_to_num(table, nan=-1.0), axis=1, kind="stable")
    return [
        [rank for rank in mine if not np.isnan(row[rank])] if many else []
        for mine, row, many in zip(order.tolist(), table, several.tolist(), strict=True)
    ]


METHOD = method_of(
    Scorer(
        "cross_rank", "how far apart the ranks of a step are, and who worked longest", learn, score, GRID, ranks=_ranks
    )
)
