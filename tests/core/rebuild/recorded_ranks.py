"""What several ranks' flight recorders left, read as their files would be."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from teller_core.data.capture import Absences, Disagreements
from teller_core.data.records import Recording
from teller_core.ingest.found import Place
from teller_core.ingest.nccl.flight_recorder_entries import found_in
from teller_core.rebuild.absences import absences
from teller_core.rebuild.disagreements import disagreements, stalled
from teller_core.rebuild.rings import rings


def recorded(dumps: Mapping[int, Mapping[str, Any]]) -> Recording:
    """The recording of dumps by rank."""
    recording = Recording()
    for rank, document in dumps.items():
        found = found_in(document, Path(f"_dump_{rank}"), Place())
        assert not found.problems
        recording.collectives += found.collectives
        recording.groups += found.groups
    return recording


def judged(recording: Recording, problems: Counter[str] | None = None) -> tuple[Absences, Disagreements]:
    """Who did not come, and what does not fit."""
    told = rings(recording, [], Counter() if problems is None else problems)
    without_end = stalled(told)
    tables = absences(told, frozenset(without_end)), disagreements(told, without_end)
    for table in tables:
        table.check()
    return tables


def missing(table: Absences) -> list[tuple[int, str, int, str, bool]]:
    """(rank, group, sequence, who waits, certain) of each row, in order."""
    return [
        (int(table.rank[i]), table.group[i], int(table.sequence[i]), table.waiters[i], bool(table.certain[i]))
        for i in range(len(table.name))
    ]
