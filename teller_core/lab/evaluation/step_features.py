"""The steps of a capture as numbers, for methods that learn (see :mod:`teller_core.judge.step_numbers`)."""

from collections.abc import Sequence
from dataclasses import dataclass

from teller_core.data.table import Float64, Int64, Mask
from teller_core.judge.prepare import Case
from teller_core.judge.step_numbers import NAMES, phases, step_numbers


@dataclass(frozen=True)
class StepFeatures:
    """``value`` float64 [steps, NAMES], NaN for what nobody recorded. ``took`` int64 ns, UNKNOWN; ``phase``: as ``Steps.phases``;
    ``profiled`` bool: operators were recorded of it.
    """

    value: Float64
    took: Int64
    phase: Sequence[str]
    profiled: Mask

    def column(self, name: str) -> Float64:
        """float64 a step."""
        return self.value[:, NAMES.index(name)]


def step_features(case: Case) -> StepFeatures:
    """What was recorded of every step. Nothing of what our own methods make of it."""
    return StepFeatures(step_numbers(case), case.took.copy(), phases(case), case.profiled)
