"""The calls of every place in every step, over all ranks of a capture."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.long_columns import kept, let_go, taken
from teller_core.data.plain_names import plain_name
from teller_core.data.shapes import shapes_of
from teller_core.data.table import Float64, Int32, Int64, Mask, Text
from teller_core.data.tree import GOLDEN, Tree
from teller_core.judge.classes import Classes
from teller_core.judge.places import own_time, place_of, step_rows, symbols
from teller_core.judge.robust import Float32, UInt64, factorize, grouped

BLOCK = 1 << 20
"""Rows looked at together."""
MOST_SHAPES = 80
"""Characters of shapes that stand in a place."""
LEAST = 500
"""ns: shorter own times are clock noise (Kineto's clock ticks in microseconds to tens of nanoseconds)."""
CLASS = np.uint64(0xD6E8FEB86659FD93)


@dataclass(frozen=True)
class Runs:
    """The calls of one place in one step: ``group`` and ``step`` int32, ``begin`` and ``stop`` int64 into ``Spans.order``."""

    group: Int32
    step: Int32
    begin: Int64
    stop: Int64


class Place(NamedTuple):
    """What a group is called. ``cls``: the class of its steps; ``shaped``: its calls have one set of shapes."""

    name: str
    place: str
    layer: int
    cls: int
    shaped: bool = False


@dataclass(frozen=True)
class RankSpans:
    """The rows of one rank with their own times, its groups (a place in a class of steps), and for each group its key, its
    class and a row that stands for it. ``rank``: position in ``Capture.ranks``; ``top``: the first row of a row's step.

    ``shaped`` bool a group: calls that differ in their shapes are told apart, because their step does not tell its work.
    ``steps`` int32 a class: how many of its steps this rank has a profile of.
    """

    rank: int
    tree: Tree
    step: Int32
    top: Int32
    own: Int64
    value: Float32
    group: Int32
    order: Int32
    key: UInt64
    path: UInt64
    cls: Int32
    example: Int32
    shaped: Mask
    steps: Int32


@dataclass(frozen=True)
class Groups:
    """The groups of all ranks, joined by key. A list entry a rank: ``of`` int32: the group of each row; ``runs``. A group each:
    ``calls`` float64: the median of its calls in a step of its class, steps without one counted as 0, NaN outside steps;
    ``places``; ``raw``: the names as they were read.
    """

    of: Sequence[Int32]
    runs: Sequence[Runs]
    calls: Float64
    places: Sequence[Place]
    raw: Text

    def __len__(self) -> int:
        return len(self.places)


def rank_spans(capture: Capture, rank: int, tree: Tree, classes: Classes) -> RankSpans:
    """Group the rows of the rank at position ``rank`` by place and class of step."""
    let_go(*tree.columns())
    work = capture.work
    mine = np.flatnonzero((work.rank == rank) & (work.row >= 0))
    step, top = map(kept, step_rows(len(tree), work.step[mine], work.row[mine], work.row_stop[mine]))
    cls = np.append(classes.of, np.int32(0))
    key, path = _keys(tree, step, top, cls)
    unknown = np.append(np.isnan(classes.tokens.x), True)
    _tell_shapes_apart(key, tree, step, unknown)
    group, order, first = factorize(key)
    example = order[first]
    key, path = key[example], path[example]
    own = kept(own_time(tree))
    let_go(*tree.columns())
    value = kept(np.log(np.maximum(own, LEAST).astype(np.float32)))
    let_go(step, top, own, value)
    return RankSpans(
        rank=rank,
        tree=tree,
        step=step,
        top=top,
        own=own,
        value=value,
        group=kept(group),
        order=kept(order),
        key=key,
        path=path,
        cls=cls[step[example]],
        example=example,
        shaped=unknown[step[example]],
        steps=np.bincount(classes.of[np.unique(work.step[mine])], minlength=len(classes.text)).astype(np.int32),
    )


def _keys(tree: Tree, step: Int32, top: Int32, cls: Int32) -> tuple[UInt64, UInt64]:
    """uint64 a row: what tells its group from others, and its chain."""
    kind, names, links = symbols(tree.trace)
    path = kept(tree.paths(links[kind], top))
    key = names[kind].view(np.uint64)
    key *= GOLDEN
    key += path
    key ^= (cls[step].astype(np.uint64) * np.uint64(2) + (step >= 0)) * CLASS
    let_go(path, step, top, *tree.columns())
    return key, path


def _tell_shapes_apart(key: UInt64, tree: Tree, step: Int32, unknown: Mask) -> None:
    """Change ``key`` in place by what a row was called with, in steps that do not tell their work (``unknown`` a step, the last
    for rows outside steps): shapes are all that is known of it there.
    """
    arg = tree.trace.arg
    code = np.zeros(len(tree.trace.args) + 1, dtype=np.uint64)
    seen = np.zeros(len(code), dtype=np.bool_)
    for low in range(0, len(key), BLOCK):
        part = slice(low, low + BLOCK)
        used = np.where(unknown[step[part]], arg[part], -1)
        for one in map(int, np.flatnonzero(np.bincount(used + 1, minlength=len(code))[1:] > 0)):
            if not seen[one]:
                seen[one], code[one] = True, _number(shapes_of(tree.trace.args[one]))
        key[part] ^= code[used] * GOLDEN
    let_go(step, *tree.columns())


def _number(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little") | 1 if text else 0)


def join(ranks: Sequence[RankSpans]) -> Groups:
    """One set of groups for all ``ranks`` (at least one)."""
    unique = np.unique_all(np.concatenate([spans.key for spans in ranks]))
    first, joined = unique.indices.astype(np.int64), unique.inverse_indices
    cut = np.cumsum([0, *[len(spans.key) for spans in ranks]])
    into = [joined[low:high].astype(np.int32) for low, high in pairwise(cut.tolist())]
    owner = np.searchsorted(cut, first, side="right") - 1
    example = [(int(o), int(i)) for o, i in zip(owner.tolist(), (first - cut[owner]).tolist(), strict=True)]
    passed: list[dict[int, int]] = [{} for _ in ranks]
    runs = [_runs(spans, to) for spans, to in zip(ranks, into, strict=True)]
    return Groups(
        of=[taken(to, spans.group) for to, spans in zip(into, ranks, strict=True)],
        runs=runs,
        calls=_calls(ranks, into, runs, len(first)),
        places=[_place(ranks[rank], index, passed[rank]) for rank, index in example],
        raw=[_raw(ranks[rank], index) for rank, index in example],
    )


def slimmed(spans: RankSpans) -> RankSpans:
    """``spans`` without the columns that only :func:`join` needs."""
    return replace(spans, top=spans.top[:0].copy(), group=spans.group[:0].copy())


def _runs(spans: RankSpans, into: Int32) -> Runs:
    """The calls of each place in each step of one rank. Rows of a step are neighbours, so a run ends where either changes."""
    group, step = spans.group[spans.order], spans.step[spans.order]
    begin = np.flatnonzero(np.append(True, (group[1:] != group[:-1]) | (step[1:] != step[:-1])))
    return Runs(into[group[begin]], step[begin], begin, np.append(begin[1:], len(group)))


def _calls(ranks: Sequence[RankSpans], into: Sequence[Int32], runs: Sequence[Runs], groups: int) -> Float64:
    """float64 a group: the median of its calls in a step of its class, steps without a call counted as 0; NaN outside steps."""
    every = np.zeros(groups, dtype=np.int64)
    for spans, to in zip(ranks, into, strict=True):
        every[to] += spans.steps[spans.cls]
    inside = [run.step >= 0 for run in runs]
    group = np.concatenate([run.group[i] for run, i in zip(runs, inside, strict=True)])
    count = np.concatenate([(run.stop - run.begin)[i] for run, i in zip(runs, inside, strict=True)])
    ranked = grouped(group, count.astype(np.float32), groups)
    at = every // 2 - (every - ranked.count)
    value = np.append(ranked.value, np.float32(0))
    middle = value[np.minimum(ranked.offset[:-1] + np.maximum(at, 0), len(value) - 1)]
    return np.where(ranked.count > 0, np.where(at >= 0, middle, 0.0), np.nan).astype(np.float64)


def _raw(spans: RankSpans, index: int) -> str:
    """What the spans of the rank's own group ``index`` are called in the trace."""
    trace = spans.tree.trace
    return trace.names[int(trace.name[spans.example[index]])]


def _place(spans: RankSpans, index: int, passed: dict[int, int]) -> Place:
    """What the rank's own group ``index`` is called."""
    row = int(spans.example[index])
    trace = spans.tree.trace
    layer = int(trace.layer[row])
    name = plain_name(trace.names[int(trace.name[row])], layer)
    place = place_of(spans.tree, row, int(spans.top[row]), int(spans.path[index]), passed)
    arg = int(trace.arg[row])
    called = shapes_of(trace.args[arg]) if spans.shaped[index] and arg >= 0 else ""
    if called:
        place = f"{place} ({called[:MOST_SHAPES]})".lstrip()
    return Place(name, place, layer, int(spans.cls[index]), bool(called))
