"""The call-chain tree by its definition: every range looks at all that are open when it starts."""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from teller_core.data.trace import Lane, Layer


class Span(NamedTuple):
    """What nesting looks at."""

    start: int
    dur: int
    lane: Lane
    layer: Layer
    link: int


class Nested(NamedTuple):
    """Rows in pre-order, the parent of each as a place among them (-1 for none), and the counts."""

    rows: list[int]
    parent: list[int]
    crossings: int
    unlaunched: int


def nested(spans: Sequence[Span]) -> Nested:
    """The tree of ``spans``, which stand in the order of their file."""
    lanes = list(dict.fromkeys(span.lane for span in spans))
    lanes.sort(key=lambda lane: lane.device)
    on_lane: dict[Lane, list[int]] = defaultdict(list)
    for i, span in enumerate(spans):
        on_lane[span.lane].append(i)
    for rows in on_lane.values():
        rows.sort(key=lambda i: (spans[i].start, -spans[i].dur, i))
    parent: dict[int, int] = {}
    crossings, calls = 0, _calls(spans, lanes, on_lane)
    roots: list[int] = []
    unlaunched = 0
    for lane in lanes:
        if not lane.device:
            crossings += _hang(spans, on_lane[lane], parent)
            roots += [i for i in on_lane[lane] if i not in parent]
            continue
        for i in on_lane[lane]:
            if spans[i].layer != Layer.ENGINE and spans[i].link in calls:
                parent[i] = calls[spans[i].link]
            else:
                roots.append(i)
                unlaunched += spans[i].layer in (Layer.KERNEL, Layer.COMMUNICATION)
    rank = {lane: k for k, lane in enumerate(lanes)}
    below: dict[int, list[int]] = defaultdict(list)
    for i, above in parent.items():
        below[above].append(i)
    for children in below.values():
        children.sort(key=lambda i: (spans[i].start, spans[i].lane.device, -spans[i].dur, rank[spans[i].lane], i))
    return _listed(roots, below, crossings, unlaunched)


def _calls(spans: Sequence[Span], lanes: list[Lane], on_lane: dict[Lane, list[int]]) -> dict[int, int]:
    """The latest of the calls with each correlation id; of those that start together the one further down."""
    found: dict[int, int] = {}
    for lane in lanes:
        for i in on_lane[lane] if not lane.device else ():
            span = spans[i]
            if span.layer == Layer.RUNTIME and span.link != -1:
                known = found.get(span.link)
                if known is None or span.start >= spans[known].start:
                    found[span.link] = i
    return found


def _hang(spans: Sequence[Span], rows: list[int], parent: dict[int, int]) -> int:
    crossings = 0
    unfinished: list[int] = []
    for i in rows:
        start, end = spans[i].start, spans[i].start + spans[i].dur
        unfinished = [j for j in unfinished if spans[j].start + spans[j].dur >= start]
        ends = [spans[j].start + spans[j].dur for j in unfinished]
        crossings += any(start < other < end for other in ends)
        holding = [j for j, other in zip(unfinished, ends, strict=True) if other >= end]
        if holding:
            parent[i] = holding[-1]
        unfinished.append(i)
    return crossings


def _listed(roots: list[int], below: dict[int, list[int]], crossings: int, unlaunched: int) -> Nested:
    rows: list[int] = []
    parents: list[int] = []
    left = [(root, -1) for root in reversed(roots)]
    while left:
        i, above = left.pop()
        parents.append(above)
        left += [(child, len(rows)) for child in reversed(below.get(i, []))]
        rows.append(i)
    return Nested(rows, parents, crossings, unlaunched)
