"""Who did not come: ranks missing from collectives in which others wait.

Not the state of an entry tells it but who has one: entries of ranks that hang stay ``scheduled`` like those of the ranks that
wait for them. A rank is missing where another waits in a collective that it has not called, and nobody is known to have left
that collective. Of each rank and group the first such collective counts: what would have come after it follows from it.
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Absences
from teller_core.data.records import CollectiveFact, known
from teller_core.data.spelled import spelled
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.collective_kinds import kind_of
from teller_core.rebuild.rings import Group, Ring, Rings

PAIR = re.compile(r"\b(?P<kind>send|recv) (?P<own>\d{1,6})(?:->|<-)(?P<peer>\d{1,6})\b", re.ASCII)
"""The producer's word for a point-to-point call names both ranks by their places in the group."""
ASTRAY = 16
"""Where others have left this many collectives more than a rank has called, its dump is older than theirs and tells nothing:
those that nobody waits in, as broadcasts seen from their root, are fewer before the next one that all must come to."""
MOST_SUSPECTS = 64
"""More ranks than this without a dump are not called missing: it says nothing of any one of them."""


class _Absence(NamedTuple):
    group: Group
    description: str
    fact: CollectiveFact
    rank: int
    since: int
    waiters: frozenset[int]
    certain: bool


def absences(rings: Rings, stalled: frozenset[int]) -> Absences:
    """Who did not come, by the time at which the first other rank called. ``stalled``: ranks that stopped recording how their
    collectives end, so that nothing follows from those of theirs that seem to wait.
    """
    old = _astray(rings)
    rows: list[_Absence] = []
    for group, ring in rings.groups.items():
        suspects = _suspects(group, rings)
        rows += _of_group(group, ring, rings, suspects)
        rows += [
            row for row in _of_pairs(group, ring, rings, stalled) if row.rank in rings.dumped or row.rank in suspects
        ]
    rows = [row._replace(certain=row.certain and row.rank not in old) for row in rows]
    return _table(sorted(rows, key=lambda row: (not known(row.since), row.since, row.group, row.rank)), rings)


def _suspects(group: Group, rings: Rings) -> frozenset[int]:
    """Members without a dump, where most have one: who died writes none, but who did not collect them has none either."""
    without = frozenset(group.members) - rings.dumped
    return without if len(without) <= MOST_SUSPECTS and 2 * len(without) < len(group.members) else frozenset()


def _astray(rings: Rings) -> frozenset[int]:
    """Ranks whose dump was written long before those of others."""
    astray: set[int] = set()
    for ring in rings.groups.values():
        furthest = max(ring.ended.values(), default=-1)
        astray |= {rank for rank, called in ring.called.items() if furthest > called + ASTRAY}
    return frozenset(astray)


def _of_group(group: Group, ring: Ring, rings: Rings, suspects: frozenset[int]) -> Iterator[_Absence]:
    """The first collective of the group that each rank is missing from."""
    waits = _waits(ring)
    left = sorted(sequence for sequence in waits if not _has_ended(ring, sequence, waits[sequence]))
    everyone = set(group.members) & rings.dumped or set(ring.called)
    for rank in sorted(everyone | suspects):
        behind = bisect_right(left, ring.called.get(rank, -1))
        if behind == len(left):
            continue
        sequence = left[behind]
        if rank in suspects and any(ring.called.get(other, -1) < sequence for other in everyone):
            continue  # those that are known to be missing explain it
        fact = min((ring.calls[waiter][sequence] for waiter in waits[sequence]), key=_when)
        since = min(_when(calls[sequence]) for calls in ring.calls.values() if sequence in calls)
        # Without an entry or a status of its own in the group, a rank that kept older calls than this has not made it.
        remembers = rank in ring.called or rings.first.get(rank, since) < since
        certain = rank in rings.dumped and remembers
        yield _Absence(group, ring.description, fact, rank, since, waits[sequence], certain)


def _waits(ring: Ring) -> dict[int, frozenset[int]]:
    """The ranks that wait in each collective that anybody waits in."""
    waits: defaultdict[int, set[int]] = defaultdict(set)
    for rank, calls in ring.calls.items():
        for sequence in calls:
            if ring.waits(rank, sequence):
                waits[sequence].add(rank)
    return {sequence: frozenset(ranks) for sequence, ranks in waits.items()}


def _has_ended(ring: Ring, sequence: int, waiters: frozenset[int]) -> bool:
    """Whether anybody left the collective, of those that nobody leaves before all have come: a broadcast's root may, say."""
    kind = kind_of(ring.calls[min(waiters)][sequence].name)
    synchronous = kind is not None and kind.synchronous
    return synchronous and max(ring.ended.values(), default=-1) >= sequence


def _when(fact: CollectiveFact) -> int:
    return fact.time


class _Pairing(NamedTuple):
    """Point-to-point calls from one rank to another that wait on either side, by time."""

    sends: list[CollectiveFact]
    receives: list[CollectiveFact]


def _of_pairs(group: Group, ring: Ring, rings: Rings, stalled: frozenset[int]) -> Iterator[_Absence]:
    """Ranks from which others wait to receive, or to which they wait to send, more than they have called for."""
    pairings: defaultdict[tuple[int, int], _Pairing] = defaultdict(lambda: _Pairing([], []))
    for rank, facts in ring.pairs.items():
        for fact in sorted(facts, key=_when):
            match = PAIR.search(fact.name)
            if fact.done or match is None:
                continue
            peer = _place(group, int(match["peer"]))
            if match["kind"] == "send":
                pairings[rank, peer].sends.append(fact)
            else:
                pairings[peer, rank].receives.append(fact)
    for (sender, receiver), (sends, receives) in pairings.items():
        waiter, missing, longer, shorter = (
            (receiver, sender, receives, sends) if len(receives) > len(sends) else (sender, receiver, sends, receives)
        )
        if len(longer) == len(shorter) or waiter in stalled or waiter == missing:
            continue
        fact = longer[len(shorter)]
        remembers = missing in rings.dumped and rings.first.get(missing, fact.time) < fact.time
        waiters = frozenset({waiter})
        yield _Absence(group, ring.description or fact.description, fact, missing, fact.time, waiters, remembers)


def _place(group: Group, position: int) -> int:
    return group.members[position] if position < len(group.members) else position


def _table(rows: Sequence[_Absence], rings: Rings) -> Absences:
    return Absences(
        group=[row.group.name for row in rows],
        description=[row.description for row in rows],
        sequence=np.array([row.fact.sequence for row in rows], dtype=np.int64),
        name=[row.fact.name for row in rows],
        elements=np.array([-1 if row.fact.elements is None else row.fact.elements for row in rows], dtype=np.int64),
        dtype=[row.fact.dtype for row in rows],
        rank=np.array([row.rank for row in rows], dtype=np.int32),
        since=np.array([row.since for row in rows], dtype=np.int64),
        waiting=np.array([len(row.waiters) for row in rows], dtype=np.int32),
        waiters=[spelled(row.waiters) for row in rows],
        last_seen=_last_seen(rows, rings.last),
        point_to_point=np.array([row.fact.point_to_point for row in rows], dtype=np.uint8),
        certain=np.array([row.certain for row in rows], dtype=np.uint8),
    )


def _last_seen(rows: Sequence[_Absence], last: Mapping[int, int]) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array([last.get(row.rank, UNKNOWN) for row in rows], dtype=np.int64)
