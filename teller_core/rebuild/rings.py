"""What flight recorders kept, by group and rank: which collectives each rank called, and which it saw end.

A dump is a window: the recorder forgets its oldest entries, some dumps leave out what has ended, and not every rank has one. So
it is told from everything a rank's dumps say how far it had come, and nothing follows from an entry that is not there alone.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from teller_core.data.capture import Rank
from teller_core.data.records import CollectiveFact, GroupStatus, Process, Recording, known


class Group(NamedTuple):
    """A process group. ``members`` is empty where no file lists them."""

    name: str
    members: tuple[int, ...]


@dataclass
class Ring:
    """One group, by rank number. ``calls``: collectives by sequence number. ``called``, ``ended``: the highest number that the
    rank is known to have called, and to have seen end.
    """

    description: str = ""
    calls: dict[int, dict[int, CollectiveFact]] = field(default_factory=dict[int, dict[int, CollectiveFact]])
    called: dict[int, int] = field(default_factory=dict[int, int])
    ended: dict[int, int] = field(default_factory=dict[int, int])
    pairs: dict[int, list[CollectiveFact]] = field(default_factory=dict[int, list[CollectiveFact]])
    """Point-to-point calls by rank, in order of time."""

    def waits(self, rank: int, sequence: int) -> bool:
        """Whether ``rank`` called the collective and is not known to have seen it end."""
        fact = self.calls.get(rank, {}).get(sequence)
        return fact is not None and not fact.done and sequence > self.ended.get(rank, -1)


class Rings(NamedTuple):
    """All that was recorded. ``first``, ``last``: int Unix ns of the oldest call kept of each rank that has a dump, and of its
    last one; both are missing for a rank whose dump holds no call.
    """

    groups: Mapping[Group, Ring]
    dumped: frozenset[int]
    first: Mapping[int, int]
    last: Mapping[int, int]


def rings(recording: Recording, ranks: Sequence[Rank], problems: Counter[str]) -> Rings:
    """The rings of ``recording``. Problems: ``collectives_of_unknown_rank``, and ``ranks_told_twice``: two processes that
    say they are one rank, as those of two engines do, of which nothing can then be said.
    """
    number = _numbers(recording, ranks)
    twice = Counter(rank for rank in number.values() if rank is not None)
    taken = {rank for rank, times in twice.items() if times > 1}
    problems["ranks_told_twice"] += len(taken)
    if taken:
        return Rings({}, frozenset(), {}, {})
    names = _Names(recording)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for fact in recording.collectives:
        if fact.size:  # NCCL's own recorder notes only what has ended, and counts each kind of collective apart
            continue
        rank = number[_key(fact.process)]
        problems["collectives_of_unknown_rank"] += rank is None
        if rank is None:
            continue
        _add(names.ring(fact), rank, fact)
        if known(fact.time):
            first[rank] = min(first.get(rank, fact.time), fact.time)
            last[rank] = max(last.get(rank, fact.time), fact.time)
    _add_statuses(recording, names, number)
    dumped = frozenset(rank for rank in number.values() if rank is not None)
    return Rings(names.rings, dumped, first, last)


def _key(process: Process) -> tuple[str, int, int | None]:
    """A process whose pid is not known is told apart by its rank."""
    return process.host, process.pid, None if process.pid else process.rank


def _numbers(recording: Recording, ranks: Sequence[Rank]) -> dict[tuple[str, int, int | None], int | None]:
    """The rank of each process that has a flight recorder's record, None where nothing tells it."""
    of_place = {(rank.host, rank.pid): rank.rank for rank in ranks if rank.rank >= 0}
    processes = {fact.process for fact in recording.collectives if not fact.size}
    processes |= {status.process for status in recording.groups}
    return {
        _key(process): process.rank if process.rank is not None else of_place.get((process.host, process.pid))
        for process in processes
    }


class _Names:
    """The groups of a recording by name and members. Members are looked at once, however many rows share them."""

    def __init__(self, recording: Recording) -> None:
        lists: dict[tuple[str, int], Sequence[int]] = {}
        rows: Sequence[CollectiveFact | GroupStatus] = [*recording.collectives, *recording.groups]
        for row in rows:
            lists.setdefault((row.group, id(row.members)), row.members)
        told: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
        for (name, _), members in lists.items():
            if members:
                told[name].add(tuple(members))
        self.groups = {key: Group(key[0], _members(members, told[key[0]])) for key, members in lists.items()}
        self.rings: dict[Group, Ring] = {group: Ring() for group in self.groups.values()}
        self.of_key = {key: self.rings[group] for key, group in self.groups.items()}

    def ring(self, row: CollectiveFact | GroupStatus) -> Ring:
        return self.of_key[row.group, id(row.members)]


def _members(members: Sequence[int], told: set[tuple[int, ...]]) -> tuple[int, ...]:
    """Several groups may have one name: members tell them apart. A dump without members means the only one of the name."""
    return tuple(members) if members or len(told) != 1 else next(iter(told))


def _add(ring: Ring, rank: int, fact: CollectiveFact) -> None:
    ring.description = ring.description or fact.description
    if fact.point_to_point:
        ring.pairs.setdefault(rank, []).append(fact)
        return
    own = ring.calls.setdefault(rank, {})
    before = own.get(fact.sequence)
    if before is None or (fact.done and not before.done):  # the same call in a later dump
        own[fact.sequence] = fact
    ring.called[rank] = max(ring.called.get(rank, -1), fact.sequence)
    if fact.done:
        ring.ended[rank] = max(ring.ended.get(rank, -1), fact.sequence)


def _add_statuses(
    recording: Recording, names: _Names, number: Mapping[tuple[str, int, int | None], int | None]
) -> None:
    """Statuses count collectives and point-to-point calls alike: those of a group that has both say nothing of either."""
    for status in recording.groups:
        rank, ring = number[_key(status.process)], names.ring(status)
        if rank is None or ring.pairs:
            continue
        ring.description = ring.description or status.description
        if status.called is not None:
            ring.called[rank] = max(ring.called.get(rank, -1), status.called)
        if status.ended is not None:
            ring.ended[rank] = max(ring.ended.get(rank, -1), status.ended)
