"""What the names of the files that our recorder writes tell: ``KIND-PID.tsv``, ``KIND-PID-TIME.json``."""

import re
from pathlib import Path

_OF_PROCESS = re.compile(r"(?:host|nvtx|torch|fr)-(?P<pid>\d{1,9})[-.]", re.ASCII)


def pid_of(path: Path) -> int | None:
    """The process that wrote ``path``, None where its name does not tell."""
    match = _OF_PROCESS.match(path.name)
    return int(match["pid"]) if match else None
