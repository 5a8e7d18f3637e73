"""Steps that the import shim marks reach CUPTI."""

import pytest

from tests.core.collect.native.test_cupti import Run, built, fake, run

pytest.importorskip("cupti", reason="cupti-python is not installed")
__all__ = ["built", "fake", "run"]
SHIM = """
sys.path.insert(0, os.path.join(os.environ["PYTHONPATH"], "teller_core/collect/shim"))
from teller_shim_steps import begin_step, end_step
"""


def test_a_step_of_the_shim_is_a_step_of_the_records(run: Run) -> None:
    done = run(
        SHIM
        + "open_now(); begin_step(2**40); print(fake.fake_step() == 2**40); end_step(); print(fake.fake_step() > 2**40)"
    )
    assert done.stdout.split() == ["True", "True"], done.stderr


def test_without_the_library_a_step_is_nothing(run: Run) -> None:
    done = run(
        'del os.environ["CUDA_INJECTION64_PATH"]' + SHIM + "begin_step(1); end_step(); print(fake.fake_step() > 1)"
    )
    assert done.stdout.split() == ["True"], done.stderr
