"""Faults that add calls which were never made: synchronizations, copies, calls for memory, launches one by one."""

from dataclasses import replace

import numpy as np

from teller_core.data.replays import GRAPH_LAUNCH, captured_rows
from teller_core.data.table import Int64
from teller_core.data.trace import Layer
from teller_core.lab.perturb.altering import Altered, Wait, altered, as_it_is, waiting
from teller_core.lab.perturb.blows import (
    AWAKE,
    Blow,
    Given,
    Struck,
    Target,
    called,
    category,
    launches,
    names,
    untouched,
    waits_for_all,
    with_device,
)
from teller_core.lab.perturb.inserting import Added
from teller_core.lab.perturb.pieces import Piece

MOST_CALLS = 24
"""A step."""
MEMORY_CALLS = (2, 6)
COPIES = (1, 4)
LEAST_REPLAYED = 8
"""Kernels of a graph, for its lack to be felt."""
LAUNCHED_EACH = (4_000, 9_000)
"""ns that the host needs for one launch from Python: what launch-bound decode steps of the real traces show."""
PAGED = "Memcpy HtoD (Pageable -> Device)"
COPIED = "gpu_memcpy"
EAGER, EAGER_CATEGORY = "forward without a graph", "cpu_op"


def some_device(given: Given, chance: np.random.Generator) -> Target | None:
    """One process that gives work to a device."""
    parts = with_device(given.piece)
    return Target(int(chance.choice(parts))) if parts else None


def sync_target(given: Given, chance: np.random.Generator) -> Target | None:
    """The same, with the call that is added."""
    return _naming(given, chance, ("DeviceSynchronize",))


def memory_target(given: Given, chance: np.random.Generator) -> Target | None:
    """The same, with the calls that are added."""
    return _naming(given, chance, ("Free", "Malloc"))


def copy_target(given: Given, chance: np.random.Generator) -> Target | None:
    """The same, with the call and the copy that are added."""
    found = _naming(given, chance, ("MemcpyAsync",))
    return None if found is None else found._replace(names=(*found.names, PAGED))


def added_sync(blow: Blow) -> Struck | None:
    """After some of its launches the host waits for the device: the more, the harder."""
    found = launches(blow.given.piece, blow.target.part, blow.touched)
    most = min(MOST_CALLS * int(blow.touched.sum()), len(found.call))
    many = int(np.clip(round((blow.factor - 1) / 9 * most), 1, most))
    return _synchronized(blow, blow.chance.choice(found.call, many, replace=False))


def harmless_sync(blow: Blow) -> Struck | None:
    """The host waits behind the last launch of a step, when there is nothing left to launch."""
    piece = blow.given.piece
    found = launches(piece, blow.target.part, blow.touched).call
    of = piece.of_row[found]
    return _synchronized(blow, np.array([found[of == step].max() for step in np.unique(of).tolist()], dtype=np.int64))


def allocator(blow: Blow) -> Struck | None:
    """Memory of the device is given back, which waits for the device, and taken again, which takes time."""
    piece, target, chance = blow.given.piece, blow.target, blow.chance
    found = launches(piece, target.part, blow.touched).call
    pairs = int(chance.integers(*MEMORY_CALLS)) * int(blow.touched.sum())
    at = _apart(piece, chance.choice(found, min(pairs, len(found)), replace=False))
    rows = [one for call in at.tolist() for one in _behind(piece, call, target.names)]
    on = altered(blow.given.capture, piece, target.part, rows)
    waits = _all_wait(on, target.part, on.new[::2], at)
    made = _with(on, waits)
    if made is None:
        return None
    part = chance.exponential(1.0, len(rows))
    ns = (blow.factor - 1) * int(blow.given.took[blow.touched].sum()) * part / part.sum()
    made.more[on.new + len(made.on.piece.linked)] += np.rint(ns).astype(np.int64)
    return made


def pageable_copy(blow: Blow) -> Struck | None:
    """Memory that is not pinned is copied to the device, behind what that had to do, and the host waits in the call."""
    piece, target, chance = blow.given.piece, blow.target, blow.chance
    found = launches(piece, target.part, blow.touched)
    many = min(int(chance.integers(*COPIES)) * int(blow.touched.sum()), len(found.call))
    chosen = np.sort(chance.choice(len(found.call), many, replace=False))
    _, first = np.unique(piece.linked.stop[found.call[chosen]], return_index=True)
    chosen = chosen[first]
    pairs = [(int(found.call[k]), int(found.work[k])) for k in chosen.tolist()]
    all_given = launches(piece, target.part)
    least = int((piece.linked.start[all_given.work] - piece.linked.start[all_given.call]).min())
    rows = [one for call, work in pairs for one in _copy(piece, target, call, work, least)]
    on = altered(blow.given.capture, piece, target.part, rows)
    count = len(on.piece.linked)
    call, copy = on.new[::2].tolist(), on.new[1::2].tolist()
    made = _with(on, [Wait(two + count, one + count, AWAKE) for one, two in zip(call, copy, strict=True)])
    if made is None:
        return None
    part = chance.exponential(1.0, len(copy))
    ns = (blow.factor - 1) * int(blow.given.took[blow.touched].sum()) * part / part.sum()
    made.more[on.new[1::2] + count] += np.rint(ns).astype(np.int64)
    return made


def a_graph(given: Given, chance: np.random.Generator) -> Target | None:
    """A process that replays graphs of which the kernels are known."""
    parts = [part for part in with_device(given.piece) if len(_replays(given.piece, part))]
    return Target(int(chance.choice(parts))) if parts else None


def graph_miss(blow: Blow) -> Struck | None:
    """What a graph launched at once is launched one by one. How hard: what each launch takes."""
    piece, target = blow.given.piece, blow.target
    rows, given, replays = piece.linked, launches(piece, target.part), _replays(piece, target.part)
    replays = replays[blow.touched[piece.of_row[replays]]]
    if not len(replays):
        return None
    launch = called(piece, target.part, "LaunchKernel")
    wraps: list[Added] = []
    for graph in replays.tolist():
        word, start = category(piece, graph), int(rows.start[graph])
        wraps += [
            Added(row, int(rows.parent[row]), start, launch, graph, word, Layer.RUNTIME, wraps=True)
            for row in np.sort(given.work[given.call == graph]).tolist()
        ]
    first = int(rows.first[target.part])
    on = altered(blow.given.capture, _renamed(piece, target.part, replays - first), target.part, wraps)
    made = untouched(on)
    owners = np.isin(on.piece.graph.owner, on.rows[replays])
    made.times[owners] = 0.0
    each = blow.chance.uniform(*LAUNCHED_EACH, len(on.new)) * blow.factor
    made.more[on.new + len(on.piece.linked)] += np.rint(each).astype(np.int64)
    return made


def _replays(piece: Piece, part: int) -> Int64:
    """The calls that replay a graph of which the kernels are known."""
    call, count = np.unique(launches(piece, part).call, return_counts=True)
    call = call[count >= LEAST_REPLAYED]
    return call[np.array([GRAPH_LAUNCH.match(name) is not None for name in names(piece, call)], dtype=np.bool_)]


def _renamed(piece: Piece, part: int, at: Int64) -> Piece:
    """``piece`` in which the rows ``at`` of a part are what Python calls without a graph: what these were captured with runs."""
    parts = list(piece.linked.parts)
    tree = parts[part].tree
    trace = tree.trace
    name, layer, category, lane = trace.name.copy(), trace.layer.copy(), trace.category.copy(), trace.lane.copy()
    captured = captured_rows(tree)
    for row in map(int, at):
        below = np.arange(int(row), int(tree.stop[row]), dtype=np.int64)
        lane[below[captured[below]]] = lane[row]
    name[at], layer[at], category[at] = len(trace.names), Layer.OPERATOR, len(trace.categories)
    trace = replace(
        trace,
        name=name,
        layer=layer,
        category=category,
        lane=lane,
        names=[*trace.names, EAGER],
        categories=[*trace.categories, EAGER_CATEGORY],
    )
    parts[part] = parts[part]._replace(tree=replace(tree, trace=trace))
    return replace(piece, graph=replace(piece.graph, linked=replace(piece.linked, parts=parts)))


def _naming(given: Given, chance: np.random.Generator, what: tuple[str, ...]) -> Target | None:
    found = some_device(given, chance)
    if found is None:
        return None
    return found._replace(names=tuple(called(given.piece, found.part, one) for one in what))


def _synchronized(blow: Blow, calls: Int64) -> Struck | None:
    piece, target = blow.given.piece, blow.target
    at = _apart(piece, calls)
    on = altered(
        blow.given.capture,
        piece,
        target.part,
        [one for call in at.tolist() for one in _behind(piece, call, target.names)],
    )
    return _with(on, _all_wait(on, target.part, on.new, at))


def _all_wait(on: Altered, part: int, added: Int64, calls: Int64) -> list[Wait]:
    """The ``added`` rows, each behind one of ``calls`` of the piece as it was, wait for the device."""
    pairs = zip(added.tolist(), on.rows[calls].tolist(), strict=True)
    return [one for row, call in pairs for one in waits_for_all(on, part, row, call)]


def _apart(piece: Piece, calls: Int64) -> Int64:
    """``calls`` in their order, of those that end in one place one alone."""
    calls = np.sort(calls)
    _, first = np.unique(piece.linked.stop[calls], return_index=True)
    return calls[first]


def _behind(piece: Piece, call: int, what: tuple[str, ...]) -> list[Added]:
    """Calls of the runtime right behind ``call``, on its thread."""
    rows, word = piece.linked, category(piece, call)
    before, above = int(rows.stop[call]), int(rows.parent[call])
    if above >= 0 and rows.lane[above] != rows.lane[call]:
        above = -1
    return [Added(before, above, int(rows.end[call]), name, call, word, Layer.RUNTIME) for name in what]


def _copy(piece: Piece, target: Target, call: int, work: int, latency: int) -> list[Added]:
    """The call, and the copy ``latency`` ns later at least, behind the work that was given to the stream of ``work`` so far."""
    rows = piece.linked
    (row,) = _behind(piece, call, target.names[:1])
    stream = np.flatnonzero(rows.work & (rows.lane == rows.lane[work]))
    stream = stream[np.argsort(rows.start[stream], kind="stable")]
    at = int(np.flatnonzero(stream == work)[0])
    start = max(int(rows.end[work]), row.start + latency)
    if at + 1 < len(stream):
        start = max(min(start, int(rows.start[stream[at + 1]])), row.start)
    return [row, Added(row.before, None, start, PAGED, work, COPIED, Layer.KERNEL)]


def _with(on: Altered, waits: list[Wait]) -> Struck | None:
    found = waiting(on, waits)
    return None if found is None else untouched(found)


def nothing(blow: Blow) -> Struck:
    """Nothing is done: a run like the others."""
    return untouched(as_it_is(blow.given.piece))
