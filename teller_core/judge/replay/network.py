"""The moments of a capture and what each depends on, in the form in which they are re-timed again and again.

A moment comes ``own`` ns after the last of what it depends on: a graph of events in max-plus algebra (Baccelli, Cohen, Olsder and
Quadrat, Synchronization and Linearity, 1992). ``own`` is what the recorded times leave once all dependencies are taken off, and
so the recorded durations give the recorded times back.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from re import Pattern
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from teller_core.data.assessment import MATERIAL
from teller_core.data.graph import Kind
from teller_core.data.linked import Linked
from teller_core.data.table import Int32, Int64, Mask, UInt8
from teller_core.data.trace import Layer
from teller_core.judge.localize.waits import BLOCKING
from teller_core.judge.replay.arcs import (
    COPIED,
    NO_ROOT,
    NOT_FREE,
    RANK_MISSING,
    SHARED,
    Arcs,
    Meets,
    arcs_of,
    meets_of,
)
from teller_core.judge.replay.chains import NOBODY, Chains, Nodes, chains
from teller_core.judge.replay.silence import SHORT_ON_DEVICE, Guesses, Silence, guesses

if TYPE_CHECKING:
    from teller_core.judge.replay.passes import Held

NOT_HERE = "what a call waited for is not here"
LAUNCHED_BEFORE = "work was launched before the window"
AGAINST_TIME = "a dependency runs against time"
UNKNOWN_USE = "a thread recorded nothing for long"
CUT = (NOT_HERE, LAUNCHED_BEFORE, AGAINST_TIME, UNKNOWN_USE, RANK_MISSING, SHARED, COPIED, NO_ROOT, NOT_FREE)
"""What replay may not know, by name."""


class Way(NamedTuple):
    """What moments depend on, with unknown time kept or, ``used`` being 1 for all arcs, shrunk. ``own`` int64 ns a moment,
    ``owned`` int64 ns an owner: the sum of its own moments, of a pause how long it was.
    """

    used: UInt8
    own: Int64
    owned: Int64


@dataclass(frozen=True)
class Network:
    """``nodes`` says how moments and owners are numbered. A moment each: ``time`` int64 ns as recorded, ``before`` int32 (on
    its thread), ``owner`` int32 whose time it ends, NOBODY for a latency; ``order`` int32: the moments, each behind what it
    depends on. ``first``, ``source``, ``lag``: its arcs (see passes). ``chained``: the threads. ``kept`` and ``shrunk``: the
    two ways to take unknown time. ``cut``: what is not known, how often, by name; ``unknown`` bool a row: its own time holds
    a wait for it.
    """

    linked: Linked
    nodes: Nodes
    time: Int64
    before: Int32
    owner: Int32
    order: Int32
    first: Int64
    source: Int32
    lag: Int64
    chained: Chains
    meets: Meets
    kept: Way
    shrunk: Way
    cut: Mapping[str, int]
    unknown: Mask

    def held(self, used: UInt8) -> "Held":
        """What holds moments up, with the arcs ``used``."""
        from teller_core.judge.replay.passes import Held

        return Held(self.before, self.first, self.source, self.lag, used)

    @property
    def owners(self) -> int:
        """How many owners of time there are."""
        return self.nodes.lane_owner + len(self.linked.lane_part)


def network(linked: Linked) -> Network:
    """The moments of ``linked`` and what they depend on. Linear in rows and edges but for sorting; the loops are compiled."""
    cut: Counter[str] = Counter()
    meets = meets_of(linked, names_of(linked, linked.calls.row), cut)
    nodes = Nodes(len(linked), len(linked.stops.at), len(linked.calls.kind), len(meets.of))
    chained = chains(linked, nodes)
    time, before, owner = _moments(linked, nodes, chained, meets)
    hard = arcs_of(linked, nodes, meets)
    base = _built(time, before, hard, [], cut)
    left = _left(time, before, base, np.ones(len(base.source), dtype=np.uint8))
    guessed = guesses(linked, nodes, chained, left)
    built = _built(time, before, [*hard, guessed.sure], [guessed.perhaps], cut)
    moments = (time, before, owner)
    kept = _way(linked, nodes, moments, built, built.certain)
    shrunk = _way(linked, nodes, moments, built, np.ones(len(built.certain), dtype=np.uint8))
    unknown = _unknown(linked, nodes, (chained, guessed), (kept, meets), cut)
    return Network(
        linked=linked,
        nodes=nodes,
        time=time,
        before=before,
        owner=owner,
        order=built.order,
        first=built.first,
        source=built.source,
        lag=built.lag,
        chained=chained,
        meets=meets,
        kept=kept,
        shrunk=shrunk,
        cut={name: count for name, count in cut.items() if count},
        unknown=unknown,
    )


def unclaimed(graph: Network) -> str:
    """Why replay claims nothing of these rows; empty where it does: too much of a rank's time holds waits for what is not
    known.
    """
    linked, rows = graph.linked, np.flatnonzero(graph.unknown)
    if not len(rows):
        return ""
    part = linked.lane_part[linked.lane]
    ns = np.bincount(part[rows], weights=graph.kept.owned[rows], minlength=len(linked.parts))
    timed = np.flatnonzero(linked.host | linked.work)
    lasted = int(linked.end[timed].max()) - int(linked.start[timed].min())
    if ns.max() < MATERIAL * lasted:
        return ""
    about = {name: count for name, count in graph.cut.items() if name not in (UNKNOWN_USE, AGAINST_TIME)}
    return f"replay makes no claim: {max(about, key=lambda name: about[name])}"


def names_of(linked: Linked, rows: Int32) -> list[str]:
    """The names of rows; empty for calls that are in no part."""
    first = linked.first
    of = np.searchsorted(first, rows, side="right") - 1
    out: list[str] = []
    for row, at in zip(rows.tolist(), of.tolist(), strict=True):
        part = int(at)
        if part < len(linked.parts):
            trace = linked.parts[part].tree.trace
            out.append(trace.names[int(trace.name[row - int(first[part])])])
        else:
            out.append("")
    return out


def named(linked: Linked, pattern: Pattern[str]) -> Mask:
    """bool a row: ``pattern`` is found in its name."""
    found = [np.zeros(len(linked) - int(linked.first[-1]), dtype=np.bool_)]
    for part in reversed(linked.parts):
        trace = part.tree.trace
        hit = np.zeros(len(trace.names), dtype=np.bool_)
        for name in np.unique(trace.name):
            hit[name] = pattern.search(trace.names[int(name)]) is not None
        found.insert(0, hit[trace.name])
    return np.concatenate(found)


def _moments(linked: Linked, nodes: Nodes, chained: Chains, meets: Meets) -> tuple[Int64, Int32, Int32]:
    """The time of each moment, the one before it on its thread, and whose time it ends."""
    count = nodes.pieces + 2 * chained.pieces
    time = np.concatenate([linked.start, linked.end, meets.time, np.zeros(2 * chained.pieces, dtype=np.int64)])
    time[chained.order] = chained.time
    before, owner = np.full(count, NOBODY, dtype=np.int32), np.full(count, NOBODY, dtype=np.int32)
    before[chained.order] = chained.before
    owner[chained.order] = np.where(chained.before == NOBODY, NOBODY, chained.owner)
    work = np.flatnonzero(linked.work)
    owner[work + nodes.rows] = work
    owner[nodes.met : nodes.pieces] = meets.of + nodes.meeting_owner
    return time, before, owner


class _Built(NamedTuple):
    first: Int64
    source: Int32
    lag: Int64
    certain: UInt8
    order: Int32


def _built(time: Int64, before: Int32, hard: Sequence[Arcs], perhaps: Sequence[Arcs], cut: Counter[str]) -> _Built:
    """The arcs by the moment that they lead to, and an order. Where moments wait for one another in a circle, arcs that run
    against time are left out.
    """
    parts = [*hard, *perhaps]
    source = np.concatenate([part.before for part in parts]).astype(np.int32)
    target = np.concatenate([part.after for part in parts]).astype(np.int32)
    lag = np.concatenate([part.lag for part in parts])
    certain = np.repeat(np.array([1] * len(hard) + [0] * len(perhaps), np.uint8), [len(part.lag) for part in parts])
    built, whole = _sorted(before, source, target, lag, certain)
    for right in (time[source] <= time[target], time[source] < time[target]):
        if whole:
            break
        cut[AGAINST_TIME] = int((~right).sum())
        built, whole = _sorted(before, source[right], target[right], lag[right], certain[right])
    return built


def _sorted(before: Int32, source: Int32, target: Int32, lag: Int64, certain: UInt8) -> tuple[_Built, bool]:
    """Arcs by the moment that they lead to, and an order of the moments; whether it has all of them."""
    found = in_order(before, source, target)
    built = _Built(found.first, source[found.sort], lag[found.sort], certain[found.sort], found.order)
    return built, found.whole


class Sorted(NamedTuple):
    """``sort`` int64: arcs by the moment that they lead to; ``first`` int64, one more than there are moments: where those of each
    begin. ``order`` int32: the moments, each behind what it depends on; ``whole``: all of them, as none waits for itself.
    """

    first: Int64
    sort: Int64
    order: Int32
    whole: bool


def in_order(before: Int32, source: Int32, target: Int32) -> Sorted:
    """The arcs from the moments ``source`` to ``target``, and the moments, which also depend on the one ``before`` each."""
    from teller_core.judge.replay import passes

    count = len(before)
    first, place = np.zeros(count + 1, dtype=np.int64), np.empty(count, dtype=np.int64)
    sort, order = np.empty(len(target), dtype=np.int64), np.empty(count, dtype=np.int32)
    passes.sort_arcs(target, first, place, sort)
    none, zeros = np.full((2, count), NOBODY, dtype=np.int32), np.zeros(count, dtype=np.int32)
    room = (none[0], zeros, none[1], np.empty(len(source), dtype=np.int32))
    done = passes.topological(before, (source[sort], target[sort]), room, order)
    return Sorted(first, sort, order, done == count)


def _left(time: Int64, before: Int32, built: _Built, used: UInt8) -> Int64:
    from teller_core.judge.replay import passes

    own = np.empty(len(time), dtype=np.int64)
    passes.remainders(passes.Held(before, built.first, built.source, built.lag, used), time, own)
    return own


def _way(linked: Linked, nodes: Nodes, moments: tuple[Int64, Int32, Int32], built: _Built, used: UInt8) -> Way:
    time, before, owner = moments
    own = _left(time, before, built, used)
    owned = np.zeros(nodes.lane_owner + len(linked.lane_part), dtype=np.int64)
    mine = owner != NOBODY
    np.add.at(owned, owner[mine], own[mine])
    stops = owned[nodes.stop_owner : nodes.meeting_owner]  # one pause stops several threads, each for as long
    stops[:] = np.where(stops > 0, linked.stops.end - linked.stops.start, 0)
    owned[nodes.meeting_owner : nodes.lane_owner] = 0  # nor do the exchanges of a meeting take longer for being several
    met = slice(nodes.met, nodes.pieces)
    np.maximum.at(owned, owner[met], own[met])
    return Way(used, own, owned)


def _unknown(
    linked: Linked, nodes: Nodes, told_by: tuple[Chains, Guesses], known: tuple[Way, Meets], cut: Counter[str]
) -> Mask:
    """bool a row: how long it was at work and how long it waited cannot be told apart."""
    (chained, guessed), (kept, meets) = told_by, known
    told = np.zeros(len(linked), dtype=np.bool_)
    told[linked.graph.after[linked.graph.of(Kind.WAIT)]] = True
    explained = chained.owner[guessed.what == Silence.WAIT]
    told[explained[explained < nodes.rows]] = True
    waits = named(linked, BLOCKING) & linked.host & (linked.layer == Layer.RUNTIME) & ~told
    waits &= kept.own[nodes.rows : nodes.met] > SHORT_ON_DEVICE
    cut[NOT_HERE] += int(waits.sum())
    launched = np.zeros(len(linked), dtype=np.bool_)
    launched[linked.graph.after[linked.graph.of(Kind.LAUNCH)]] = True
    cut[LAUNCHED_BEFORE] += int((linked.work & ~launched).sum())
    cut[UNKNOWN_USE] += int(guessed.other.sum())
    calls = np.zeros(len(linked), dtype=np.bool_)
    calls[linked.calls.row[~meets.known[linked.calls.meeting]]] = True
    return waits | calls
