"""What a fault does to one run of a piece: what it adds to the time of which moments, and by how much it stretches them."""

import re
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.graph import Kind
from teller_core.data.table import Float64, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.judge.replay.network import names_of
from teller_core.lab.perturb.altering import Altered, Wait
from teller_core.lab.perturb.pieces import Piece

COPY = re.compile(r"^(?:Memcpy|Memset)", re.I)
HIP = re.compile(r"^hip[A-Z]")
AWAKE = 5_000
"""ns: a call returns this soon behind the work that it waited for. In real traces of six devices it took 2 to 13 us."""


class Target(NamedTuple):
    """What is struck in all runs of an episode: one ``part`` of the graph, -1 for all; ``names``: the operators at fault."""

    part: int
    names: tuple[str, ...] = ()


class Given(NamedTuple):
    """What a fault may choose its target in. ``took`` int64 ns [steps]: from the begin to the end of each step."""

    capture: Capture
    piece: Piece
    took: Int64


class Blow(NamedTuple):
    """``factor``: how hard, 1.05 to 10. ``touched`` bool [steps]: which ones it strikes."""

    given: Given
    target: Target
    factor: float
    touched: Mask
    chance: np.random.Generator


class Struck(NamedTuple):
    """``on``: the piece that is replayed. A moment of it takes ``times`` float64 as long, and ``more`` int64 ns. ``stops``:
    moments before which all of a process stood still, and ns.
    """

    on: Altered
    times: Float64
    more: Int64
    stops: tuple[tuple[int, int], ...] = ()


class Launch(NamedTuple):
    """int64 a launch, by the time of the call: ``call``, a row of the host, and ``work``, the row that it gave to a device."""

    call: Int64
    work: Int64


def untouched(on: Altered) -> Struck:
    """Nothing done to ``on``."""
    count = len(on.piece.graph.time)
    return Struck(on, np.ones(count), np.zeros(count, dtype=np.int64))


def launches(piece: Piece, part: int, touched: Mask | None = None) -> Launch:
    """What the host of a part gave to its device, in the touched steps alone where these are given."""
    rows = piece.linked
    edge = np.flatnonzero(rows.graph.of(Kind.LAUNCH))
    call, work = rows.graph.before[edge].astype(np.int64), rows.graph.after[edge].astype(np.int64)
    mine = rows.work[work] & rows.host[call] & (rows.lane_part[rows.lane[call]] == part) & (piece.of_row[call] >= 0)
    if touched is not None:
        mine &= touched[piece.of_row[call]]
    call, work = call[mine], work[mine]
    order = np.argsort(rows.start[call], kind="stable")
    return Launch(call[order], work[order])


def with_device(piece: Piece) -> list[int]:
    """The parts whose host gave something to a device."""
    return [part for part in range(len(piece.linked.parts)) if len(launches(piece, part).call)]


def names(piece: Piece, rows: Int64) -> list[str]:
    """Of rows."""
    return names_of(piece.linked, rows.astype(np.int32))


def kernels(piece: Piece, part: int, touched: Mask | None = None) -> Int64:
    """Rows that computed on the device of a part (of all: -1), no copies and no communication."""
    rows = piece.linked
    mine = rows.work & (rows.layer == Layer.KERNEL) & in_part(piece, part) & _in(piece, touched)
    row = np.flatnonzero(mine)
    copies = np.array([COPY.match(name) is not None for name in names(piece, row)], dtype=np.bool_)
    return row[~copies]


def in_part(piece: Piece, part: int) -> Mask:
    """bool a row: it is in this part; in any for -1."""
    rows = piece.linked
    return np.full(len(rows), True) if part < 0 else rows.lane_part[rows.lane] == part


def _in(piece: Piece, touched: Mask | None) -> Mask:
    known = piece.of_row >= 0
    return known if touched is None else known & touched[np.maximum(piece.of_row, 0)]


def of_owner(piece: Piece, rows: Int64) -> Int64:
    """The moments whose time is that of ``rows``."""
    graph = piece.graph
    mine = np.zeros(graph.owners, dtype=np.bool_)
    mine[rows] = True
    return np.flatnonzero((graph.owner >= 0) & mine[np.maximum(graph.owner, 0)])


def host_moments(piece: Piece, part: int, touched: Mask, *, main: bool) -> Int64:
    """The moments of a part's threads, or of its main one, in the touched steps, that end something which took time."""
    graph, rows = piece.graph, piece.linked
    of = piece.of_moment
    moment = np.flatnonzero((graph.owner >= 0) & (graph.before >= 0) & (of >= 0) & touched[np.maximum(of, 0)])
    moment = moment[moment < graph.nodes.met]
    row = moment % graph.nodes.rows
    mine = rows.host[row] & (rows.lane_part[rows.lane[row]] == part)
    if main:
        mine &= rows.lane[row] == piece.main(part)
    return moment[mine]


def last_given(piece: Piece, part: int, call: int) -> list[int]:
    """The last work of each stream of a part that its host had given when its ``call`` (a row) was over."""
    rows, found = piece.linked, launches(piece, part)
    work = found.work[(rows.start[found.call] < rows.end[call]) | (found.call == call)]
    lane = rows.lane[work]
    return [int(own[np.argmax(rows.start[own])]) for own in (work[lane == each] for each in np.unique(lane).tolist())]


def waits_for_all(on: Altered, part: int, row: int, call: int) -> list[Wait]:
    """The added ``row`` returns when the device has done all that it had been given when ``call`` was over."""
    rows = on.piece.graph.nodes.rows
    return [Wait(work + rows, row + rows, AWAKE) for work in last_given(on.piece, part, call)]


def called(piece: Piece, part: int, what: str) -> str:
    """The name of a call in the words of the part's own runtime: ``DeviceSynchronize`` of CUDA's or HIP's."""
    hip = any(HIP.match(name) for name in piece.linked.parts[part].tree.trace.names)
    return f"{'hip' if hip else 'cuda'}{what}"


def category(piece: Piece, row: int) -> str:
    """The producer's word for what ``row`` is."""
    rows = piece.linked
    at = piece.part(row)
    trace = rows.parts[at].tree.trace
    return trace.categories[int(trace.category[row - int(rows.first[at])])]
