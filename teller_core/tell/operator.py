"""An operator explained: what it is, how it does in each place, and where it was slowest."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import Baselines
from teller_core.data.causes import causes
from teller_core.data.plain_names import DIGITS, NAME_LENGTH, is_frame, plain_name
from teller_core.data.replays import captured_rows, replayed_kernels
from teller_core.data.report import SliceLine
from teller_core.data.report_operators import OperatorPlace, OperatorReport, OperatorShapes
from teller_core.data.shapes import shapes_of
from teller_core.data.table import Int32, Int64, take
from teller_core.data.trace import Layer
from teller_core.data.tree import ROOT, Tree
from teller_core.errors import UnknownName
from teller_core.tell.families import family_of
from teller_core.tell.kernel_names import kernel_named
from teller_core.tell.names import shorten
from teller_core.tell.visible import visible

SLOWEST = 3
"""Instances shown a place."""
PLACES = 8
"""Places shown, those with most time first."""
NEIGHBORS = 5
"""Names shown of what launches it and of what it launches."""
SHAPES = 6
"""Sets of inputs shown."""
P95_COUNT = 20
"""Fewer calls than this have no 95th percentile to speak of."""
NTH = re.compile(r" ?#\d+$")
CALLED_WITH = re.compile(r" ?\((?:[\w: ?]+\[|\d+ tensors\[).*\)?$")
"""Shapes behind a place whose step does not tell its work: they may be cut."""


class RankSpans(NamedTuple):
    """One rank's spans. ``rank``: position in ``Capture.ranks``; ``steps``: row ranges of its steps as (low, high, begin ns)."""

    rank: int
    tree: Tree
    steps: Sequence[tuple[int, int, int]] = ()
    arguments: Callable[[Int64], Sequence[str]] | None = None
    """The arguments of rows as JSON text, empty where a row has none."""


@dataclass(frozen=True)
class _Calls:
    """Every call of the operator on one rank: ``row``, ``start``, ``dur``, ``own`` (ns), ``since`` ns: the begin of its step."""

    rank: int
    row: Int64
    start: Int64
    dur: Int64
    own: Int64
    since: Int64


def explain_operator(
    name: str, baselines: Baselines, ranks: Sequence[RankSpans], *, capture: str, suggestions: Sequence[str] = ()
) -> OperatorReport:
    """What ``name`` is and how it does in one capture.

    ``baselines``: its rows, or all of the capture's; ``ranks``: the spans to look for its slowest calls in, empty to do
    without them; ``suggestions``: names like it, for a capture that does not have it. Raises UnknownName for such a one.
    """
    mine = take(baselines, np.array([_same(name, other) for other in baselines.name], dtype=np.bool_))
    if not mine.name:
        near = f"{len(suggestions)} others contain it" if suggestions else "none contains it"
        raise UnknownName(
            "the operator",
            f"no span of the capture has this name; {near}",
            "Take a name from a slice, or `search` for a part of it",
        )
    layer = int(np.bincount(mine.layer, weights=mine.total).argmax())
    calls = [_calls(rank, name) for rank in ranks]
    family = family_of(mine.name[0])
    whole = float(baselines.total[baselines.layer == layer].sum())
    above, below = _neighbors(ranks, calls)
    return OperatorReport(
        capture=capture,
        name=shorten(mine.name[0]),
        layer=Layer(layer).name.lower(),
        what_it_is=family.what if family else "This table of operators does not know it.",
        kernel=kernel_named(mine.name) if layer in (Layer.KERNEL, Layer.COMMUNICATION) else None,
        calls=int(mine.count.sum()),
        total_ms=_ms(float(mine.total.sum())),
        share=round(float(mine.total.sum()) / whole, 4) if whole > 0 and len(baselines.name) > len(mine.name) else None,
        places=_places(mine, ranks, calls),
        shapes=_shapes(ranks, calls),
        launched_by=above,
        launches=below,
        usual_troubles=[f"{c}: {causes()[c].title}" for c in (family.troubles if family else ()) if c in causes()],
        note=_note(mine, ranks, calls),
    )


def _same(name: str, other: str) -> bool:
    """Whether two names mean one operator: equal, equal once shortened, or, where one has its numbers left out, equal so."""
    if name in (other, shorten(other)):
        return True
    return ("#" in name or "#" in other) and DIGITS.sub("#", name) == DIGITS.sub("#", other)


def _calls(rank: RankSpans, name: str) -> _Calls:
    trace = rank.tree.trace
    wanted = [i for i, other in enumerate(trace.names) if _same(name, other)]
    row = np.flatnonzero(np.isin(trace.name, np.array(wanted, dtype=np.int32))).astype(np.int64)
    since = trace.start[row].copy() if len(row) else np.empty(0, dtype=np.int64)
    for low, high, begin in rank.steps:
        first, last = np.searchsorted(row, [low, high])
        since[first:last] = begin
    own = rank.tree.self_time()[row]
    return _Calls(rank.rank, row, trace.start[row], trace.dur[row], own, since)


def _places(mine: Baselines, ranks: Sequence[RankSpans], calls: Sequence[_Calls]) -> list[OperatorPlace]:
    order = np.argsort(-mine.total, kind="stable")[:PLACES]
    parents = [_last(place) for place in mine.place]
    by_parent = _by_parent(ranks, calls)
    out: list[OperatorPlace] = []
    for i in map(int, order):
        same = sorted(by_parent.pop(parents[i], []), key=lambda call: -call.own)
        alone = parents.count(parents[i]) == 1 and len(same) >= P95_COUNT
        out.append(
            OperatorPlace(
                place=mine.place[i],
                phase=mine.phase[i] or "any",
                count=int(mine.count[i]),
                total_ms=_ms(float(mine.total[i])),
                median_ms=_ms(float(mine.median[i])),
                p95_ms=_ms(float(np.percentile([call.own for call in same], 95))) if alone else None,
                slowest=[_line(ranks[call.rank], calls[call.rank], call.at) for call in same[:SLOWEST]],
            )
        )
    return out


def _shapes(ranks: Sequence[RankSpans], calls: Sequence[_Calls]) -> list[OperatorShapes]:
    """The calls by what they were called with: a kernel's are those of the operator that launched it. Of replays, by what their
    graph was captured with.
    """
    took: defaultdict[str, list[int]] = defaultdict(list)
    for rank, mine in zip(ranks, calls, strict=True):
        if rank.arguments is None or not len(mine.row):
            continue
        texts = [shapes_of(text) for text in rank.arguments(_operators(rank.tree, mine.row))]
        for text, own in zip(texts, mine.own.tolist(), strict=True):
            if text:
                took[text].append(own)
    order = sorted(took, key=lambda text: -sum(took[text]))[:SHAPES]
    return [
        OperatorShapes(
            inputs=visible(text),
            calls=len(took[text]),
            total_ms=_ms(float(sum(took[text]))),
            median_ms=_ms(float(np.median(took[text]))),
        )
        for text in order
    ]


def _operators(tree: Tree, rows: Int64) -> Int64:
    """int64: each row, or for device work the nearest operator above it, itself where there is none."""
    trace = tree.trace
    works = np.isin(trace.layer, (Layer.OPERATOR, Layer.COMMUNICATION)) & ~trace.on_device
    over = rows.copy()
    climbing = np.flatnonzero(trace.on_device[rows])
    while len(climbing):
        over[climbing] = tree.parent[over[climbing]]
        climbing = climbing[over[climbing] != ROOT]
        climbing = climbing[~works[over[climbing]]]
    return np.where(over == ROOT, rows, over)


def _last(place: str) -> str:
    """The name right above an operator at ``place``."""
    above = CALLED_WITH.sub("", NTH.sub("", place)).rpartition(" > ")[2]
    return above.strip()


class _Call(NamedTuple):
    """One call: ``rank`` and ``at`` say which of the calls given."""

    own: int
    rank: int
    at: int


def _by_parent(ranks: Sequence[RankSpans], calls: Sequence[_Calls]) -> dict[str, list[_Call]]:
    """Every call by the name above it as places give it (numbers of layers left out)."""
    out: dict[str, list[_Call]] = {}
    for r, (rank, mine) in enumerate(zip(ranks, calls, strict=True)):
        for i, (row, own) in enumerate(zip(mine.row.tolist(), mine.own.tolist(), strict=True)):
            out.setdefault(_above(rank.tree, row), []).append(_Call(own, r, i))
    return out


def _line(rank: RankSpans, mine: _Calls, index: int) -> SliceLine:
    trace, row = rank.tree.trace, int(mine.row[index])
    return SliceLine(
        handle=f"{mine.rank}:{row}",
        depth=0,
        text=shorten(trace.names[int(trace.name[row])]),
        layer=Layer(int(trace.layer[row])).name.lower(),
        start_ms=_ms(float(mine.start[index] - mine.since[index])),
        dur_ms=_ms(float(mine.dur[index])),
        self_ms=_ms(float(mine.own[index])),
        residual=None,
    )


def _above(tree: Tree, row: int) -> str:
    """The name of the nearest span over ``row`` that is no Python function, as places give it; empty for none."""
    trace = tree.trace
    while (row := int(tree.parent[row])) != ROOT:
        name, layer = trace.names[int(trace.name[row])], int(trace.layer[row])
        if not is_frame(name, layer):
            return plain_name(name, layer)[:NAME_LENGTH]
    return ""


def _neighbors(ranks: Sequence[RankSpans], calls: Sequence[_Calls]) -> tuple[list[str], list[str]]:
    """The most frequent names right above the calls and right below them, as ``name xN``."""
    above: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for rank, mine in zip(ranks, calls, strict=True):
        tree, names = rank.tree, rank.tree.trace.names
        parent = tree.parent[mine.row]
        above.update(_counted(names, tree.trace.name[parent[parent != ROOT]]))
        child = np.flatnonzero(np.isin(tree.parent, mine.row.astype(np.int32)))
        below.update(_counted(names, tree.trace.name[child]))
    return _most(above), _most(below)


def _counted(names: Sequence[str], used: Int32) -> dict[str, int]:
    count = np.bincount(used, minlength=len(names))
    out: dict[str, int] = {}
    for i in np.flatnonzero(count).tolist():
        out[shorten(names[i])] = out.get(shorten(names[i]), 0) + int(count[i])
    return out


def _most(counter: Counter[str]) -> list[str]:
    return [f"{name} x{count}" for name, count in counter.most_common(NEIGHBORS)]


def _note(mine: Baselines, ranks: Sequence[RankSpans], calls: Sequence[_Calls]) -> str:
    notes: list[str] = []
    if len(mine.name) > PLACES:
        notes.append(f"{len(mine.name) - PLACES} more places are not shown")
    if not ranks:
        notes.append("the spans were not read: no slowest calls, and nothing about what launches it")
    else:
        notes.append("slowest calls stand at the first place below the same name, whatever their phase")
    notes.append("times are own times: without what the operator calls")
    notes += _replayed(ranks, calls)
    return "; ".join(notes)


def _replayed(ranks: Sequence[RankSpans], calls: Sequence[_Calls]) -> Iterator[str]:
    """What of the calls was repeated by graphs."""
    known = bare = repeated = 0
    for rank, mine in zip(ranks, calls, strict=True):
        own, less = replayed_kernels(rank.tree)
        known, bare = known + int(own[mine.row].sum()), bare + int(less[mine.row].sum())
        repeated += int(captured_rows(rank.tree)[mine.row].sum())
    if known:
        yield f"{known} of {known + bare} replayed calls stand where their graph was captured"
    if repeated:
        yield f"{repeated} calls were repeated by graphs without running: they took no time themselves"


def _ms(ns: float) -> float:
    return round(ns / 1e6, 6)
