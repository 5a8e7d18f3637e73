"""Meetings side by side: those of the same ranks as columns."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import Int64
from teller_core.rebuild.collective_calls import Call, Key


class Together(NamedTuple):
    """Collectives of the same ranks: ``rank`` positions; ``start``, ``dur`` int64 ns (collectives, ranks), by their clocks."""

    rank: tuple[int, ...]
    keys: Sequence[Key]
    synchronous: "np.ndarray[tuple[int], np.dtype[np.bool_]]"
    start: Int64
    dur: Int64


def together(met: Mapping[Key, Sequence[Call]]) -> list[Together]:
    """The meetings, by who met."""
    groups: defaultdict[tuple[int, ...], list[tuple[Key, list[Call]]]] = defaultdict(list)
    for key, calls in met.items():
        ordered = sorted(calls, key=lambda call: call.rank)
        groups[tuple(call.rank for call in ordered)].append((key, ordered))
    return [
        Together(
            rank,
            [key for key, _ in of],
            np.array([all(call.kind.synchronous for call in calls) for _, calls in of], dtype=np.bool_),
            np.array([[call.start for call in calls] for _, calls in of], dtype=np.int64),
            np.array([[call.dur for call in calls] for _, calls in of], dtype=np.int64),
        )
        for rank, of in groups.items()
    ]
