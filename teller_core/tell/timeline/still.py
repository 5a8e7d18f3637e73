"""What stood still in a stretch of time: pauses of processes and of threads, a row for who and how."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Pauses
from teller_core.tell.layout import milliseconds, plain
from teller_core.tell.timeline.marks import Lane, Thing, lane

ROWS = 6
"""Rows at most, of those who stood still longest."""


class Paused(NamedTuple):
    """One pause: ``label`` says who and how, ``kind`` how."""

    label: str
    kind: str
    thing: Thing


def paused(pauses: Pauses, begin: int, end: int) -> Iterator[Paused]:
    """The pauses that overlap ``begin`` to ``end`` ns, cut there; their words say how long they were."""
    for i in np.flatnonzero((pauses.start < end) & (pauses.start + pauses.dur > begin)).tolist():
        low, high = max(int(pauses.start[i]), begin), min(int(pauses.start[i] + pauses.dur[i]), end)
        kind = plain(pauses.kind[i], 40).replace("_", " ")
        label = f"{plain(pauses.role[i], 40) or 'unknown'}: {kind}"
        yield Paused(
            label, pauses.kind[i], (low, high - low, "pause", f"{kind}, {milliseconds(int(pauses.dur[i]) / 1e6)}")
        )


def pause_lanes(some: Sequence[Paused]) -> tuple[list[Lane], int]:
    """A row for each who and how, the longest in all first, no more than ROWS; and how many pauses have none."""
    rows: dict[str, list[Thing]] = {}
    for one in some:
        rows.setdefault(one.label, []).append(one.thing)
    order = sorted(rows, key=lambda label: -sum(lasted for _, lasted, *_ in rows[label]))
    lanes = [lane("stood still", "host", label, rows[label]) for label in order[:ROWS]]
    return lanes, sum(len(rows[label]) for label in order[ROWS:])
