"""What of a step a cause took, and what that would be without it: durations for replay, from the numbers that named the cause."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import Assessment, Candidates
from teller_core.data.graph import Kind
from teller_core.data.linked import Linked
from teller_core.data.table import Int32, Int64, Mask, take
from teller_core.data.trace import Layer
from teller_core.judge.evidence import Clue
from teller_core.judge.replay.charge import charged
from teller_core.judge.replay.network import Network, named
from teller_core.judge.replay.silence import SCOPES
from teller_core.judge.rules_device import ALLOCATES, SYNCHRONIZES

NO_SPANS = "it stands at no span of its profiled steps whose normal time is known"
OPERATORS = frozenset({"host.slow_operator", "gpu.wrong_kernel"})
"""Causes that name one operator."""
SPREAD = frozenset(
    {
        "gpu.colocated_contention",
        "gpu.clock_throttle",
        "host.blocking_call",
        "host.cpu_starvation",
        "host.interpreter_lock",
        "host.io_stall",
        "host.memory_bandwidth",
        "host.step_overhead",
    }
)
"""Causes that may show at any span: all suspected ones of a step are made normal together."""
STOPS = {"host.gc_pause": "gc", "host.observer_overhead": "profiler_stop"}
PAGEABLE = re.compile(r"Pageable")


class Suspect(NamedTuple):
    """``owners`` of time int64, and what each would take, int64 ns: ``normal``, and within the spread of what is normal
    ``fast`` and ``slow``. ``free``: rows that would wait for nothing.
    """

    owners: Int64
    normal: Int64
    fast: Int64
    slow: Int64
    free: Int64


def suspect(graph: Network, clue: Clue, step: int, numbers: Assessment, known: "Known") -> Suspect | None:
    """What ``clue`` found in a step and what it would take otherwise, None where it stands at nothing of ``graph``."""
    linked = graph.linked
    found: Suspect | None = None
    if clue.cause in OPERATORS | SPREAD:
        table = take(numbers.candidates, numbers.candidates.step == step)
        if clue.cause in OPERATORS:
            table = take(table, np.array([name == clue.operator for name in table.name], dtype=np.bool_))
        return _normal(graph, table, numbers)
    match clue.cause:
        case "host.gc_pause" | "host.observer_overhead":
            kind = np.array([known.pauses[k] == STOPS[clue.cause] for k in linked.stops.at.tolist()], dtype=np.bool_)
            found = _gone(graph, np.flatnonzero(kind) + graph.nodes.stop_owner)
        case "cuda.host_device_sync":
            found = _freed(graph, named(linked, SYNCHRONIZES))
        case "cuda.pageable_copy":
            found = _freed(graph, _paged(linked))
        case "cuda.allocator":
            found = _gone(graph, np.flatnonzero(named(linked, ALLOCATES) & (linked.layer == Layer.RUNTIME)))
        case "comm.straggler_rank":
            found = _in_time(graph, clue.rank)
        case "comm.degraded_link":
            found = _calm(graph, known.transfer)
        case _:
            pass
    return found


def all_of(found: "Sequence[Suspect | None]") -> Suspect | None:
    """Several at once; what two of them name takes the shorter time. None where there is none."""
    there = [one for one in found if one is not None]
    if len(there) < 2:
        return there[0] if there else None
    owners, place = np.unique(np.concatenate([one.owners for one in there]), return_inverse=True)
    least = np.full((3, len(owners)), np.iinfo(np.int64).max)
    for row, name in zip(least, ("normal", "fast", "slow"), strict=True):
        np.minimum.at(row, place, np.concatenate([getattr(one, name) for one in there]))
    return Suspect(owners, least[0], least[1], least[2], np.unique(np.concatenate([one.free for one in there])))


class Known(NamedTuple):
    """What else of the capture says what is normal: the kind of each of its pauses, and the ns of a calm transfer, NaN for
    none.
    """

    pauses: list[str]
    transfer: float


def _made(graph: Network, owners: Int64, normal: Int64, fast: Int64, slow: Int64) -> Suspect | None:
    own = graph.kept.owned[owners]
    changed = normal < own
    if not changed.any():
        return None
    every = (normal, fast, slow)
    normal, fast, slow = (np.clip(one, 0, own)[changed] for one in every)
    return Suspect(owners[changed], normal, fast, slow, np.empty(0, dtype=np.int64))


def _gone(graph: Network, owners: Int64) -> Suspect | None:
    zero = np.zeros(len(owners), dtype=np.int64)
    return _made(graph, owners, zero, zero, zero)


def _normal(graph: Network, found: Candidates, numbers: Assessment) -> Suspect | None:
    """Candidates of one step at what is normal for them: one span, the calls of a place, or the silence of a thread."""
    parts: list[tuple[Int64, float, float]] = []
    for k in range(len(found.step)):
        row = graph.linked.row(int(found.rank[k]), int(found.row[k]))
        if row < 0 or int(found.value[k]) <= 0:
            continue
        baseline = int(found.baseline[k])
        spread = float(numbers.baselines.spread[baseline]) if baseline >= 0 else 0.0
        part = min(max(int(found.normal[k]) / int(found.value[k]), 0.0), 1.0)
        if found.method[k] == "gap":
            parts.append((_silent(graph, row), part, spread))
        elif found.method[k] == "residual":
            parts.append((np.array([row], dtype=np.int64), part, spread))
        else:
            parts.append((_alike(graph.linked, row), part, spread))
    if not parts:
        return None
    owners = np.concatenate([rows for rows, _, _ in parts])
    owners, first = np.unique(owners, return_index=True)
    times = np.array([len(rows) for rows, _, _ in parts])
    part = np.repeat([part for _, part, _ in parts], times)[first]
    spread = np.exp(np.repeat([spread for _, _, spread in parts], times)[first])
    own = graph.kept.owned[owners]
    made = [np.round(own * np.minimum(one, 1.0)).astype(np.int64) for one in (part, part / spread, part * spread)]
    return _made(graph, owners.astype(np.int64), made[0], made[1], made[2])


def _alike(linked: Linked, row: int) -> Int64:
    """The rows of one part with the name of ``row`` below a row of the same name as the one above it."""
    at = int(np.searchsorted(linked.first, row, side="right")) - 1
    low, tree = int(linked.first[at]), linked.parts[at].tree
    name, parent = tree.trace.name, tree.parent
    above = np.where(parent < 0, -1, name[np.maximum(parent, 0)])
    mine = row - low
    return np.flatnonzero((name == name[mine]) & (above == above[mine])) + low


def _silent(graph: Network, row: int) -> Int64:
    """The owners of silence on the thread of ``row``: its scopes, and what lies between its calls."""
    linked, lane = graph.linked, int(graph.linked.lane[row])
    scopes = np.isin(linked.layer, np.array(SCOPES, dtype=np.uint8)) & linked.host & (linked.lane == lane)
    return np.append(np.flatnonzero(scopes), graph.nodes.lane_owner + lane)


def _freed(graph: Network, calls: Mask) -> Suspect | None:
    """Calls that wait for a device and need not: all of a thread but its last one, after which the step's tokens are read."""
    linked = graph.linked
    waits: Int32 = linked.graph.after[linked.graph.of(Kind.WAIT)]
    rows = np.unique(waits[calls[waits] & linked.host[waits]]).astype(np.int64)
    rows = rows[np.argsort(linked.start[rows], kind="stable")]
    last = {int(linked.lane[row]): row for row in np.unique(waits)[np.argsort(linked.start[np.unique(waits)])].tolist()}
    rows = np.array([row for row in rows.tolist() if last[int(linked.lane[row])] != row], dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    return Suspect(none, none, none, none, rows) if len(rows) else None


def _paged(linked: Linked) -> Mask:
    """bool a row: a call that copied memory that was not pinned."""
    out = np.zeros(len(linked), dtype=np.bool_)
    rows = np.flatnonzero(named(linked, PAGEABLE) & linked.work & (linked.parent >= 0))
    out[linked.parent[rows]] = True
    return out


def _in_time(graph: Network, late: int | None) -> Suspect | None:
    """What the late rank did while others waited for it in their collectives, without the longest time that one of them
    waited.
    """
    waits, nodes, linked = charged(graph), graph.nodes, graph.linked
    calls = np.zeros(graph.owners, dtype=np.bool_)
    calls[linked.calls.row] = True
    part = np.concatenate(
        [linked.lane_part[linked.lane], linked.stops.part, np.full(nodes.meetings, -1), linked.lane_part]
    )
    rank = np.append([one.rank for one in linked.parts], -1)[part]
    waiting = waits.row[waits.wait]
    use = calls[waiting] & (waits.owner >= 0) & (rank[waits.owner] == late) & (rank[waiting] != late)
    most: dict[int, int] = {}
    for one in np.unique(rank[waiting[use]]).tolist():
        mine = use & (rank[waiting] == one)
        taken = np.bincount(waits.owner[mine], weights=waits.ns[mine], minlength=graph.owners)
        for owner in np.flatnonzero(taken).tolist():
            most[owner] = max(most.get(owner, 0), int(taken[owner]))
    owners = np.array(list(most), dtype=np.int64)
    left = graph.kept.owned[owners] - np.array(list(most.values()), dtype=np.int64)
    return _made(graph, owners, left, left, left)


def _calm(graph: Network, transfer: float) -> Suspect | None:
    """Meetings whose transfers take what they take in calm steps."""
    if not transfer > 0:
        return None
    owners = np.arange(graph.nodes.meetings, dtype=np.int64) + graph.nodes.meeting_owner
    calm = np.minimum(graph.kept.owned[owners], round(transfer))
    return _made(graph, owners, calm, calm, calm)
