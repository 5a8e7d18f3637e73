"""What ranks recorded of their collectives that does not fit together: other calls under one number, and ends that never came."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Disagreements
from teller_core.data.records import CollectiveFact
from teller_core.rebuild.rings import Group, Ring, Rings

BACKEND = re.compile(r"^\w+:_?")
EVEN = re.compile(
    r"^(?:all_?reduce|broadcast|reduce|all_?gather_(?:base|into_tensor)|reduce_?scatter_(?:base|tensor)|barrier)"
)
"""Collectives to which all ranks give as much. Others may give what they have, or give only at one rank."""
TYPED = re.compile(r"^all_?to_?all")
"""Collectives in which only the type must be the same."""
LEAST_LAG = 2
"""Ends are recorded by a thread that looks now and then: one more or less is chance."""


class _Call(NamedTuple):
    """What ranks must agree on: the operation; its elements (-1) and type (empty) where all must give the same."""

    name: str
    elements: int
    dtype: str


class _Row(NamedTuple):
    kind: str
    group: Group
    description: str
    rank: int
    fact: CollectiveFact
    other: CollectiveFact | None
    others: int
    until: int


def stalled(rings: Rings) -> Mapping[int, tuple[Group, int]]:
    """Ranks that recorded no end of collectives that they called and others saw end: of each, the group with most of them, and up
    to which number others saw its collectives end. Such a rank is the last in all its groups, alone or with others.
    """
    lags: dict[int, tuple[int, Group, int]] = {}
    ahead: set[int] = set()
    for group, ring in rings.groups.items():
        ends = ring.ended
        if len(ends) < 2:
            continue
        last, first = max(ends.values()), min(ends.values())
        for rank, ended in ends.items():
            if ended > first or last > ring.called.get(rank, -1):
                # It saw more end than another did, or its dump is older than what others saw end.
                ahead.add(rank)
            elif last - ended > lags.get(rank, (0, group, 0))[0]:
                lags[rank] = (last - ended, group, last)
    return {
        rank: (group, last)
        for rank, (lag, group, last) in sorted(lags.items())
        if lag >= LEAST_LAG and rank not in ahead
    }


def disagreements(rings: Rings, without_end: Mapping[int, tuple[Group, int]]) -> Disagreements:
    """Calls that do not fit, the first of each group, and ``without_end``, the ranks that :func:`stalled` names."""
    rows = [row for group, ring in rings.groups.items() for row in _other_calls(group, ring)]
    for rank, (group, until) in without_end.items():
        ring = rings.groups[group]
        own = ring.calls.get(rank, {})
        waiting = [sequence for sequence in own if ring.ended[rank] < sequence <= until]
        if waiting:
            others = sum(ended == until for ended in ring.ended.values())
            rows.append(_Row("not_ended", group, ring.description, rank, own[min(waiting)], None, others, until))
    return _table(rows)


def _other_calls(group: Group, ring: Ring) -> Iterator[_Row]:
    """Ranks that called something else than most, at the first number of the group at which any did."""
    for sequence in sorted({sequence for calls in ring.calls.values() for sequence in calls}):
        facts = {rank: calls[sequence] for rank, calls in sorted(ring.calls.items()) if sequence in calls}
        said = {rank: _call(fact) for rank, fact in facts.items()}
        if len(set(said.values())) < 2:
            continue
        usual, others = Counter(said.values()).most_common(1)[0]
        other = next(facts[rank] for rank, call in said.items() if call == usual)
        for rank, call in said.items():
            if call != usual:
                yield _Row("other_call", group, ring.description, rank, facts[rank], other, others, -1)
        return


def _call(fact: CollectiveFact) -> _Call:
    name = BACKEND.sub("", fact.name.lower())
    even = EVEN.match(name) is not None
    elements = fact.elements if even and fact.elements is not None else -1
    return _Call(name, elements, fact.dtype if even or TYPED.match(name) else "")


def _elements(fact: CollectiveFact | None) -> int:
    return -1 if fact is None or fact.elements is None else fact.elements


def _table(rows: Sequence[_Row]) -> Disagreements:
    facts, others = [row.fact for row in rows], [row.other for row in rows]
    return Disagreements(
        kind=[row.kind for row in rows],
        group=[row.group.name for row in rows],
        description=[row.description for row in rows],
        sequence=np.array([fact.sequence for fact in facts], dtype=np.int64),
        rank=np.array([row.rank for row in rows], dtype=np.int32),
        name=[fact.name for fact in facts],
        elements=np.array([_elements(fact) for fact in facts], dtype=np.int64),
        dtype=[fact.dtype for fact in facts],
        time=np.array([fact.time for fact in facts], dtype=np.int64),
        other_name=[other.name if other else "" for other in others],
        other_elements=np.array([_elements(other) for other in others], dtype=np.int64),
        other_dtype=[other.dtype if other else "" for other in others],
        others=np.array([row.others for row in rows], dtype=np.int32),
        until=np.array([row.until for row in rows], dtype=np.int64),
        caller=[fact.caller for fact in facts],
    )
