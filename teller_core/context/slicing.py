"""The causal slice of a step: the spans that bear on it, cut to what an assistant can read.

Kept first are the chains from the step down to each suspected span, then the heaviest path. The rest of the step is merged
by place (calls of one name below one line are one line with a count), and the heaviest such lines fill what is left of the
budget. Parents come before children and siblings stand in the order of their first start; device work stands under the
call that launched it.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import Candidates
from teller_core.data.report import SliceLine
from teller_core.data.table import Float64, Int32, Int64
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree

CHARACTERS_A_TOKEN = 2
"""Rows of numbers cost assistants about a token for every two characters; words cost less, so a slice never costs more."""
LEAST_SHARE = 0.002
"""A line that holds less than this share of its step tells nothing."""
MODULE = "nn.Module"


class StepSpans(NamedTuple):
    """The rows of one step on one rank. ``tree`` holds them alone: its row 0 is row ``first`` of the rank's tree. ``rank`` is a
    position in ``Capture.ranks``.
    """

    rank: int
    first: int
    tree: Tree


class Cut(NamedTuple):
    """What is kept of one rank. ``tokens`` the lines cost; ``events`` the step has here; ``cut`` of them are in no line;
    ``missed`` suspected spans found no place in the budget.
    """

    lines: list[SliceLine]
    tokens: int
    events: int
    cut: int
    missed: int


@dataclass(frozen=True)
class _Merged:
    """The step with like calls merged: one entry a line. ``of`` int32 a row: its entry. An entry each: ``row`` its first row,
    ``above`` the entry over it (-1), ``count``, ``dur`` and ``own`` ns in all.
    """

    of: Int32
    row: Int64
    above: Int64
    count: Int64
    dur: Float64
    own: Float64


def causal_slice(spans: StepSpans, found: Candidates, *, begin: int, budget: int, text: Callable[[str], str]) -> Cut:
    """The slice of one step on one rank within ``budget`` assistant tokens.

    ``found``: the candidates of this step and rank, with rows of the rank's whole tree; ``begin``: ns, when the step begins;
    ``text`` cleans and shortens a name. A budget too small for every suspected span keeps those that add most.
    """
    tree = spans.tree
    if not len(tree):
        return Cut([], 0, 0, 0, len(found.step))
    suspects = _suspects(found, spans.first, len(tree))
    chains = [_chain(tree, row) for row in suspects]
    pins = {row for chain in chains for row in chain} | set(_heaviest(tree))
    merged = _merge(tree, np.array(sorted(pins), dtype=np.int64))
    page = _Page(spans, merged=merged, suspects=suspects, begin=begin, budget=budget, text=text)
    missed = sum(not page.add(chain) and not page.add(_without_frames(tree, chain)) for chain in chains)
    page.fill()
    lines = list(page.lines())
    kept = int(merged.count[list(page.kept)].sum()) if page.kept else 0
    return Cut(lines, page.spent, len(tree), len(tree) - kept, missed)


class _Page:
    """Lines chosen so far. The one mutable thing here: a budget that is spent."""

    def __init__(
        self,
        spans: StepSpans,
        *,
        merged: _Merged,
        suspects: dict[int, float],
        begin: int,
        budget: int,
        text: Callable[[str], str],
    ) -> None:
        self.spans, self.merged, self.suspects = spans, merged, suspects
        self.begin, self.budget, self.text = begin, budget, text
        self.kept: dict[int, SliceLine] = {}
        self.spent = 0

    def add(self, rows: list[int]) -> bool:
        """Keep the lines of ``rows``, all or none; whether the budget allowed it."""
        fresh = {e: self._line(e) for e in (int(self.merged.of[row]) for row in rows) if e not in self.kept}
        cost = sum(price(line) for line in fresh.values())
        if self.spent + cost > self.budget:
            return False
        self.kept |= fresh
        self.spent += cost
        return True

    def fill(self) -> None:
        """Spend what is left on the heaviest lines below those that are kept."""
        merged = self.merged
        least = LEAST_SHARE * float(merged.dur[merged.above < 0].max(initial=0.0))
        below: dict[int, list[int]] = {}
        for entry, above in enumerate(merged.above.tolist()):
            below.setdefault(above, []).append(entry)
        heap = [(-float(merged.dur[e]), e) for above in (-1, *self.kept) for e in below.get(above, ())]
        heapq.heapify(heap)
        while heap:
            weight, entry = heapq.heappop(heap)
            if -weight < least or (entry not in self.kept and not self.add([int(merged.row[entry])])):
                continue
            for child in below.get(entry, ()):
                if child not in self.kept:
                    heapq.heappush(heap, (-float(merged.dur[child]), child))

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


def _suspects(found: Candidates, first: int, rows: int) -> dict[int, float]:
    """Residual by row of the slice, what adds most first."""
    out: dict[int, float] = {}
    for i in np.argsort(-found.excess, kind="stable").tolist():
        row = int(found.row[i]) - first
        if 0 <= row < rows:
            out[row] = max(out.get(row, -np.inf), float(found.residual[i]))
    return out


def _chain(tree: Tree, row: int) -> list[int]:
    return [*reversed(tree.ancestors(row)), row]


def _without_frames(tree: Tree, chain: list[int]) -> list[int]:
    """The chain without Python frames that are no modules, but for the one nearest to its end."""
    trace = tree.trace
    frames = [
        row
        for row in chain[:-1]
        if trace.layer[row] == Layer.PYTHON and not trace.names[int(trace.name[row])].startswith(MODULE)
    ]
    dropped = set(frames[:-1])
    return [row for row in chain if row not in dropped]


def _heaviest(tree: Tree) -> Iterator[int]:
    """The longest root, its longest child and so on."""
    dur, parent = tree.trace.dur, tree.parent
    roots = np.flatnonzero(parent == ROOT)
    row = int(roots[np.argmax(dur[roots])])
    while True:
        yield row
        low, high = row + 1, int(tree.stop[row])
        below = np.flatnonzero(parent[low:high] == row) + low
        if not len(below):
            return
        row = int(below[np.argmax(dur[below])])


def _merge(tree: Tree, pins: Int64) -> _Merged:
    """Rows with one chain of names become one entry; a pinned row, and what is below it, stays apart from its like."""
    trace = tree.trace
    symbol = trace.name.astype(np.int64) + 1
    symbol[pins] = -1 - pins
    path = tree.paths(symbol)
    _, row, of, count = np.unique(path, return_index=True, return_inverse=True, return_counts=True)
    parent = tree.parent[row]
    above = np.where(parent == ROOT, -1, of[np.maximum(parent, 0)])
    own = tree.self_time()
    return _Merged(
        of=of.astype(np.int32),
        row=row.astype(np.int64),
        above=above.astype(np.int64),
        count=count.astype(np.int64),
        dur=np.bincount(of, weights=trace.dur).astype(np.float64),
        own=np.bincount(of, weights=own).astype(np.float64),
    )


def price(line: SliceLine) -> int:
    """Assistant tokens of one line, from above."""
    return -(-len(line.model_dump_json()) // CHARACTERS_A_TOKEN)


def _ms(ns: float) -> float:
    return round(ns / 1e6, 3)
