"""Waiting in tests for what another process or thread does: until it is so, not for a time that should be enough."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

LONGEST_S = 100.0


def until(true: Callable[[], object], process: "subprocess.Popen[Any] | None" = None) -> None:
    """Return once ``true()``; fail after LONGEST_S, or as soon as ``process`` has ended without it."""
    late = time.monotonic() + LONGEST_S
    while not true():
        assert process is None or process.poll() is None, "the process has ended"
        assert time.monotonic() < late, "it did not come"
        time.sleep(0.02)
