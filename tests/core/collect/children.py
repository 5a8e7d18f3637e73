"""Children that have nothing to say, and those of them that left a file all the same."""

import json
from pathlib import Path

CHILDREN = """
import subprocess, sys, time
for _ in range(20):
    began = time.monotonic()
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child: pass
    assert child.returncode == 0
    print(child.pid, time.monotonic() - began, flush=True)
"""
"""Starts 20 children and prints the pid of each and how many seconds it lived at most."""
OF_ALL = {"process", "process_end", "shim_cost"}
LONG_S = 1.0
"""One that lives longer is in the bundle although it has nothing to say."""


def without_reason(cap: Path, printed: str) -> list[str]:
    """Files in ``cap``, of the children that ``printed`` names, that are there for no reason: the child did not live long, as it
    may on a slow machine, and said nothing, as that it was late.
    """
    lived = {int(pid): float(seconds) for pid, seconds in (line.split() for line in printed.splitlines())}
    assert len(lived) == 20
    found: list[str] = []
    for path in cap.glob("host-*"):
        seconds = lived.get(int(path.name.removeprefix("host-").partition(".")[0].partition("-")[0]))
        names = {json.loads(line)["name"] for line in path.read_text().splitlines()}
        if seconds is not None and seconds < LONG_S and names <= OF_ALL:
            found.append(path.name)
    return found
