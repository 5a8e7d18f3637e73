"""An operator explained: what it is, how it does in each place, and where it was slowest."""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import Baselines
from teller_core.data.calls import BARE, REPEATED, REPLAYED, Calls, Edges, calls_of, edges_of
from teller_core.data.causes import Cause, causes
from teller_core.data.plain_names import DIGITS, NAME_LENGTH, plain_name
from teller_core.data.report import SliceLine
from teller_core.data.report_operators import OperatorPlace, OperatorReport, UsualTrouble
from teller_core.data.table import Int64, take
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from teller_core.errors import UnknownName
from teller_core.tell.families import family_of
from teller_core.tell.kernel_names import kernel_named
from teller_core.tell.names import shorten
from teller_core.tell.operator_calls import RankCalls
from teller_core.tell.operator_shapes import looked_at, shapes_called

SLOWEST = 3
"""Instances shown a place."""
PLACES = 8
"""Places shown, those with most time first."""
NEIGHBORS = 5
"""Names shown of what launches it and of what it launches."""
PIECES = re.compile(r"::|[#\d\u2026\s]+")
"""Where a name that is shown may differ from the raw one: in numbers that are left out, scopes, and where it was cut."""
P95_COUNT = 20
"""Fewer calls than this have no 95th percentile to speak of."""
NTH = re.compile(r" ?#\d+$")
CALLED_WITH = re.compile(r" ?\((?:[\w: ?]+\[|\d+ tensors\[).*\)?$")
"""Shapes behind a place whose step does not tell its work: they may be cut."""


def codes_of(name: str, names: Sequence[str]) -> list[int]:
    """Positions in ``names`` of those that mean the operator ``name``, ascending."""
    # Names that are shown hold a piece of the raw name: what lacks it need not be shortened, which takes 20 us a name.
    piece = max(PIECES.split(name), key=len)
    return [i for i, other in enumerate(names) if piece in other and _same(name, other)]


def calls_in(tree: Tree, name: str) -> tuple[Calls, Edges]:
    """The calls of ``name`` in a tree, for a capture that keeps none by name."""
    codes, edges = codes_of(name, tree.trace.names), edges_of(tree)
    calls = calls_of(tree)
    return take(calls, np.isin(calls.name, codes)), take(
        edges, np.isin(edges.above, codes) | np.isin(edges.below, codes)
    )


def explain_operator(
    name: str,
    baselines: Baselines,
    ranks: Sequence[RankCalls],
    *,
    capture: str,
    totals: Mapping[int, float],
    near: int = 0,
) -> OperatorReport:
    """What ``name`` is and how it does in one capture.

    ``baselines``: its rows, or all of the capture's; ``ranks``: its calls on each, empty to do without them; ``totals``: ns of
    self time by layer; ``near``: how many names are like it, for a capture that does not have it. Raises UnknownName for such
    a one.
    """
    mine = take(baselines, np.array(codes_of(name, baselines.name), dtype=np.int64))
    if not mine.name:
        like = f"{near} others contain it" if near else "none contains it"
        raise UnknownName(
            "the operator",
            f"no span of the capture has this name; {like}",
            "Take a name from a slice, or `search` for a part of it",
        )
    layer = int(np.bincount(mine.layer, weights=mine.total).argmax())
    family = family_of(mine.name[0])
    whole = totals.get(layer, 0.0)
    above, below = _neighbors(ranks)
    return OperatorReport(
        capture=capture,
        name=shorten(mine.name[0]),
        layer=Layer(layer).name.lower(),
        what_it_is=family.what if family else "This table of operators does not know it.",
        kernel=kernel_named(mine.name) if layer in (Layer.KERNEL, Layer.COMMUNICATION) else None,
        calls=int(mine.count.sum()),
        total_ms=_ms(float(mine.total.sum())),
        share=round(float(mine.total.sum()) / whole, 4) if whole > 0 else None,
        places=_places(mine, ranks, layer),
        shapes=shapes_called(ranks, layer),
        launched_by=above,
        launches=below,
        usual_troubles=[_trouble(causes()[key]) for key in (family.troubles if family else ())],
        note=_note(mine, ranks),
    )


def _same(name: str, other: str) -> bool:
    """Whether two names mean one operator: equal, equal once shortened, or, where one has its numbers left out, equal so."""
    if name in (other, shorten(other)):
        return True
    return ("#" in name or "#" in other) and DIGITS.sub("#", name) == DIGITS.sub("#", other)


def _places(mine: Baselines, ranks: Sequence[RankCalls], layer: int) -> list[OperatorPlace]:
    order = np.argsort(-mine.total, kind="stable")[:PLACES]
    parents = [_last(place) for place in mine.place]
    by_parent = _by_parent(ranks)
    out: list[OperatorPlace] = []
    for i in map(int, order):
        same = by_parent.pop(parents[i], NOTHING)
        slowest = np.argsort(-same.own, kind="stable")[:SLOWEST].tolist()
        alone = parents.count(parents[i]) == 1 and len(same.own) >= P95_COUNT
        out.append(
            OperatorPlace(
                place=mine.place[i],
                phase=mine.phase[i] or "any",
                count=int(mine.count[i]),
                total_ms=_ms(float(mine.total[i])),
                median_ms=_ms(float(mine.median[i])),
                p95_ms=_ms(float(np.percentile(same.own, 95))) if alone else None,
                slowest=[_line(ranks[int(same.rank[n])], int(same.at[n]), layer) for n in slowest],
            )
        )
    return out


def _last(place: str) -> str:
    """The name right above an operator at ``place``."""
    above = CALLED_WITH.sub("", NTH.sub("", place)).rpartition(" > ")[2]
    return above.strip()


class _Below(NamedTuple):
    """The calls below one name: ``own`` int64 ns, ``rank`` and ``at`` say which call of which rank given it is."""

    own: Int64
    rank: Int64
    at: Int64


NOTHING = _Below(*(np.empty(0, dtype=np.int64) for _ in range(3)))


def _by_parent(ranks: Sequence[RankCalls]) -> dict[str, _Below]:
    """Every call by the name above it as places give it (numbers of layers left out)."""
    found: defaultdict[str, list[_Below]] = defaultdict(list)
    for r, rank in enumerate(ranks):
        above = rank.calls.above.astype(np.int64) * len(Layer) + rank.calls.layer
        for pair in np.unique(above).tolist():
            at = np.flatnonzero(above == pair)
            code, layer = divmod(pair, len(Layer))
            called = plain_name(rank.names[int(code)], int(layer))[:NAME_LENGTH] if code >= 0 else ""
            found[called].append(_Below(rank.calls.own[at], np.full(len(at), r), at))
    return {called: _Below(*map(np.concatenate, zip(*parts, strict=True))) for called, parts in found.items()}


def _line(rank: RankCalls, index: int, layer: int) -> SliceLine:
    calls = rank.calls
    row = int(calls.row[index])
    start, dur = rank.when(row)
    step = bisect_right([low for low, _, _ in rank.steps], row) - 1
    begin = rank.steps[step][2] if step >= 0 and row < rank.steps[step][1] else start
    return SliceLine(
        handle=f"{rank.rank}:{row}",
        depth=0,
        text=shorten(rank.names[int(calls.name[index])]),
        layer=Layer(layer).name.lower(),
        start_ms=_ms(float(start - begin)),
        dur_ms=_ms(float(dur)),
        self_ms=_ms(float(calls.own[index])),
        residual=None,
    )


def _neighbors(ranks: Sequence[RankCalls]) -> tuple[list[str], list[str]]:
    """The most frequent names right above the calls and right below them, as ``name xN``."""
    above: Counter[str] = Counter()
    below: Counter[str] = Counter()
    for rank in ranks:
        mine, edges = np.unique(rank.calls.name), rank.edges
        for counter, side, other in ((above, edges.below, edges.above), (below, edges.above, edges.below)):
            near = np.isin(side, mine)
            for code, count in zip(other[near].tolist(), edges.count[near].tolist(), strict=True):
                counter[shorten(rank.names[code])] += count
    return _most(above), _most(below)


def _most(counter: Counter[str]) -> list[str]:
    return [f"{name} x{count}" for name, count in counter.most_common(NEIGHBORS)]


def _trouble(cause: Cause) -> UsualTrouble:
    return UsualTrouble(cause=cause.id, title=cause.title, next_check=cause.next_check, fix=cause.fix)


def _note(mine: Baselines, ranks: Sequence[RankCalls]) -> str:
    notes: list[str] = []
    if len(mine.name) > PLACES:
        notes.append(f"{len(mine.name) - PLACES} more places are not shown")
    if not ranks:
        notes.append("the spans were not read: no slowest calls, and nothing about what launches it")
    else:
        notes.append("slowest calls stand at the first place below the same name, whatever their phase")
    notes.append("times are own times: without what the operator calls")
    notes += _read_inputs(ranks)
    notes += _replayed(ranks)
    return "; ".join(notes)


def _read_inputs(ranks: Sequence[RankCalls]) -> Iterator[str]:
    """How many of the calls were asked for their inputs, where these were not all."""
    having = sum(int((rank.calls.arg >= 0).sum()) for rank in ranks)
    read = sum(len(looked_at(rank.calls)) for rank in ranks)
    if read < having:
        yield f"what it is called with was read of {read} of {having} calls, evenly chosen"


def _replayed(ranks: Sequence[RankCalls]) -> Iterator[str]:
    """What of the calls was repeated by graphs."""
    known, bare, repeated = (
        sum(int((rank.calls.came == how).sum()) for rank in ranks) for how in (REPLAYED, BARE, REPEATED)
    )
    if known:
        yield f"{known} of {known + bare} replayed calls stand where their graph was captured"
    if repeated:
        yield f"{repeated} calls were repeated by graphs without running: they took no time themselves"


def _ms(ns: float) -> float:
    return round(ns / 1e6, 6)
