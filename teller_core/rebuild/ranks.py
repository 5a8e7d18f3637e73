"""Ranks: the processes that run steps, were traced, or were heard of by a recorder of collectives. One entry a process and trace.

A process whose trace is in several files (two profiler windows, or NVTX ranges beside a profile) has several entries with one
rank number, host and pid: each keeps its own tree and its own file. A process without a trace has one entry without a tree.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Rank
from teller_core.data.records import CollectiveFact, HostClock, Process, Recording
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.trace import Origin, kernel_totals
from teller_core.data.tree import Tree
from teller_core.rebuild.backlog import without_launch
from teller_core.rebuild.engines import Place, locate, place

SAME_MACHINE_NS = 50_000
"""ns, assumed: two processes of one machine read one clock, to which the profiler fits its counter. Collectives check it:
the meetings of two ranks on one machine (612 in three recordings) leave room for no more than 0.4 ms and never exclude 0."""
MOST_ON_ONE_MACHINE = 8
"""Ranks that one machine is taken to hold where nobody names the hosts and no trace lists the machine's devices."""


class Traced(NamedTuple):
    """Which process each tree is of, and which of the two clocks, ``unix`` or ``local``, it is on."""

    places: Sequence[Place]
    unix: Sequence[bool]


class Ranked(NamedTuple):
    """Ranks in the order of their numbers; of each, the process it is and the position of its tree, -1 for none."""

    ranks: list[Rank]
    trees: list[int]
    places: list[Place]


def trace_places(recording: Recording) -> Traced:
    """The process of each trace of a recording. Traces of one pid that name several ranks are of several processes."""
    said = {place(process) for process in _processes(recording)}
    own: list[Place] = []
    for _, trace in recording.traces:
        lanes = [lane.process for lane in trace.lanes if not lane.device]
        own.append(locate(trace.origin, lanes, said))
    numbers: defaultdict[Place, set[int]] = defaultdict(set)
    for where, (_, trace) in zip(own, recording.traces, strict=True):
        if trace.origin.rank is not None:
            numbers[where].add(trace.origin.rank)
    apart = [
        where._replace(rank=trace.origin.rank) if len(numbers[where]) > 1 and trace.origin.rank is not None else where
        for where, (_, trace) in zip(own, recording.traces, strict=True)
    ]
    return Traced(apart, [trace.origin.clock == "unix" for _, trace in recording.traces])


def _processes(recording: Recording) -> list[Process]:
    rows = (recording.decisions, recording.executions, recording.pauses, recording.requests, recording.collectives)
    found = {row.process: None for table in rows for row in table}
    found |= {sample.process: None for sample in recording.samples if sample.process}
    return list(found)


def build_ranks(recording: Recording, trees: Sequence[Tree], traced: Traced) -> Ranked:
    """Ranks in the order of their numbers. Traces without any event make no rank."""
    processes = {place(process): process for process in reversed(_processes(recording))}
    workers = list(dict.fromkeys(place(e.process) for e in recording.executions))
    with_tree = [i for i, tree in enumerate(trees) if len(tree)]
    places = list(dict.fromkeys([*workers, *(traced.places[i] for i in with_tree)]))
    numbers = _numbers(recording, traced, places, processes, workers)
    heard = _heard_of(recording, places, set(numbers.values()))
    numbers |= heard
    found: list[tuple[Rank, int, Place]] = []
    for where in sorted([*places, *heard], key=lambda w: (numbers[w] < 0, numbers[w], w)):
        role = processes[where].role if where in processes else "worker"
        own = [i for i in with_tree if traced.places[i] == where]
        bare = Rank(numbers[where], where.host, max(where.pid, 0), role, None, -1)
        found += [(_with_tree(bare, recording.traces[i][0], trees[i]), i, where) for i in own] or [(bare, -1, where)]
    return Ranked([rank for rank, _, _ in found], [tree for _, tree, _ in found], [where for _, _, where in found])


def _numbers(
    recording: Recording,
    traced: Traced,
    places: Sequence[Place],
    processes: Mapping[Place, Process],
    workers: Sequence[Place],
) -> dict[Place, int]:
    """The rank of each process, -1 for one that runs no steps and whose trace names none."""
    said: dict[Place, int] = {}
    for where, (_, trace) in zip(traced.places, recording.traces, strict=True):
        if trace.origin.rank is not None:
            said.setdefault(where, trace.origin.rank)
    for where, process in processes.items():
        if process.rank is not None:
            said.setdefault(where, process.rank)
    ranked = workers or [where for where in places if where not in processes] or places
    free = (n for n in range(len(places) + 1) if n not in said.values())
    return {where: said[where] if where in said else next(free) if where in ranked else -1 for where in places}


def _heard_of(recording: Recording, places: Sequence[Place], numbers: set[int]) -> dict[Place, int]:
    """Ranks that only a recorder of collectives speaks of: a number that no process with steps or a trace has."""
    notes = (recording.collectives, recording.groups)
    told = {place(note.process): note.process.rank for rows in notes for note in rows}
    return {
        where: number
        for where, number in told.items()
        if number is not None and number not in numbers and where not in places
    }


def facts_by_rank(recording: Recording, ranked: Ranked) -> dict[int, list[CollectiveFact]]:
    """A recorder's notes on the collectives of each rank (its position), by time, one a group, number and name; without sends.

    Notes that name a rank and no process are of the process with that number, where there is one.
    """
    notes: defaultdict[Place, dict[tuple[str, int, str], CollectiveFact]] = defaultdict(dict)
    for fact in recording.collectives:
        if not fact.point_to_point:
            notes[place(fact.process)][fact.group, fact.sequence, fact.name] = fact
    holders = Counter(number for number in {where: rank.rank for where, rank in _once(ranked)}.values() if number >= 0)
    loose = {where.rank: own for where, own in notes.items() if where not in ranked.places and where.rank >= 0}
    found: dict[int, list[CollectiveFact]] = {}
    for i, (rank, where) in enumerate(zip(ranked.ranks, ranked.places, strict=True)):
        own = notes.get(where) or (loose.get(rank.rank) if holders[rank.rank] == 1 else None)
        if own:
            found[i] = sorted(_told_once(list(own.values())), key=lambda fact: fact.time)
    return found


def _told_once(facts: Sequence[CollectiveFact]) -> list[CollectiveFact]:
    """``facts`` without those of groups of which another recorder also tells how long each call took."""
    timed = {fact.group for fact in facts if fact.timed}
    return [fact for fact in facts if fact.timed or fact.group not in timed]


def _once(ranked: Ranked) -> list[tuple[Place, Rank]]:
    return list(dict(zip(ranked.places, ranked.ranks, strict=True)).items())


def clocks_apart(ranked: Ranked, traced: Traced, clocks: Sequence[HostClock] = ()) -> Int64:
    """int64 (ranks, ranks) ns: by how much the clocks of two may differ before any collective tells, UNKNOWN for unbounded.

    One process has one clock; processes of one machine read the same one. Where no host is named, they are of one machine
    unless a pid occurs twice or there are more ranks than a machine holds. Of different hosts, ``clocks`` may tell.
    """
    unix = np.array([tree < 0 or traced.unix[tree] for tree in ranked.trees], dtype=np.bool_)
    hosts = np.array([rank.host for rank in ranked.ranks], dtype=object)
    same = np.equal.outer(hosts, hosts) & np.logical_and.outer(unix, unix)
    if not _one_machine(ranked):
        same &= ~np.logical_and.outer(hosts == "", hosts == "")
    between = np.array([[_apart(a, b, clocks) for b in hosts] for a in hosts], dtype=np.int64).reshape(same.shape)
    between = np.where(np.logical_and.outer(unix, unix), between, UNKNOWN)
    order = list(dict.fromkeys(ranked.places))
    process = np.array([order.index(where) for where in ranked.places], dtype=np.int64)
    one = np.equal.outer(process, process)
    return np.where(one, 0, np.where(same, SAME_MACHINE_NS, between)).astype(np.int64)


def _apart(a: str, b: str, clocks: Sequence[HostClock]) -> int:
    """ns that the clocks of two named hosts may differ, UNKNOWN where they do not say."""
    known = {clock.host: clock for clock in clocks}
    if a == b or a not in known or b not in known:
        return UNKNOWN
    one, other = known[a], known[b]
    if one.machine and one.machine == other.machine:
        return SAME_MACHINE_NS
    return UNKNOWN if UNKNOWN in (one.max_error, other.max_error) else one.max_error + other.max_error


def _one_machine(ranked: Ranked) -> bool:
    """Whether the processes of unnamed hosts can be of one machine."""
    unnamed = [(where, rank) for where, rank in _once(ranked) if not where.host]
    if any(where.rank >= 0 for where, _ in unnamed):
        return False
    origins: list[Origin] = [rank.tree.trace.origin for _, rank in unnamed if rank.tree is not None]
    world = max([origin.world or 0 for origin in origins] + [len({rank.rank for _, rank in unnamed})])
    devices = max((len(origin.devices) for origin in origins), default=0)
    return world <= max(devices, MOST_ON_ONE_MACHINE)


def _with_tree(rank: Rank, file: int, tree: Tree) -> Rank:
    kernels, kernel_time = kernel_totals(tree.trace)
    losses = {"crossing_ranges": tree.crossings, **without_launch(tree)}
    return Rank(
        rank.rank,
        rank.host,
        rank.pid,
        rank.role,
        tree,
        file,
        kernels=kernels,
        kernel_time=kernel_time,
        problems={name: count for name, count in losses.items() if count},
    )
