"""Faults that make what was done take longer: kernels, operators, links, threads, ranks."""

import numpy as np

from teller_core.data.graph import Kind
from teller_core.data.table import Int64
from teller_core.data.trace import Layer
from teller_core.lab.perturb.altering import as_it_is
from teller_core.lab.perturb.blows import (
    Blow,
    Given,
    Struck,
    Target,
    host_moments,
    in_part,
    kernels,
    names,
    of_owner,
    untouched,
    with_device,
)
from teller_core.lab.perturb.pieces import Piece

FELT = 0.04
"""A name with a smaller share of its side's time is not chosen: ten times of it would hardly be seen."""
COMPUTES = 0.85
"""What is bound by memory does not follow the clock wholly: kernels follow it from this share on."""
BURSTS = (2, 6)
HELD = (0.3, 0.6)
"""The share of a step's kernels that a neighbor holds up."""
PIECES_OF_STARVING = 400_000
"""ns: the mean time that a thread waits for a processor at once."""


def one_kernel(given: Given, chance: np.random.Generator) -> Target | None:
    """A kernel by its name."""
    name = _felt(given.piece, kernels(given.piece, -1), chance)
    return None if name is None else Target(-1, (name,))


def slow_kernel(blow: Blow) -> Struck:
    """Every call of one kernel takes longer."""
    piece = blow.given.piece
    return _longer(blow, _called(piece, kernels(piece, -1, blow.touched), blow.target.names))


def one_operator(given: Given, chance: np.random.Generator) -> Target | None:
    """An operator by its name."""
    name = _felt(given.piece, _operators(given.piece), chance)
    return None if name is None else Target(-1, (name,))


def slow_operator(blow: Blow) -> Struck:
    """Every call of one operator takes longer on the host."""
    piece = blow.given.piece
    rows = _operators(piece)
    return _longer(blow, _called(piece, rows[blow.touched[piece.of_row[rows]]], blow.target.names))


def a_device(given: Given, chance: np.random.Generator) -> Target | None:
    """One device, by the part whose it is."""
    parts = [part for part in with_device(given.piece) if len(kernels(given.piece, part))]
    return Target(int(chance.choice(parts))) if parts else None


def clock_down(blow: Blow) -> Struck:
    """All kernels of a device take longer, nearly alike."""
    piece = blow.given.piece
    row = kernels(piece, blow.target.part, blow.touched)
    name = names(piece, row)
    follows = {one: blow.chance.uniform(COMPUTES, 1.0) for one in dict.fromkeys(name)}
    made = untouched(as_it_is(piece))
    made.times[row + piece.graph.nodes.rows] = [1 + (blow.factor - 1) * follows[one] for one in name]
    return made


def contention(blow: Blow) -> Struck:
    """In bursts, the kernels of a device take longer by different factors, whatever they are."""
    piece, chance = blow.given.piece, blow.chance
    made = untouched(as_it_is(piece))
    for step in np.flatnonzero(blow.touched).tolist():
        alone = np.zeros_like(blow.touched)
        alone[step] = True
        row = kernels(piece, blow.target.part, alone)
        row = row[np.argsort(piece.linked.start[row], kind="stable")]
        bursts = int(chance.integers(*BURSTS, endpoint=True))
        size = max(1, round(len(row) * chance.uniform(*HELD) / bursts))
        for low in chance.integers(0, max(len(row) - size, 0) + 1, bursts).tolist():
            held = row[low : low + size] + piece.graph.nodes.rows
            made.times[held] = 1 + (blow.factor - 1) * chance.uniform(0.5, 1.5, len(held))
    return made


def a_link(given: Given, chance: np.random.Generator) -> Target | None:
    """The link between all ranks, where it is known when each of them came."""
    return Target(-1, _communication(given.piece)) if given.piece.graph.meets.known.any() else None


def slow_link(blow: Blow) -> Struck:
    """What ranks tell one another takes longer once all have come."""
    piece = blow.given.piece
    made = untouched(as_it_is(piece))
    moment = np.arange(piece.graph.nodes.met, piece.graph.nodes.pieces)
    mine = blow.touched[np.maximum(piece.of_moment[moment], 0)]
    made.times[moment[mine]] = blow.factor
    return made


def a_rank(given: Given, chance: np.random.Generator) -> Target | None:
    """One of the ranks that meet."""
    rows, graph = given.piece.linked, given.piece.graph
    if not graph.meets.known.any():
        return None
    calls = rows.calls.row[graph.meets.known[rows.calls.meeting]]
    parts = np.unique(rows.lane_part[rows.lane[calls]])
    return Target(int(chance.choice(parts)), _communication(given.piece)) if len(parts) > 1 else None


def late_rank(blow: Blow) -> Struck:
    """A rank comes late to the first collective of each step: its thread did something else before."""
    piece, given = blow.given.piece, blow.given
    rows, made = piece.linked, untouched(as_it_is(piece))
    call = rows.calls.row[in_part(piece, blow.target.part)[rows.calls.row]].astype(np.int64)
    call = call[np.argsort(rows.start[call], kind="stable")]
    for step in np.flatnonzero(blow.touched).tolist():
        mine = call[piece.of_row[call] == step]
        if len(mine):
            made.more[_asked(piece, int(mine[0]))] += round((blow.factor - 1) * int(given.took[step]))
    return made


def a_process(given: Given, chance: np.random.Generator) -> Target | None:
    """One process with threads."""
    parts = [part for part in range(len(given.piece.linked.parts)) if given.piece.main(part) >= 0]
    return Target(int(chance.choice(parts))) if parts else None


def gc_pause(blow: Blow) -> Struck:
    """A process stands still once, in the middle of whatever it does."""
    piece, made = blow.given.piece, untouched(as_it_is(blow.given.piece))
    moment = host_moments(piece, blow.target.part, blow.touched, main=True)
    if not len(moment):
        return made
    at = int(blow.chance.choice(moment))
    ns = round((blow.factor - 1) * int(blow.given.took[piece.of_moment[at]]))
    made.more[at] += ns
    return made._replace(stops=((at, ns),))


def starved_host(blow: Blow) -> Struck:
    """The threads of a process wait for a processor, again and again, wherever they are."""
    piece, chance = blow.given.piece, blow.chance
    made = untouched(as_it_is(piece))
    moment = host_moments(piece, blow.target.part, blow.touched, main=False)
    own = np.maximum(piece.graph.kept.own[moment], 0).astype(np.float64)
    total = (blow.factor - 1) * own.sum()
    if total <= 0:
        return made
    times = int(np.clip(total / PIECES_OF_STARVING, 1, len(moment)))
    at = chance.choice(moment, times, p=own / own.sum())
    ns = chance.exponential(1.0, times)
    np.add.at(made.more, at, np.rint(ns * total / ns.sum()).astype(np.int64))
    return made


def _longer(blow: Blow, rows: Int64) -> Struck:
    made = untouched(as_it_is(blow.given.piece))
    made.times[of_owner(blow.given.piece, rows)] = blow.factor
    return made


def _called(piece: Piece, rows: Int64, wanted: tuple[str, ...]) -> Int64:
    return rows[np.array([name in wanted for name in names(piece, rows)], dtype=np.bool_)]


def _operators(piece: Piece) -> Int64:
    rows = piece.linked
    mine = rows.host & (rows.layer == Layer.OPERATOR) & (piece.of_row >= 0) & ~piece.graph.unknown
    return np.flatnonzero(mine)


def _felt(piece: Piece, rows: Int64, chance: np.random.Generator) -> str | None:
    """One of the names that have a share of the time of ``rows`` that is felt."""
    total: dict[str, int] = {}
    for name, ns in zip(names(piece, rows), piece.graph.kept.owned[rows].tolist(), strict=True):
        total[name] = total.get(name, 0) + max(ns, 0)
    whole = sum(total.values())
    felt = sorted(name for name, ns in total.items() if ns > FELT * whole)
    return str(chance.choice(np.array(felt, dtype=object))) if felt else None


def _communication(piece: Piece) -> tuple[str, ...]:
    rows = piece.linked
    mine = np.flatnonzero((rows.layer == Layer.COMMUNICATION) & (piece.of_row >= 0))
    return tuple(sorted(set(names(piece, mine)) - {""}))


def _asked(piece: Piece, call: int) -> int:
    """The moment at which the host began what led to ``call``."""
    rows = piece.linked
    edge = np.flatnonzero(rows.graph.of(Kind.LAUNCH) & (rows.graph.after == call))
    row = int(rows.graph.before[edge[0]]) if len(edge) else call
    return row if rows.host[row] else call
