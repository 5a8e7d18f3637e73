"""A libcupti of our own, built for tests, the library, and programs that run under it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from teller_core.collect.native.build import find
from teller_core.collect.native.variables import injection
from tests.core.collect.native.fake_runs import BEGIN, HERE, Run


@pytest.fixture(scope="session")
def fake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake libcupti, built."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler here")
    path = tmp_path_factory.mktemp("fake") / "libcupti.so.13"
    source = str(HERE / "fake_cupti.c")
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-Wl,-soname,libcupti.so.13", "-o", str(path), source, "-lpthread"], check=True
    )
    return path


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder where the library was built."""
    folder = tmp_path_factory.mktemp("built")
    assert find(folder).reason == ""
    return folder


@pytest.fixture
def run(fake: Path, built: Path, tmp_path: Path) -> Run:
    """Runs a program under the library; ``tmp_path / "cap"`` is where it records."""

    def runs(program: str, begin: bool = True, **variables: str) -> "subprocess.CompletedProcess[str]":
        cap = tmp_path / "cap"
        cap.mkdir(exist_ok=True)
        environment = {name: value for name, value in os.environ.items() if "INJECTION" not in name}
        environment |= injection(cap, {}, built).variables
        environment |= {"TELLER_CAPTURE_DIR": str(cap), "FAKE": str(fake), "TELLER_INJECT_LOOK_MS": "2"}
        environment |= {"PYTHONPATH": str(HERE.parents[3]), **variables}
        text = BEGIN + ("ours.InitializeInjection()\n" if begin else "") + program
        return subprocess.run(
            [sys.executable, "-c", text], env=environment, capture_output=True, text=True, timeout=100, check=False
        )

    return runs
