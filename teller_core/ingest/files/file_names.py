"""What the names of files tell: ``KIND-PID.tsv``, ``KIND-PID-TIME.json`` of our recorder, ``nccl_trace_rank_N`` of torch's.

Profiles are called by their rank (``worker3_step_12.1694128201557``, ``rank-34``, ``inference_rank_1``), by their place in the
engine (``1782799835.6-TP-0-DECODE``), or by where they were made (``HOST_PID.TIME.pt.trace.json``).
"""

import re
from dataclasses import replace
from pathlib import Path

from teller_core.data.trace import Origin

_OF_PROCESS = re.compile(r"(?:host|stats|nvtx|cupti|torch|fr)-(?P<pid>\d{1,9})[-.]", re.ASCII)
_OF_PROFILE = re.compile(r"(?:^|[^a-z])(?:rank|worker)[-_]?(?P<rank>\d{1,6})(?!\d)", re.ASCII | re.IGNORECASE)
_TENSOR = re.compile(r"[-_]tp[-_]?(?P<rank>\d{1,5})(?!\d)", re.ASCII | re.IGNORECASE)
_PIPELINE = re.compile(r"[-_]pp[-_]?(?P<stage>\d{1,5})(?!\d)", re.ASCII | re.IGNORECASE)
_OF_MACHINE = re.compile(r"(?P<host>[\w.-]{1,128})_(?P<pid>\d{1,9})\.\d{10,20}\.pt\.trace\.json", re.ASCII)
_OF_RANK = re.compile(r"(?:rank|_dump)[_-]?(?P<rank>\d{1,6})(?=[._-]|$)", re.ASCII | re.IGNORECASE)


def pid_of(path: Path) -> int | None:
    """The process that wrote ``path``, None where its name does not tell."""
    match = _OF_PROCESS.match(path.name)
    return int(match["pid"]) if match else None


def rank_of(path: Path) -> int | None:
    """The rank whose recorder wrote ``path`` (``_dump_3``, ``nccl_trace_rank_3``, ``x_rank_3.json``), None where not told."""
    match = _OF_RANK.search(path.name)
    return int(match["rank"]) if match else None


def named(origin: Origin, path: Path) -> Origin:
    """``origin`` of a profile, with the rank, host and pid that only the name of its file tells.

    A tensor-parallel index is the rank in the first stage of a pipeline; in others it is not, and then none is told.
    """
    machine = None
    profile = _OF_PROFILE.search(path.name)
    stage = _PIPELINE.search(path.name)
    if profile is None and (stage is None or int(stage["stage"]) == 0):
        profile = _TENSOR.search(path.name)
    if profile is None:
        machine = _OF_MACHINE.match(path.name)
    return replace(
        origin,
        rank=int(profile["rank"]) if origin.rank is None and profile else origin.rank,
        host=machine["host"] if not origin.host and machine else origin.host,
        pid=int(machine["pid"]) if origin.pid is None and machine else origin.pid,
    )
