"""One role and rank for every process of a capture, from all its files."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from teller_core.data.records import Process, Recording


class _OfProcess(Protocol):
    @property
    def process(self) -> Process | None: ...

    def _replace(self, **kwargs: object) -> "_OfProcess": ...


T = TypeVar("T", bound=_OfProcess)
Key = tuple[str, int]


def roles(told: Iterable[Process]) -> dict[Key, Process]:
    """The best that ``told`` says of each (host, pid). A process that decides is an engine, whatever else it does.

    pid 0 stands for lines whose process is not known and gets no role.
    """
    strength = {"engine": 4, "worker": 3, "frontend": 2, "client": 1}
    known: dict[Key, Process] = {}
    for process in told:
        before = known.get((process.host, process.pid))
        if process.pid <= 0:
            continue
        if before is None:
            known[process.host, process.pid] = process
            continue
        better = process if strength.get(process.role, 0) > strength.get(before.role, 0) else before
        rank = before.rank if before.rank is not None else process.rank
        known[process.host, process.pid] = better._replace(rank=rank)
    return known


def with_roles(recording: Recording, told: Iterable[Process]) -> None:
    """Give the processes of all records in ``recording`` their role and rank."""
    known = roles(told)
    for records in (
        recording.decisions,
        recording.executions,
        recording.iterations,
        recording.requests,
        recording.pauses,
        recording.samples,
        recording.lines,
        recording.collectives,
    ):
        _assign(records, known)


def _assign(records: list[T], known: dict[Key, Process]) -> None:
    for i, record in enumerate(records):
        process = record.process
        if process is not None and (better := known.get((process.host, process.pid))) is not None and better != process:
            records[i] = record._replace(process=better)  # pyright: ignore[reportArgumentType]
