"""Collectives across ranks: which ones met, how well that bounds the ranks' clocks, and who was waited for.

Ranks call the collectives of a group in one order, so they are joined by a flight recorder's sequence numbers, or, without
one, by their order within a step. Calls that may not have met are left single. A collective of all ranks ends on none
before it has begun on each: every meeting bounds the offset of two clocks from both sides.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Collectives, Rank
from teller_core.data.records import CollectiveFact, Recording
from teller_core.data.steps import StepWork
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Layer
from teller_core.rebuild.engines import Place, place
from teller_core.rebuild.ranks import SAME_MACHINE_NS

RAN = re.compile(r"gloo:(?!send|recv)")
"""Host ranges that last as long as their collective: Gloo's own, on its threads. Others only hand it over."""
SYNCHRONOUS = re.compile(r"all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|all2all|barrier", re.IGNORECASE)
"""Collectives that end on no rank before all have begun. A broadcast may."""
POINT_TO_POINT = re.compile(r"send|recv", re.IGNORECASE)
UNBOUNDED = 1 << 62
CALLED_BEFORE_NS = 5_000_000
"""A flight recorder notes a call this shortly before the collective runs, or the two are not the same."""


class Key(NamedTuple):
    """Which collective: ranks with equal keys met. ``size``: how many ranks must meet, 0 where not known."""

    group: str
    first: int
    second: int
    size: int


class Call(NamedTuple):
    """One collective of one rank (position in Capture.ranks)."""

    rank: int
    row: int
    step: int
    start: int
    dur: int
    name: str
    key: Key | None


def find_calls(recording: Recording, ranks: Sequence[Rank], work: StepWork, problems: Counter[str]) -> list[Call]:
    """The collectives in the traces of all ranks, by rank and time. Those that cannot be told to have met have no key."""
    facts = _facts(recording)
    calls: list[Call] = []
    for i, rank in enumerate(ranks):
        own = _of_rank(i, rank, work)
        told = facts.get(Place(rank.host, rank.pid), [])
        calls += _by_sequence(own, told) if told else own
    return _by_step(calls, ranks, problems)


def _of_rank(i: int, rank: Rank, work: StepWork) -> list[Call]:
    tree = rank.tree
    if tree is None:
        return []
    trace = tree.trace
    rows = np.flatnonzero(trace.layer == int(Layer.COMMUNICATION))
    if not len(rows):
        return []
    device = np.array([lane.device for lane in trace.lanes], dtype=np.bool_)[trace.lane[rows]]
    if device.any():
        rows = rows[device]
    else:
        runs = np.array([RAN.match(name) is not None for name in trace.names], dtype=np.bool_)
        rows = rows[runs[trace.name[rows]]]
    rows = rows[np.argsort(trace.start[rows], kind="stable")]
    steps, names = _steps_of(rows, trace.start[rows], i, work), list(trace.names)
    return [
        Call(i, row, step, start, dur, names[name], None)
        for row, step, start, dur, name in zip(
            rows.tolist(), steps.tolist(), trace.start[rows].tolist(), trace.dur[rows].tolist(), trace.name[rows].tolist(),
            strict=True,
        )
    ]  # fmt: skip


def _steps_of(rows: Int64, start: Int64, rank: int, work: StepWork) -> Int64:
    """The step of each row: whose rows hold it, else (Gloo's threads) whose time on this rank does; -1 for none."""
    own = np.flatnonzero((work.rank == rank) & (work.row >= 0))
    step = np.full(len(rows), -1, dtype=np.int64)
    if not len(own):
        return step
    for values, low, high in ((rows, work.row[own], work.row_stop[own]), (start, work.start[own], work.stop[own] + 1)):
        order = np.argsort(low, kind="stable")
        k = np.searchsorted(low[order], values, side="right") - 1
        inside = (k >= 0) & (values < high[order][k]) & (step < 0)
        step[inside] = work.step[own][order][k[inside]]
    return step


def _facts(recording: Recording) -> dict[Place, list[CollectiveFact]]:
    by_process: defaultdict[Place, dict[tuple[str, int], CollectiveFact]] = defaultdict(dict)
    for fact in recording.collectives:
        if not fact.point_to_point:
            by_process[place(fact.process)][fact.group, fact.sequence] = fact
    return {where: sorted(own.values(), key=lambda fact: fact.time) for where, own in by_process.items()}


def _by_sequence(calls: Sequence[Call], facts: Sequence[CollectiveFact]) -> list[Call]:
    """Each call with the sequence number of the record made when it was called, where one was shortly before it."""
    times = np.array([fact.time for fact in facts], dtype=np.int64)
    keyed: list[Call] = []
    used = -1
    for call in calls:
        k = int(np.searchsorted(times, call.start, side="right")) - 1
        near = k > used and call.start - int(times[k]) < CALLED_BEFORE_NS
        used = max(used, k)
        fact = facts[k] if near else None
        key = Key(f"group {fact.group}", fact.sequence, 0, len(fact.members)) if fact else None
        keyed.append(call._replace(key=key))
    return keyed


def _by_step(calls: Sequence[Call], ranks: Sequence[Rank], problems: Counter[str]) -> list[Call]:
    """Keys by order within a step, where every rank made as many calls of that name in it."""
    counts: defaultdict[tuple[int, str], Counter[int]] = defaultdict(Counter)
    for call in calls:
        if call.key is None and call.step >= 0 and not POINT_TO_POINT.search(call.name):
            counts[call.step, call.name][call.rank] += 1
    uneven = {key for key, of in counts.items() if len(set(of.values())) > 1}
    problems["steps_with_uneven_collectives"] += len({step for step, _ in uneven})
    seen: Counter[tuple[int, int, str]] = Counter()
    keyed: list[Call] = []
    for call in calls:
        where = (call.step, call.name)
        if call.key is None and where in counts and where not in uneven:
            order = seen[call.rank, *where]
            seen[call.rank, *where] += 1
            keyed.append(call._replace(key=Key(call.name, call.step, order, _world(ranks[call.rank]))))
        else:
            keyed.append(call)
    return keyed


def _world(rank: Rank) -> int:
    """How many ranks meet: the world, where the trace names it and no group of another size that the rank is in."""
    if rank.tree is None:
        return 0
    origin = rank.tree.trace.origin
    sizes = {len(members) for _, members in origin.groups if rank.rank in members and len(members) > 1}
    return sizes.pop() if len(sizes) == 1 else (origin.world or 0) if not sizes else 0


def meetings(calls: Iterable[Call]) -> dict[Key, list[Call]]:
    """Calls that met, by key: those of at least two ranks, one call each."""
    met: defaultdict[Key, list[Call]] = defaultdict(list)
    for call in calls:
        if call.key is not None:
            met[call.key].append(call)
    return {key: of for key, of in met.items() if len({call.rank for call in of}) == len(of) > 1}


def bound_clocks(ranks: Sequence[Rank], met: Mapping[Key, Sequence[Call]], problems: Counter[str]) -> list[Rank]:
    """Ranks with the shift to the clock of the first one's process and a bound of its error, as far as meetings tell.

    Processes of one machine share a clock already: meetings only check it. Problems: ``clocks_contradict_collectives``.
    """
    of_rank = [Place(rank.host, rank.pid) for rank in ranks]
    told: dict[Place, Rank] = {}
    windows = _windows(met, of_rank)
    for where in dict.fromkeys(of_rank):
        rank = ranks[of_rank.index(where)]
        anchor = next((a for a in told if (a, where) in windows and told[a].clock_error != UNKNOWN), None)
        if not told:
            told[where] = replace(rank, clock_error=0)
        elif anchor is not None:
            told[where] = _bounded(rank, told[anchor], windows[anchor, where], problems)
        else:
            near = next((told[a] for a in told if a.host == where.host and told[a].clock_error != UNKNOWN), None)
            told[where] = rank if near is None else _same_machine(rank, near)
    return [
        replace(rank, shift=told[where].shift, clock_error=told[where].clock_error)
        for rank, where in zip(ranks, of_rank, strict=True)
    ]


def _same_machine(rank: Rank, near: Rank) -> Rank:
    return replace(rank, shift=near.shift, clock_error=near.clock_error + SAME_MACHINE_NS)


def _windows(met: Mapping[Key, Sequence[Call]], of_rank: Sequence[Place]) -> dict[tuple[Place, Place], tuple[int, int]]:
    """For each two processes that met, [low, high] of what must be added to the second's clock to have the first's."""
    windows: dict[tuple[Place, Place], tuple[int, int]] = {}
    for calls in met.values():
        for a, b in permutations(calls, 2):
            if SYNCHRONOUS.search(b.name):
                pair = (of_rank[a.rank], of_rank[b.rank])
                low, high = windows.get(pair, (-UNBOUNDED, UNBOUNDED))
                windows[pair] = (max(low, a.start - (b.start + b.dur)), min(high, a.start + a.dur - b.start))
    return windows


def _bounded(rank: Rank, anchor: Rank, window: tuple[int, int], problems: Counter[str]) -> Rank:
    low, high = window[0] + anchor.shift, window[1] + anchor.shift
    if rank.host == anchor.host and rank.clock_error != UNKNOWN:
        wrong = low > rank.clock_error or high < -rank.clock_error
        problems["clocks_contradict_collectives"] += wrong
        return replace(rank, clock_error=UNKNOWN) if wrong else rank
    if low > high:
        problems["clocks_contradict_collectives"] += 1
        return replace(rank, clock_error=UNKNOWN)
    if low <= 0 <= high:
        return replace(rank, clock_error=max(-low, high) + anchor.clock_error)
    return replace(rank, shift=(low + high) // 2, clock_error=(high - low + 1) // 2 + anchor.clock_error)


def collective_table(calls: Sequence[Call], met: Mapping[Key, Sequence[Call]], ranks: Sequence[Rank]) -> Collectives:
    """Collectives by time, on the capture's clock. A call that met nobody known has a group of its own rank.

    ``wait`` and ``late`` stand only where every rank that must meet is there and the clocks bound the difference.
    """
    groups: dict[str, int] = {}
    sequences: dict[Key, int] = {key: n for n, key in enumerate(sorted(met))}
    rows: list[tuple[int, ...]] = []
    for k, call in enumerate(sorted(calls, key=lambda call: (call.start + ranks[call.rank].shift, call.rank))):
        together = met.get(call.key, ()) if call.key else ()
        label = call.key.group if call.key and together else f"{call.name} of rank {call.rank} alone"
        wait, late = _waited(call, together, ranks)
        sequence = sequences[call.key] if call.key and together else k
        start = call.start + ranks[call.rank].shift
        group = groups.setdefault(label, len(groups))
        rows.append((group, sequence, call.step, call.rank, call.row, start, call.dur, wait, late))
    columns = np.array(rows, dtype=np.int64).reshape(-1, 9).T
    group, sequence, step, rank, row, start, dur, wait, late = columns
    small = [column.astype(np.int32) for column in (group, step, rank, row, late)]
    return Collectives(small[0], sequence, small[1], small[2], small[3], start, dur, wait, small[4])


def _waited(call: Call, together: Sequence[Call], ranks: Sequence[Rank]) -> tuple[int, int]:
    """(ns that ``call`` waited for the last to arrive or UNKNOWN, who was last or -1)."""
    whole = call.key is not None and 0 < call.key.size == len(together)
    if not whole or any(ranks[other.rank].clock_error == UNKNOWN for other in together):
        return UNKNOWN, -1
    arrived = sorted((other.start + ranks[other.rank].shift, other.rank) for other in together)
    last, late = arrived[-1]
    if last - arrived[-2][0] <= ranks[late].clock_error + ranks[arrived[-2][1]].clock_error:
        late = -1
    if call.rank == late:
        return 0, late
    waited = last - call.start - ranks[call.rank].shift
    doubt = max(ranks[other.rank].clock_error for other in together) + ranks[call.rank].clock_error
    return (min(waited, call.dur), late) if waited > doubt else (UNKNOWN, late)
