"""Requests whose steps were slow as profiled ones were: by what calm steps take, for what is expected was learned from all."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from teller_core.judge import rules_anatomy
from teller_core.judge.anatomy import Way
from tests.core.judge.service import MS


@pytest.mark.parametrize(("calm", "told"), [(0.0, False), (float(np.log(0.6)), True), (float(np.log(0.1)), False)])
def test_a_step_is_as_slow_as_profiled_ones_by_what_calm_steps_take_and_not_by_what_was_learned_from_slow_ones(
    calm: float, told: bool
) -> None:
    """Profiled steps took 5.3 times as long as calm ones; a step of the request 2.2 times what is expected of it."""
    one = {name: np.array([value], np.int64) for name, value in {"step": 0, "rest": 12 * MS, "base": 10 * MS}.items()}
    held = SimpleNamespace(
        **one, took=one["rest"] + one["base"], asleep=one["step"], gap=one["step"] > 0, own=one["step"] == 0
    )
    view: Any = SimpleNamespace(holds=held, case=None, life=SimpleNamespace(step=one["step"]))
    way = Way("operator", one["step"], "aten::mm", 14 * MS, 2 * MS, 5.3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules_anatomy, "slow_way", lambda _: way)
        patch.setattr(rules_anatomy, "calm", lambda _: calm)
        assert (rules_anatomy.slow_operator(view) is not None) == told
