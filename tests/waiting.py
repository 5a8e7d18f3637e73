"""Waiting in tests for what another process or thread does: until it is so, not for a time that should be enough."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

LONGEST_S = 200.0


def until(true: Callable[[], object], process: "subprocess.Popen[Any] | None" = None) -> None:
    """Return once ``true()``; fail after LONGEST_S, or as soon as ``process`` has ended without it."""
    late = time.monotonic() + LONGEST_S
    while not true():
        assert process is None or process.poll() is None or true(), "the process has ended"
        assert time.monotonic() < late, "it did not come"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    """Whether there is such a process, and it has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


GO = """
def wait_for(path):
    import os, time
    while not os.path.exists(path): time.sleep(0.01)
"""
"""For the programs that tests run: to go on once the test has made a file, however fast or slow either is."""
