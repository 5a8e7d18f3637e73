"""Ranks: the processes that run steps or were traced. One entry a process and trace.

A process whose trace is in several files (two profiler windows, or NVTX ranges beside a profile) has several entries with one
rank number, host and pid: each keeps its own tree and its own file. A process without a trace has one entry without a tree.
"""

from collections.abc import Sequence
from typing import NamedTuple

from teller_core.data.capture import Rank
from teller_core.data.records import Process, Recording
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import kernel_totals
from teller_core.data.tree import Tree
from teller_core.rebuild.engines import Place, locate, place

SAME_MACHINE_NS = 50_000
"""ns, assumed: two processes of one machine read one clock, to which the profiler fits its counter. Collectives check it:
the meetings of two ranks on one machine (612 in three recordings) leave room for no more than 0.4 ms and never exclude 0."""


class Traced(NamedTuple):
    """Which process each tree is of, and which of the two clocks, ``unix`` or ``local``, it is on."""

    places: Sequence[Place]
    unix: Sequence[bool]


def trace_places(recording: Recording) -> Traced:
    """The process of each trace of a recording."""
    said = {place(process) for process in _processes(recording)}
    own: list[Place] = []
    for _, trace in recording.traces:
        lanes = [lane.process for lane in trace.lanes if not lane.device]
        own.append(locate(trace.origin, lanes, said))
    return Traced(own, [trace.origin.clock == "unix" for _, trace in recording.traces])


def _processes(recording: Recording) -> list[Process]:
    rows = (recording.decisions, recording.executions, recording.pauses, recording.requests, recording.collectives)
    found = {row.process: None for table in rows for row in table}
    found |= {sample.process: None for sample in recording.samples if sample.process}
    return list(found)


def build_ranks(recording: Recording, trees: Sequence[Tree], traced: Traced) -> tuple[list[Rank], list[int]]:
    """Ranks in the order of their numbers, and the position of each one's tree in ``trees``, -1 for none.

    Traces without any event make no rank.
    """
    processes = {place(process): process for process in reversed(_processes(recording))}
    workers = list(dict.fromkeys(place(e.process) for e in recording.executions))
    with_tree = [i for i, tree in enumerate(trees) if len(tree)]
    places = list(dict.fromkeys([*workers, *(traced.places[i] for i in with_tree)]))
    numbers = _numbers(recording, traced, places, processes, workers)
    found: list[tuple[Rank, int]] = []
    for where in sorted(places, key=lambda w: (numbers[w] < 0, numbers[w], w)):
        role = processes[where].role if where in processes else "worker"
        own = [i for i in with_tree if traced.places[i] == where]
        bare = Rank(numbers[where], where.host, where.pid, role, None, -1, clock_error=_error(places))
        found += [(_with_tree(bare, recording.traces[i][0], trees[i], traced.unix[i]), i) for i in own] or [(bare, -1)]
    return [rank for rank, _ in found], [tree for _, tree in found]


def _numbers(
    recording: Recording,
    traced: Traced,
    places: Sequence[Place],
    processes: dict[Place, Process],
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


def _with_tree(rank: Rank, file: int, tree: Tree, unix: bool) -> Rank:
    kernels, kernel_time = kernel_totals(tree.trace)
    losses = {"crossing_ranges": tree.crossings, "device_work_without_launch": tree.unlaunched}
    return Rank(
        rank.rank,
        rank.host,
        rank.pid,
        rank.role,
        tree,
        file,
        clock_error=rank.clock_error if unix else UNKNOWN,
        kernels=kernels,
        kernel_time=kernel_time,
        problems={name: count for name, count in losses.items() if count},
    )


def _error(places: Sequence[Place]) -> int:
    """A single process is the clock; those of one machine read the same one; of other machines nothing is known yet."""
    if len(places) == 1:
        return 0
    return SAME_MACHINE_NS if len({where.host for where in places}) == 1 else UNKNOWN
