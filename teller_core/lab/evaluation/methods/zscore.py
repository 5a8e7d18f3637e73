"""Robust z-scores: by how many median absolute deviations a step, and each operator in it, lies above the capture's median."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from teller_core.data.table import Float64
from teller_core.judge.robust import NORMAL_MAD
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.operator_times import by_surprise, ordered, totals
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.step_features import StepFeatures

GRID: Sequence[Options] = (
    {"by_phase": 0, "gaps": 0, "least": 0.05},
    {"by_phase": 1, "gaps": 0, "least": 0.05},
    {"by_phase": 0, "gaps": 1, "least": 0.05},
    {"by_phase": 1, "gaps": 1, "least": 0.05},
    {"by_phase": 1, "gaps": 0, "least": 0.01},
    {"by_phase": 1, "gaps": 1, "least": 0.01},
)
"""Whether steps are compared within their phase, whether the silence before a step counts, and the least width in log time."""


def learn(episodes: Sequence[Episode], options: Options, seed: int) -> Options:
    """Nothing but the options: the capture itself is what is normal."""
    return options


def score(options: Options, seen: Seen) -> Float64:
    """float64 a step: the largest of its z-scores."""
    steps = seen.steps
    of = list(steps.phase) if options["by_phase"] else [""] * len(steps.phase)
    best = z_scores(_log_took(steps), of, options["least"])
    if options["gaps"]:
        best = np.fmax(best, z_scores(steps.column("times.before"), of, options["least"]))
    return best


def z_scores(value: Float64, of: Sequence[str], least: float) -> Float64:
    """float64: (value - median) / (1.4826 MAD) within each group of ``of``; NaN stays NaN."""
    group = np.array(of, dtype=object)
    out = np.full(len(value), np.nan)
    for name in set(of):
        mine = (group == name) & ~np.isnan(value)
        if mine.any():
            away = value[mine] - np.median(value[mine])
            out[mine] = away / max(float(np.median(np.abs(away))) * NORMAL_MAD, least)
    return out


def _log_took(steps: StepFeatures) -> Float64:
    known = steps.took > 0
    return np.where(known, np.log(np.where(known, steps.took, 1)), np.nan)


def _operators(model: Any, seen: Seen) -> list[list[str]]:
    found = totals(seen)
    return ordered(found, by_surprise(found, seen.steps.phase), len(seen.case.begin))


METHOD = method_of(
    Scorer(
        "zscore", "median and MAD of the capture's own steps and operators", learn, score, GRID, operators=_operators
    )
)
