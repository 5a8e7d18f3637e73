"""The causal slice of a step: the spans that bear on it, cut to what an assistant can read.

Kept first are the chains from the step down to each suspected span, then those to what it waited for or what waited for it, on
this rank or another, then what else bears on it by :mod:`relevance`. The rest of the step is merged by place (calls of one name
below one line are one line with a count), and the heaviest such lines fill what is left of the budget: at least half of what the
chains left, so that a slice shows where the time of the step went. Parents come before children and siblings stand in the order
of their first start; device work stands under the call that launched it.
"""

import heapq
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from teller_core.context.dependencies import StepSpans, dependencies
from teller_core.context.merging import Merged, merged_by_place
from teller_core.context.relevance import RULE, Bearing, Rule, bearing, kept
from teller_core.data.assessment import Candidates
from teller_core.data.plain_names import MODULE
from teller_core.data.report import SliceLine
from teller_core.data.table import Int64, Mask
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree

CHARACTERS_A_TOKEN = 2
"""Rows of numbers cost assistants about a token for every two characters; words cost less, so a slice never costs more."""
LEAST_SHARE = 0.002
"""A line that holds less than this share of its step tells nothing."""
FRAME_SHARE = 0.01
"""Python frames with less own time than this share of the step are passed over: stacks run to a hundred frames."""
RELEVANT_SHARE = 0.5
"""Of what the chains left of the budget, at most, goes to what else bears on the suspected spans."""
MISFITS = 100
"""So many lines that found no room tell that there is none: a step may have a million names."""


class Cut(NamedTuple):
    """What is kept of one rank. ``tokens`` the lines cost; ``events`` the step has here; ``cut`` of them are in no line;
    ``missed`` suspected spans found no place in the budget, nor did ``unpaired`` spans that waited for one or were waited for.
    """

    lines: list[SliceLine]
    tokens: int
    events: int
    cut: int
    missed: int
    unpaired: int = 0


class Room(NamedTuple):
    """What a slice may cost: ``tokens`` of the assistant that reads it, and ``nodes``, its lines."""

    tokens: int
    nodes: int = 1 << 30


def causal_slice(
    spans: StepSpans,
    found: Candidates,
    *,
    begin: int,
    room: Room,
    text: Callable[[str], str],
    bears: Bearing | None = None,
    rule: Rule = RULE,
) -> Cut:
    """The slice of one step on one rank within ``room``.

    ``found``: the candidates of this step and rank, with rows of the rank's whole tree; ``begin``: ns on the rank's clock;
    ``text`` cleans and shortens a name; ``bears``: what bears on the candidates of all ranks, one entry a row of this tree; by
    default what bears on those of this rank. Room for too little keeps the suspected spans that add most.
    """
    tree = spans.tree
    if not len(tree):
        return Cut([], 0, 0, 0, len(found.step))
    suspects = suspected(found, spans.first, len(tree))
    own, weight = tree.self_time(), _weight(tree)
    longest = float(tree.trace.dur[tree.parent == ROOT].max())
    passed = _frames(tree) & (own < FRAME_SHARE * longest)
    chains = [_chain(tree, row, passed) for row in suspects]
    bears = bears if bears is not None else own_bearing(tree, list(suspects), rule)
    near = kept(bears, weight, rule).tolist()
    pairs = [_chain(tree, row, passed) for row in near if bears.paired[row] and row not in suspects]
    apart = passed | bears.paired | (weight < least_time(tree))
    beside = [row for row in near if row not in suspects and not apart[row]]
    pins = {row for chain in (*chains, *pairs) for row in chain}
    pins |= {row for row in beside if int(tree.parent[row]) not in suspects}
    pins |= {row for row in _heaviest(tree, weight) if not passed[row]}
    merged = merged_by_place(tree, (own, weight), np.array(sorted(pins), dtype=np.int64), passed)
    page = _Page(spans, merged=merged, suspects=suspects, begin=begin, room=room, text=text)
    for chain in chains:
        page.add(chain)
    for chain in pairs:
        if not page.add(chain):
            page.add(chain[-1:])  # that there was a wait says more than who called it
    page.add_some([_chain(tree, row, passed) for row in beside])
    page.fill()
    missed, unpaired = (sum(not page.has(chain[-1]) for chain in some) for some in (chains, pairs))
    lines = list(page.lines())
    shown = int(merged.count[list(page.kept)].sum()) if page.kept else 0
    return Cut(lines, page.spent, len(tree), len(tree) - shown, missed, unpaired)


def own_bearing(tree: Tree, candidates: list[int], rule: Rule = RULE) -> Bearing:
    """What bears on rows of a tree, by the dependencies in it alone."""
    if not candidates:
        return Bearing(np.zeros(len(tree)), np.zeros(len(tree), dtype=np.bool_))
    trace = tree.trace
    least = least_time(tree)
    rows = np.array(candidates, dtype=np.int64)
    return bearing(trace.start, trace.end, dependencies(tree), rows, rule=rule, least_wait=least)


def least_time(tree: Tree) -> int:
    """ns: what takes less, or waits for less, tells nothing about these rows."""
    return max(1, int(LEAST_SHARE * tree.trace.lasted))


class _Page:
    """Lines chosen so far. The one mutable thing here: a budget that is spent."""

    def __init__(
        self,
        spans: StepSpans,
        *,
        merged: Merged,
        suspects: dict[int, float],
        begin: int,
        room: Room,
        text: Callable[[str], str],
    ) -> None:
        self.spans, self.merged, self.suspects = spans, merged, suspects
        self.begin, self.room, self.text = begin, room, text
        self.kept: dict[int, SliceLine] = {}
        self.spent = 0

    def add(self, rows: list[int]) -> bool:
        """Keep the lines of ``rows``, all or none; whether there was room for it."""
        fresh: dict[int, SliceLine] = {}
        cost = 0
        for entry in (int(self.merged.of[row]) for row in rows):
            if (
                entry < 0 or entry in self.kept or entry in fresh
            ):  # no line stands for a frame that is passed over at the top
                continue
            fresh[entry] = self._line(entry)
            cost += price(fresh[entry])
            if self.spent + cost > self.room.tokens or len(self.kept) + len(fresh) > self.room.nodes:
                return False
        self.kept |= fresh
        self.spent += cost
        return True

    def has(self, row: int) -> bool:
        """Whether a line stands for ``row``."""
        return int(self.merged.of[row]) in self.kept

    def add_some(self, chains: list[list[int]]) -> None:
        """Keep the lines of the first of ``chains`` that fit the part of the room which is not for the heaviest."""
        whole = self.room
        left = Room(whole.tokens - self.spent, whole.nodes - len(self.kept))
        part = Room(*(most - round((1 - RELEVANT_SHARE) * rest) for most, rest in zip(whole, left, strict=True)))
        self.room = part
        for chain in chains:
            self.add(chain)
        self.room = whole

    def fill(self) -> None:
        """Spend what is left on the heaviest lines below those that are kept."""
        merged = self.merged
        least = LEAST_SHARE * float(merged.weight[merged.above < 0].max(initial=0.0))
        below: dict[int, list[int]] = {}
        for entry, above in enumerate(merged.above.tolist()):
            below.setdefault(above, []).append(entry)
        heap = [(-float(merged.weight[e]), e) for above in (-1, *self.kept) for e in below.get(above, ())]
        heapq.heapify(heap)
        misfits = 0
        while heap and misfits < MISFITS:
            weight, entry = heapq.heappop(heap)
            if -weight < least:
                break
            if entry not in self.kept and not self.add([int(merged.row[entry])]):
                misfits += 1
                continue
            for child in below.get(entry, ()):
                if child not in self.kept:
                    heapq.heappush(heap, (-float(merged.weight[child]), child))

    def lines(self) -> Iterator[SliceLine]:
        """The kept lines, parents before children, siblings by first start, each with its depth among kept lines."""
        below: dict[int, list[int]] = {}
        for entry in self.kept:
            above = int(self.merged.above[entry])
            while above >= 0 and above not in self.kept:
                above = int(self.merged.above[above])
            below.setdefault(above, []).append(entry)
        stack = [(0, e) for e in sorted(below.get(-1, ()), key=self._order, reverse=True)]
        while stack:
            depth, entry = stack.pop()
            yield self.kept[entry].model_copy(update={"depth": depth})
            stack.extend((depth + 1, e) for e in sorted(below.get(entry, ()), key=self._order, reverse=True))

    def _order(self, entry: int) -> tuple[int, int]:
        row = int(self.merged.row[entry])
        return int(self.spans.tree.trace.start[row]), row

    def _line(self, entry: int) -> SliceLine:
        row, trace = int(self.merged.row[entry]), self.spans.tree.trace
        residual = self.suspects.get(row)
        return SliceLine(
            handle=f"{self.spans.rank}:{self.spans.first + row}",
            depth=99,  # as long as a depth gets: the price is paid before the depth is known
            text=self.text(trace.names[int(trace.name[row])]),
            layer=Layer(int(trace.layer[row])).name.lower(),
            start_ms=_ms(int(trace.start[row]) - self.begin),
            dur_ms=_ms(float(self.merged.dur[entry])),
            self_ms=_ms(float(self.merged.own[entry])),
            residual=None if residual is None or np.isnan(residual) else round(residual, 1),
            count=int(self.merged.count[entry]),
        )


def suspected(found: Candidates, first: int, rows: int) -> dict[int, float]:
    """Residual by row of a rank's slice, what adds most first; ``found``: the candidates of that rank."""
    out: dict[int, float] = {}
    for i in np.argsort(-found.excess, kind="stable").tolist():
        row = int(found.row[i]) - first
        if 0 <= row < rows:
            out[row] = max(out.get(row, -np.inf), float(found.residual[i]))
    return out


def _frames(tree: Tree) -> Mask:
    """bool a row: a Python function that is no module of the model."""
    trace = tree.trace
    module = np.array([name.startswith(MODULE) for name in trace.names], dtype=np.bool_)
    return (trace.layer == Layer.PYTHON) & ~module[trace.name]


def _chain(tree: Tree, row: int, passed: Mask) -> list[int]:
    """The row with all above it, but for Python frames that take no time themselves: of those the nearest alone is kept."""
    above = tree.ancestors(row)
    nearest = next((i for i in above if passed[i]), row)
    return [i for i in reversed(above) if not passed[i] or i == nearest] + [row]


def _weight(tree: Tree) -> Int64:
    """int64 ns a row: the larger of its time and of the device work at and below it."""
    trace = tree.trace
    work = np.append(0, np.cumsum(np.where(trace.on_device, trace.dur, 0)))
    return np.maximum(trace.dur, work[tree.stop] - work[:-1])


def _heaviest(tree: Tree, weight: Int64) -> Iterator[int]:
    """The heaviest root, its heaviest child and so on; of several the first."""
    best, child = np.full(len(tree) + 1, np.iinfo(np.int64).min), np.full(len(tree) + 1, ROOT, dtype=np.int32)
    np.maximum.at(best, tree.parent, weight)  # that of the roots is the last, which ROOT is the position of
    first = np.flatnonzero(weight == best[tree.parent])[::-1]
    child[tree.parent[first]] = first
    row = ROOT
    while (row := int(child[row])) != ROOT:
        yield row


def price(line: SliceLine) -> int:
    """Assistant tokens of one line, from above."""
    return -(-len(line.model_dump_json()) // CHARACTERS_A_TOKEN)


def _ms(ns: float) -> float:
    return round(ns / 1e6, 3)
