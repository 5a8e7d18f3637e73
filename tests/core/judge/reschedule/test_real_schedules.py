"""Schedules of services that were really recorded: reproduced, or not claimed."""

from pathlib import Path

import numpy as np
import pytest

from teller_core.judge.reschedule.check import decided_alike
from teller_core.judge.reschedule.plan import plan
from tests.core.judge.captured import TRIMMED, WHOLE, rebuilt


def _there(folder: Path) -> Path:
    if not folder.exists():
        pytest.skip("../shared/captures is not there")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["base", "batched", "kv", "omp8"])
def test_a_real_scheduler_decides_as_its_batches_say(name: str) -> None:
    whole, _ = rebuilt(_there(WHOLE / "vllm_faults" / name))
    made = plan(whole)
    setting = made.settings[0]
    steps = np.arange(1, len(setting.ran.step))
    assert decided_alike(setting.ran, setting.came, setting.limits, steps).mean() >= 0.99
    assert made.checks[0].decisions >= 0.98
    if name == "batched":
        assert setting.limits.tokens == 256
        assert made.why[0] == "" and min(made.checks[0][:4]) == 1.0
    if name == "kv":
        size = setting.limits.blocks
        assert size is not None and abs(size * setting.limits.block - 1_280) <= 48


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vllm_shim", "tfserve_shim", "vllm_2node"])
def test_where_too_little_was_recorded_nothing_is_claimed(name: str) -> None:
    whole, _ = rebuilt(_there(WHOLE / name))
    made = plan(whole)
    assert made.settings == {} and all("recorded" in why for why in made.why.values())


@pytest.mark.parametrize("name", ["vllm_full", "vllm_faults", "vllm_2node", "tfserve_shim"])
def test_every_engine_of_the_trimmed_captures_has_a_check_or_a_reason(name: str) -> None:
    folders = [path for path in [TRIMMED / name, *sorted((TRIMMED / name).iterdir())] if (path / "cap").is_dir()]
    for folder in folders or [TRIMMED / name]:
        whole, _ = rebuilt(folder)
        made = plan(whole)
        for engine, why in made.why.items():
            assert why or min(made.checks[engine][:4]) >= 0.9
