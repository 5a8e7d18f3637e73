"""One role and rank for every process of a capture, from all its files."""

from collections.abc import Iterable
from typing import Any

from teller_core.data.records import Process, Recording

STRENGTH = {"engine": 4, "worker": 3, "frontend": 2, "client": 1, "unknown": 0}
"""Which role wins where files differ. A process that decides is an engine, whatever else it does."""

Known = dict[tuple[str, int], Process]


def roles(told: Iterable[Process]) -> Known:
    """The best that ``told`` says of each (host, pid). pid 0 stands for an unknown process, and gets no role."""
    known: Known = {}
    for process in told:
        if process.pid <= 0:
            continue
        before = known.setdefault((process.host, process.pid), process)
        better = max(before, process, key=lambda one: STRENGTH.get(one.role, 0))
        rank = before.rank if before.rank is not None else process.rank
        known[process.host, process.pid] = better._replace(rank=rank)
    return known


def with_roles(recording: Recording, told: Iterable[Process]) -> None:
    """Give the processes of all records in ``recording`` their role and rank."""
    known = roles(told)
    _assign(recording.decisions, known)
    _assign(recording.executions, known)
    _assign(recording.outcomes, known)
    _assign(recording.iterations, known)
    _assign(recording.requests, known)
    _assign(recording.pauses, known)
    _assign(recording.windows, known)
    _assign(recording.samples, known)
    recording.lines.rewrite(lambda process: known.get((process.host, process.pid), process))
    _assign(recording.collectives, known)
    _assign(recording.groups, known)
    _assign(recording.operators, known)


def _assign(records: list[Any], known: Known) -> None:
    """``records``: rows with a field ``process``, which may be None."""
    for i, record in enumerate(records):
        process = record.process
        better = None if process is None else known.get((process.host, process.pid))
        if better is not None and better != process:
            records[i] = record._replace(process=better)
