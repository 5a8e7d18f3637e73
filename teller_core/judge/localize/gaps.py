"""Silence inside a step: host time that no operator covers."""

from dataclasses import dataclass

import numpy as np

from teller_core.data.assessment import MATERIAL, SURPRISING, Candidates
from teller_core.data.table import Float64, Int32, Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree
from teller_core.judge.classes import SLACK, capped
from teller_core.judge.localize.scene import Scene
from teller_core.judge.regress import MIN_PEERS
from teller_core.judge.robust import NORMAL_MAD

LEAST_SPREAD = 0.15
"""The sum of many short silences is not known more closely than this."""
LEAST = 1_000.0
"""ns: a silence shorter than a microsecond is none."""


@dataclass(frozen=True)
class _Silence:
    """One row a step: ``step`` int32; ``low``, ``high`` int64 into ``rows``, its outermost operators; ``total`` float64 ns.
    ``before`` int64 ns: the silence before each of ``rows``; ``tail`` int64 ns: the one behind the last.
    """

    step: Int32
    low: Int64
    high: Int64
    total: Float64
    tail: Int64
    rows: Int64
    before: Int64


def find(scene: Scene) -> Candidates:
    """Candidates of one rank, one a step at most: ``value`` is the step's silence on the thread that does most of its work,
    ``normal`` that of its class; ``row`` is the innermost span around the longest silence, else the operator behind it.
    """
    silence = _silences(scene)
    normal, residual = _against_class(scene, silence)
    material = silence.total - normal >= MATERIAL * scene.lasted[silence.step]
    keep = np.flatnonzero(material & (residual >= SURPRISING))
    tree = scene.spans.tree
    row = np.array([_longest(tree, silence, int(i)) for i in keep], dtype=np.int32)
    value, usual = np.round(silence.total[keep]).astype(np.int64), np.round(normal[keep]).astype(np.int64)
    return Candidates(
        step=silence.step[keep],
        rank=np.full(len(keep), scene.spans.rank, dtype=np.int32),
        row=row,
        name=[tree.trace.names[int(n)] for n in tree.trace.name[row]],
        layer=np.full(len(keep), Layer.ENGINE, dtype=np.uint8),
        value=value,
        normal=usual,
        residual=residual[keep],
        excess=value - usual,
        baseline=np.full(len(keep), -1, dtype=np.int32),
        method=["gap"] * len(keep),
    )


def _silences(scene: Scene) -> _Silence:
    rows = _outermost(scene)
    trace, step = scene.spans.tree.trace, scene.spans.step[rows]
    opened, closed = scene.window
    start, end = trace.start[rows], trace.end[rows]
    first = np.append(True, step[1:] != step[:-1]) if len(rows) else np.empty(0, dtype=np.bool_)
    low = np.flatnonzero(first)
    high = np.append(low[1:], len(rows)) if len(low) else low
    since = np.where(first, opened[step], np.append(np.int64(0), end[:-1])) if len(rows) else start
    before = np.maximum(np.minimum(start, closed[step]) - since, 0)
    tail = np.maximum(closed[step[low]] - end[high - 1], 0)
    total = (np.add.reduceat(before, low) + tail).astype(np.float64) if len(low) else np.empty(0)
    return _Silence(step[low], low, high, total, tail, rows, before)


def _outermost(scene: Scene) -> Int64:
    """int64 rows, ascending: operators of steps that lie in no other operator, on the thread that has most of their time."""
    tree = scene.spans.tree
    inside = np.zeros(len(tree) + 1, dtype=np.int32)
    work = scene.operators & ~tree.trace.on_device
    inside[:-1] = work
    np.subtract.at(inside, tree.stop[work], np.int32(1))
    rows = np.flatnonzero(work & (np.cumsum(inside)[:-1] == 1) & (scene.spans.step >= 0))
    lane = tree.trace.lane[rows]
    busy = np.bincount(lane, weights=tree.trace.dur[rows], minlength=1)
    return rows[lane == int(np.argmax(busy))].astype(np.int64)


def _against_class(scene: Scene, silence: _Silence) -> tuple[Float64, Float64]:
    """ns of silence usual in each step's class, and the residual; NaN where the class has too few steps."""
    log = np.log(silence.total + LEAST)
    cls = scene.classes.of[silence.step]
    middle, spread = np.full((1, len(scene.classes.text)), np.nan), np.full(len(scene.classes.text), np.nan)
    for c in np.unique(cls).tolist():
        mine = log[cls == c]
        if len(mine) >= MIN_PEERS:
            middle[0, c] = np.median(mine)
            spread[c] = max(float(np.median(np.abs(mine - middle[0, c]))) * NORMAL_MAD, LEAST_SPREAD)
    fair = capped(middle, scene.classes, scene.classes.tokens.pivot)[0]
    lower = fair < middle[0]
    spread[lower] = np.minimum(spread[lower], np.hypot(np.nanmin(spread[~lower], initial=np.inf), SLACK))
    return np.exp(fair[cls]) - LEAST, (log - fair[cls]) / spread[cls]


def _longest(tree: Tree, silence: _Silence, index: int) -> int:
    """The innermost row around the longest silence of a step, else the operator that it touches."""
    low, high = int(silence.low[index]), int(silence.high[index])
    at = low + int(np.argmax(silence.before[low:high]))
    row = int(silence.rows[at])
    begin, end = int(tree.trace.start[row]) - int(silence.before[at]), int(tree.trace.start[row])
    if int(silence.tail[index]) > int(silence.before[at]):
        row = int(silence.rows[high - 1])
        begin = int(tree.trace.start[row] + tree.trace.dur[row])
        end = begin + int(silence.tail[index])
    above = int(tree.parent[row])
    while above != ROOT:
        if int(tree.trace.start[above]) <= begin and end <= int(tree.trace.start[above] + tree.trace.dur[above]):
            return above
        above = int(tree.parent[above])
    return row
