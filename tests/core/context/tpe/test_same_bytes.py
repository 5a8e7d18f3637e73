"""The same trees give the same bytes in every process, compiled or not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


def digest(**environment: str) -> str:
    """What a new process makes of the trees of :mod:`digest`; a warning ends it."""
    command = [sys.executable, "-W", "error", "-m", "tests.core.context.tpe.digest"]
    run = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, check=True, stdout=subprocess.PIPE, text=True
    )
    return run.stdout


@pytest.mark.slow
def test_vocabularies_and_tokens_are_the_same_across_hash_seeds_and_without_compilation() -> None:
    first = digest(PYTHONHASHSEED="1")
    assert len(first.strip()) == 64
    assert digest(PYTHONHASHSEED="2") == first
    assert digest(PYTHONHASHSEED="3", NUMBA_DISABLE_JIT="1") == first
