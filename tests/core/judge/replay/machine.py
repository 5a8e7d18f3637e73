"""A machine for tests that runs programs of some ranks and records them: what it says of other durations, replay must say too."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from teller_core.context.linking import linked
from teller_core.data.capture import Collectives, Meetings, Pauses, Rank
from teller_core.data.linked import Linked, Met, StepSpans
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Lane, Layer
from teller_core.data.tree import Tree
from tests.core.judge.service import US, Rows

LANES = (
    Lane("p", "main", False),
    Lane("p", "comm", False),
    Lane("gpu", "7", True),
    Lane("gpu", "8", True),
    Lane("gpu", "7 syncs", True),
    Lane("gpu", "8 syncs", True),
)
LATENCY, CALL, BACK, GIVE = 6 * US, 4 * US, 3 * US, 5 * US
"""ns from a launch to its work on an idle stream, that a call takes, until a waiting thread is back, and that it takes to give
others what they need.
"""
GIVES, GETS = ("broadcast", "scatter", "send_recv"), ("reduce", "gather")
"""Kinds in which the root alone gives, and in which it alone gets."""
STREAMS = {7: 2, 8: 3}
LAUNCHES = {"launch": "cudaLaunchKernel", "pinned": "cudaMemcpyAsync"}
"""Calls that return before the work that they give to a stream begins."""


@dataclass(frozen=True)
class Do:
    """One thing a program does. ``what``: op, launch, sync, copy (one that returns when it is done), pinned (one that returns
    at once), call (of the runtime), meet (a collective on a stream), gloo (one on a thread of its own, awaited), pause (of the
    kind ``name`` begins with), quiet. ``ns``: how long it takes by itself; of a meeting its transfer. ``name`` tells it from
    others. A meeting has a ``kind`` and a ``root``.
    """

    what: str
    name: str
    ns: int
    stream: int = 7
    kind: str = "all_reduce"
    root: int = -1


Program = Sequence[Do]


@dataclass
class Ran:
    """What one rank recorded: (name, layer, start, dur, lane, parent's index or -1) in the order of its calls."""

    spans: list[tuple[str, Layer, int, int, int, int]] = field(default_factory=list)
    calls: list[tuple[str, int, int]] = field(default_factory=list)
    pauses: list[tuple[int, int, str]] = field(default_factory=list)
    met: list[tuple[str, int]] = field(default_factory=list)


def run(programs: Sequence[Program], durations: Mapping[str, int], begin: Sequence[int]) -> list[Ran]:
    """What each rank records where things take ``durations`` by name, else their own ns. Ranks meet in the order of their
    meetings.
    """
    states = [_Rank(b) for b in begin]
    left = [list(program) for program in programs]
    waiting: dict[int, tuple[Do, int]] = {}
    while any(left) or waiting:
        for rank, state in enumerate(states):
            while left[rank] and rank not in waiting:
                do = left[rank].pop(0)
                do = replace(do, ns=durations.get(f"{rank}.{do.name}", durations.get(do.name, do.ns)))
                if do.what in ("meet", "gloo"):
                    waiting[rank] = (do, state.arrive(do))
                else:
                    state.do(do)
        if waiting:
            transfer = max(do.ns for do, _ in waiting.values())
            came = {rank: at for rank, (_, at) in waiting.items()}
            for rank, (do, at) in waiting.items():
                had = awaited(do.kind, do.root, rank, came)
                states[rank].leave(do, at, at + GIVE if had is None else had + transfer)
            waiting = {}
    return [state.ran for state in states]


def awaited(kind: str, root: int, rank: int, came: Mapping[int, int]) -> int | None:
    """When all whom ``rank`` needs in a meeting had come, None where it needs nobody."""
    if (kind in GIVES and rank == root) or (kind in GETS and rank != root):
        return None
    return max(came[rank], came[root]) if kind in GIVES else max(came.values())


class _Rank:
    def __init__(self, now: int) -> None:
        self.now, self.free, self.ran = now, {7: 0, 8: 0}, Ran()
        self.call = 0

    def span(self, name: str, layer: Layer, time: tuple[int, int], lane: int, parent: int = -1) -> int:
        self.ran.spans.append((name, layer, time[0], time[1] - time[0], lane, parent))
        return len(self.ran.spans) - 1

    def do(self, do: Do) -> None:
        start = self.now
        if do.what == "op":
            self.now += do.ns
            self.span(do.name, Layer.OPERATOR, (start, self.now), 0)
        elif do.what in LAUNCHES:
            self.now += CALL
            call = self.span(LAUNCHES[do.what], Layer.RUNTIME, (start, self.now), 0)
            begin = max(start + LATENCY, self.free[do.stream])
            self.free[do.stream] = begin + do.ns
            self.span(do.name, Layer.KERNEL, (begin, begin + do.ns), STREAMS[do.stream], call)
        elif do.what == "sync":
            self.now = max(self.now, self.free[do.stream]) + BACK
            call = self.span("cudaStreamSynchronize", Layer.RUNTIME, (start, self.now), 0)
            self.span("Stream Sync", Layer.RUNTIME, (start, self.now), STREAMS[do.stream] + 2, call)
        elif do.what == "pause":
            self.now += do.ns
            self.ran.pauses.append((start, do.ns, do.name.rstrip("0123456789.")))
        elif do.what == "copy":
            begin = max(start + LATENCY, self.free[do.stream])
            self.free[do.stream] = begin + do.ns
            self.now = begin + do.ns + BACK
            call = self.span("cudaMemcpyAsync", Layer.RUNTIME, (start, self.now), 0)
            self.span(do.name, Layer.KERNEL, (begin, begin + do.ns), STREAMS[do.stream], call)
        elif do.what == "call":
            self.now += do.ns
            self.span(do.name, Layer.RUNTIME, (start, self.now), 0)
        else:
            self.now += do.ns

    def arrive(self, do: Do) -> int:
        start = self.now
        self.now += CALL
        name = "cudaLaunchKernel" if do.what == "meet" else "c10d::allreduce_"
        layer = Layer.RUNTIME if do.what == "meet" else Layer.COMMUNICATION
        self.call = self.span(name, layer, (start, self.now), 0)
        return max(start + LATENCY, self.free[do.stream]) if do.what == "meet" else start + LATENCY

    def leave(self, do: Do, at: int, end: int) -> None:
        if do.what == "meet":
            self.free[do.stream] = end
            row = self.span(do.name, Layer.COMMUNICATION, (at, end), STREAMS[do.stream], self.call)
        else:
            row = self.span("gloo:all_reduce", Layer.COMMUNICATION, (at, end), 1)
            self.now = max(self.now, end) + BACK
        self.ran.calls.append((do.name, row, at))
        self.ran.met.append((do.kind, do.root))


def tree_of(ran: Ran) -> tuple[Tree, list[int]]:
    """The tree of what a rank recorded, and the row of each of its spans."""
    rows, where = Rows(), [0] * len(ran.spans)
    children: dict[int, list[int]] = {}
    for k, span in enumerate(ran.spans):
        children.setdefault(span[5], []).append(k)
    hosts = sorted(children.get(-1, []), key=lambda k: (ran.spans[k][4], k))

    def put(k: int) -> None:
        name, layer, start, dur, lane, _ = ran.spans[k]
        where[k] = rows.open(name, layer, start, lane)
        for child in children.get(k, []):
            put(child)
        rows.close(start + dur)

    for k in hosts:
        put(k)
    tree = rows.tree()
    return replace(tree, trace=replace(tree.trace, lanes=LANES)), where


def recorded(rans: Sequence[Ran]) -> tuple[Linked, list[list[int]], Pauses]:
    """What ranks recorded, linked, the row there of each of their spans, and their pauses."""
    trees = [tree_of(ran) for ran in rans]
    parts = [StepSpans(rank, 0, tree) for rank, (tree, _) in enumerate(trees)]
    first = np.cumsum([0, *(len(tree) for tree, _ in trees)])
    calls = [
        (n, rank, trees[rank][1][row], ran.spans[row][2], ran.spans[row][3])
        for rank, ran in enumerate(rans)
        for n, (_, row, _) in enumerate(ran.calls)
    ]
    met = Met(_collectives(calls), _meetings(rans[0].met, len(rans)))
    stops = sorted((start, dur, rank, kind) for rank, ran in enumerate(rans) for start, dur, kind in ran.pauses)
    pauses = Pauses(
        np.array([stop[0] for stop in stops], dtype=np.int64),
        np.array([stop[1] for stop in stops], dtype=np.int64),
        np.zeros(len(stops), dtype=np.int64),
        [f"host/{100 + stop[2]}" for stop in stops],
        ["worker"] * len(stops),
        [stop[3] for stop in stops],
    )
    ranks = [Rank(rank, "host", 100 + rank, "worker", tree, -1) for rank, (tree, _) in enumerate(trees)]
    rows = [[int(first[rank]) + row for row in where] for rank, (_, where) in enumerate(trees)]
    return linked(parts, met, pauses, ranks), rows, pauses


def _collectives(calls: Sequence[tuple[int, int, int, int, int]]) -> Collectives:
    table = np.array(calls, dtype=np.int64).reshape(-1, 5).T
    zero = np.zeros(len(calls), dtype=np.int32)
    unknown = np.full(len(calls), UNKNOWN, dtype=np.int64)
    small = [column.astype(np.int32) for column in table]
    return Collectives(zero, table[0], zero, small[1], small[2], table[3], table[4], unknown, zero - np.int32(1))


def _meetings(met: Sequence[tuple[str, int]], ranks: int) -> Meetings:
    count, kinds = len(met), [kind for kind, _ in met]
    many = np.full(count, ranks, dtype=np.int32)
    root = np.array([root for _, root in met], dtype=np.int32)
    unknown = np.full(count, UNKNOWN, dtype=np.int64)
    nobody = np.full(count, -1, dtype=np.int32)
    return Meetings(
        ["g"] * count, kinds, ["order"] * count, many, many, unknown, nobody, unknown, unknown, unknown, nobody, root
    )
