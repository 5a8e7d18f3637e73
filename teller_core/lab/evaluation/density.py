"""What isolation forest and kernel density share: features, scaled on healthy training steps, and a density of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from teller_core.data.table import Float64
from teller_core.judge.step_numbers import NAMES, TIMES
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.learners import log_likelihood
from teller_core.lab.evaluation.method import Options
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.training import Scale, healthy_steps, scale_of


@dataclass(frozen=True)
class Density:
    """``columns`` of the features, how they are scaled, and a model with ``score_samples``, None without steps."""

    columns: Sequence[int]
    scale: Scale
    model: Any


def columns_of(options: Options) -> list[int]:
    """All features where ``options["all"]``, else a step's times."""
    return [at for at, name in enumerate(NAMES) if options["all"] or name in TIMES]


def learned(episodes: Sequence[Episode], options: Options, seed: int, fit: Callable[[Float64], Any]) -> Density:
    """``fit`` on healthy steps."""
    columns = columns_of(options)
    value = healthy_steps(episodes, columns, seed)
    scale = scale_of(value)
    return Density(columns, scale, fit(scale(value)) if len(value) else None)


def scores(given: Density, seen: Seen) -> Float64:
    """float64 a step: minus the log density; NaN where nothing of a step is known."""
    value = seen.steps.value[:, list(given.columns)]
    out = np.full(len(value), np.nan)
    told = ~np.isnan(value).all(axis=1)
    if given.model is not None and told.any():
        out[told] = -log_likelihood(given.model, given.scale(value[told]))
    return out
