"""What the names of files tell: ``KIND-PID.tsv``, ``KIND-PID-TIME.json`` of our recorder, ``nccl_trace_rank_N`` of torch's."""

import re
from pathlib import Path

_OF_PROCESS = re.compile(r"(?:host|nvtx|torch|fr)-(?P<pid>\d{1,9})[-.]", re.ASCII)
_OF_RANK = re.compile(r"(?:rank|_dump)[_-]?(?P<rank>\d{1,6})(?=[._-]|$)", re.ASCII | re.IGNORECASE)


def pid_of(path: Path) -> int | None:
    """The process that wrote ``path``, None where its name does not tell."""
    match = _OF_PROCESS.match(path.name)
    return int(match["pid"]) if match else None


def rank_of(path: Path) -> int | None:
    """The rank whose recorder wrote ``path`` (``_dump_3``, ``nccl_trace_rank_3``, ``x_rank_3.json``), None where not told."""
    match = _OF_RANK.search(path.name)
    return int(match["rank"]) if match else None
