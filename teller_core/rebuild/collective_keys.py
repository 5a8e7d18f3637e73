"""Which calls of the ranks were one collective.

By the number that PyTorch counts for the group, by a flight recorder's, by order within a step, or by order over the window that
was recorded of all. Order tells only where every rank made the same calls (kind, size, type) and where the times allow that they
met: a call left out, or a gap in a recording, would join all that follow wrongly. Calls that may not have met stay single.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Rank
from teller_core.data.records import CollectiveFact
from teller_core.data.table import UNKNOWN, Int64
from teller_core.rebuild.collective_calls import Call, Key
from teller_core.rebuild.collective_kinds import kind_of
from teller_core.rebuild.collective_roots import UNSAID, ends_of

CALLED_BEFORE_NS = 5_000_000
"""A flight recorder notes a call this shortly before the host hands it over, or the two are not the same."""
SIZED = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "send_recv"})
"""Kinds in which all ranks give, or get, the same number of elements. Those that exchange tokens give what they have."""
FARTHEST = 64
"""Calls that one recording may have made before the other began."""
FEWEST = 3
"""Calls that must agree before the order joins ranks whose clocks are not known to be one."""


def keyed(
    calls: Sequence[Call],
    facts: Mapping[int, Sequence[CollectiveFact]],
    ranks: Sequence[Rank],
    apart: Int64,
    problems: Counter[str],
) -> list[Call]:
    """``calls`` (each rank's by time) with the keys of those that can be told to have met.

    ``facts``: a recorder's notes by rank. ``apart`` int64 (ranks, ranks): how much two clocks may differ, UNKNOWN for unbounded.
    Problems: ``steps_with_uneven_collectives``, ``collectives_that_cannot_have_met``, ``collectives_in_doubtful_order``.
    """
    calls = _by_number(calls)
    of = _by_rank(calls)
    calls = [call for i in range(len(ranks)) for call in _by_recorder(of[i], facts.get(i, ()))]
    calls = _by_step(calls, ranks, problems)
    calls = _by_order(calls, ranks, apart, problems)
    return _possible(calls, apart, problems)


def meetings(calls: Iterable[Call]) -> dict[Key, list[Call]]:
    """Calls that met, by key: those of at least two ranks, one call each, and no more of them than must meet."""
    met: defaultdict[Key, list[Call]] = defaultdict(list)
    for call in calls:
        if call.key is not None:
            met[call.key].append(call)
    return {
        key: of
        for key, of in met.items()
        if len({call.rank for call in of}) == len(of) > 1 and (len(of) <= key.size or not key.size)
    }


def _by_rank(calls: Sequence[Call]) -> defaultdict[int, list[Call]]:
    of: defaultdict[int, list[Call]] = defaultdict(list)
    for call in calls:
        of[call.rank].append(call)
    return of


def _by_number(calls: Sequence[Call]) -> list[Call]:
    """Keys by the number that the arguments name. Kernels of one call are told apart by their order."""
    seen: Counter[tuple[int, str, int, str]] = Counter()
    found: list[Call] = []
    for call in calls:
        said = call.said
        if call.key is None and said.group and said.sequence >= 0 and call.kind.definite:
            where = (call.rank, said.group, said.sequence, call.kind.name)
            key = Key(f"{said.group} {call.kind.name}", said.sequence, seen[where], said.size, "sequence")
            seen[where] += 1
            found.append(call._replace(key=key))
        else:
            found.append(call)
    return found


def _by_recorder(calls: Sequence[Call], facts: Sequence[CollectiveFact]) -> list[Call]:
    """Each call of one rank with the number and the root in the note made when it was called, where one was shortly before it."""
    if not facts:
        return list(calls)
    times = np.array([fact.time for fact in facts], dtype=np.int64)
    found: list[Call] = []
    used = -1
    for call in sorted(calls, key=lambda call: (call.called, call.start)):
        k = int(np.searchsorted(times, call.called, side="right")) - 1
        near = k > used and call.called - int(times[k]) < CALLED_BEFORE_NS and call.key is None
        used = max(used, k)
        fact = facts[k] if near and _one_kind(call, facts[k]) else None
        size = len(fact.members) or fact.size if fact else 0
        key = Key(_label_of(fact), fact.sequence, 0, size, "recorder") if fact else call.key
        said = call.said
        if fact is not None and said.ends == UNSAID:
            said = said._replace(ends=ends_of(call.kind.name, fact.root))
        found.append(call._replace(key=key, said=said))
    return sorted(found, key=lambda call: (call.start, call.row))


def _label_of(fact: CollectiveFact) -> str:
    """That of the calls which its recorder timed, where it did: the same collective may be in the trace of one rank alone."""
    kind = kind_of(fact.name) if fact.timed else None
    return f"group {fact.group} {kind.name}" if kind else f"group {fact.group}"


def _one_kind(call: Call, fact: CollectiveFact) -> bool:
    kind = kind_of(fact.name)
    return kind is None or not (kind.definite and call.kind.definite) or kind.name == call.kind.name


class _Label(NamedTuple):
    kind: str
    elements: int
    dtype: str


def _label(call: Call) -> _Label:
    elements = call.said.elements if call.kind.name in SIZED else -1
    return _Label(call.kind.name, elements, call.said.dtype)


def _agree(one: _Label, other: _Label) -> bool:
    """What both know is equal."""
    return (
        one.kind == other.kind
        and (one.elements == other.elements or min(one.elements, other.elements) < 0)
        and (one.dtype == other.dtype or not (one.dtype and other.dtype))
    )


def _channel(call: Call) -> str:
    """Calls that a rank makes in one order: those of a group, or, where it is not told, those of a kind; of sends and recvs those
    from one rank to another.
    """
    if call.paired:
        return f"{call.said.group or call.kind.name} {call.said.ends.source} to {call.said.ends.target}"
    return call.said.group or call.kind.name


def _size(call: Call, rank: Rank) -> int:
    """How many ranks must meet, 0 not known."""
    return 2 if call.paired else call.said.size or world(rank)


def _by_step(calls: Sequence[Call], ranks: Sequence[Rank], problems: Counter[str]) -> list[Call]:
    """Keys by order within a step, where every rank made the same calls in it."""
    made: defaultdict[tuple[int, str], defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for k, call in enumerate(calls):
        if call.key is None and call.step >= 0 and (call.kind.definite or call.paired):
            made[call.step, _channel(call)][call.rank].append(k)
    found = list(calls)
    uneven: set[int] = set()
    for (step, channel), of in made.items():
        first, *others = of.values()
        if any(not _same([calls[k] for k in first], [calls[k] for k in other]) for other in others):
            uneven.add(step)
            continue
        for own in of.values():
            for order, k in enumerate(own):
                size = _size(calls[k], ranks[calls[k].rank])
                found[k] = calls[k]._replace(key=Key(f"{channel}", step, order, size, "step"))
    problems["steps_with_uneven_collectives"] += len(uneven)
    return found


def _same(one: Sequence[Call], other: Sequence[Call]) -> bool:
    return len(one) == len(other) and all(_agree(_label(a), _label(b)) for a, b in zip(one, other, strict=True))


def world(rank: Rank) -> int:
    """How many ranks meet: the world, where the trace names it and no group of another size that the rank is in."""
    if rank.tree is None:
        return 0
    origin = rank.tree.trace.origin
    sizes = {len(members) for _, members in origin.groups if rank.rank in members and len(members) > 1}
    return sizes.pop() if len(sizes) == 1 else (origin.world or 0) if not sizes else 0


class _Line(NamedTuple):
    """The calls of one rank in one channel, by time: their places in the list of all calls, and columns of them."""

    rank: int
    places: list[int]
    label: Int64
    start: Int64
    end: Int64
    synchronous: bool


def _by_order(calls: Sequence[Call], ranks: Sequence[Rank], apart: Int64, problems: Counter[str]) -> list[Call]:
    """Keys by order over the window that was recorded of all ranks, for calls outside any step."""
    made: defaultdict[str, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for k, call in enumerate(calls):
        if call.key is None and call.step < 0 and (call.kind.definite or call.paired):
            made[_channel(call)][call.rank].append(k)
    found = list(calls)
    for channel, of in made.items():
        lines = sorted(_lines(calls, of), key=lambda line: -len(line.places))
        for number, joined in enumerate(_joined(lines, apart, problems)):
            for line, shift in joined:
                size = _size(calls[line.places[0]], ranks[line.rank])
                for order, k in enumerate(line.places, shift):
                    found[k] = calls[k]._replace(key=Key(f"{channel} by order {number}", 0, order, size, "order"))
    return found


def _lines(calls: Sequence[Call], of: Mapping[int, Sequence[int]]) -> list[_Line]:
    codes: dict[_Label, int] = {}
    lines: list[_Line] = []
    for rank, places in of.items():
        own = [calls[k] for k in places]
        label = np.array([codes.setdefault(_label(call), len(codes)) for call in own], dtype=np.int64)
        start = np.array([call.start for call in own], dtype=np.int64)
        end = start + np.array([call.dur for call in own], dtype=np.int64)
        lines.append(_Line(rank, list(places), label, start, end, all(call.kind.synchronous for call in own)))
    return lines


def _joined(lines: Sequence[_Line], apart: Int64, problems: Counter[str]) -> list[list[tuple[_Line, int]]]:
    """Lines that were joined, each with the place of its first call in the first line."""
    joined: list[list[tuple[_Line, int]]] = []
    for line in lines:
        fits = [
            (at, shift)
            for at, of in enumerate(joined)
            for shift in _shifts(of[0][0], line, int(apart[of[0][0].rank, line.rank]))
        ]
        if len(fits) == 1:
            joined[fits[0][0]].append((line, fits[0][1]))
        elif fits:
            problems["collectives_in_doubtful_order"] += len(line.places)
        else:
            joined.append([(line, 0)])
    return [of for of in joined if len(of) > 1]


def _shifts(first: _Line, other: _Line, apart: int) -> list[int]:
    """Places in ``first`` at which ``other`` may begin: where they overlap, the calls are the same and could all have met."""
    n, m = len(first.places), len(other.places)
    fewest = 1 if apart != UNKNOWN else FEWEST
    fits: list[int] = []
    for shift in range(-min(m - 1, FARTHEST), min(n - 1, FARTHEST) + 1):
        low, high = max(shift, 0), min(n, shift + m)
        own, their = slice(low, high), slice(low - shift, high - shift)
        if (
            high - low < min(fewest, n, m)
            or high - low < fewest
            or not np.array_equal(first.label[own], other.label[their])
        ):
            continue
        if _could_meet(first, other, own, their, apart):
            fits.append(shift)
    return fits


def _could_meet(first: _Line, other: _Line, own: slice, their: slice, apart: int) -> bool:
    """Whether one difference of the clocks lets every two calls overlap, as synchronous ones must."""
    if not (first.synchronous and other.synchronous):
        return apart != UNKNOWN
    low = int((first.start[own] - other.end[their]).max())
    high = int((first.end[own] - other.start[their]).min())
    bound = 1 << 62 if apart == UNKNOWN else apart
    return low <= high and low <= bound and high >= -bound


def _possible(calls: Sequence[Call], apart: Int64, problems: Counter[str]) -> list[Call]:
    """``calls`` without the keys by order in a step in which, by the clocks, two that should have met did not."""
    wrong = {key[:2] for key, of in meetings(calls).items() if key.how == "step" and not _met(of, apart)}
    problems["collectives_that_cannot_have_met"] += sum(
        call.key is not None and call.key[:2] in wrong for call in calls
    )
    return [
        call._replace(key=None) if call.key is not None and call.key.how == "step" and call.key[:2] in wrong else call
        for call in calls
    ]


def _met(of: Sequence[Call], apart: Int64) -> bool:
    """Whether the last to begin began before the first ended, as far as the clocks tell."""
    if not all(call.kind.synchronous for call in of):
        return True
    late, early = max(of, key=lambda call: call.start), min(of, key=lambda call: call.start + call.dur)
    bound = int(apart[late.rank, early.rank])
    return bound == UNKNOWN or late.start - early.start - early.dur <= bound
