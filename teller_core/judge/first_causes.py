"""Who waits for whom between ranks that did not come to collectives, followed to those who wait for nobody.

A rank may be missing in one collective because it waits in another. The first causes are ranks that are missing and do not wait
themselves; where there are none, ranks wait for one another in a circle.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Absences
from teller_core.data.spelled import ranks_of

Edges = Mapping[int, Mapping[int, int]]
"""Row of Absences by the rank that waits and the one it waits for: the first by time where there are several."""


class Firsts(NamedTuple):
    """``level``: 0 where collectives tell it for certain, 1 where only point-to-point calls do, 2 where nothing is certain.

    ``rows``: of each first cause, its rows of Absences; ``circles``: around each circle in which ranks wait for one another,
    each rank and the row of Absences in which it waits; ``behind``: who waits for each rank.
    """

    level: int
    rows: Mapping[int, list[int]]
    circles: list[list[tuple[int, int]]]
    behind: Mapping[int, set[int]]

    def held(self, rank: int) -> frozenset[int]:
        """Who waits for ``rank``, directly or through others."""
        return _reached(self.behind, [rank]) - {rank}


def firsts(absences: Absences) -> Firsts:
    """The first causes among ``absences``, told from the best evidence that there is."""
    level, rows = next(((level, rows) for level, rows in enumerate(_levels(absences)) if rows), (0, list[int]()))
    edges = _edges(absences, rows)
    missing = {int(absences.rank[row]) for row in rows}
    roots, sure, behind = missing - set(edges), set(rows), _backward(edges)
    own: defaultdict[int, list[int]] = defaultdict(list)
    for row in sorted(range(len(absences.name)), key=lambda row: (row not in sure, row)):
        if int(absences.rank[row]) in roots:
            own[int(absences.rank[row])].append(row)
    circles = _circles(edges, missing - _reached(behind, roots), behind)
    return Firsts(level, own, circles, _backward(_edges(absences, range(len(absences.name)))))


def _levels(absences: Absences) -> list[list[int]]:
    certain, pair = absences.certain == 1, absences.point_to_point == 1
    return [np.flatnonzero(mask).tolist() for mask in (certain & ~pair, certain & pair, ~certain)]


def _edges(absences: Absences, rows: Iterable[int]) -> dict[int, dict[int, int]]:
    edges: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in rows:
        for waiter in ranks_of(absences.waiters[row]):
            edges[waiter].setdefault(int(absences.rank[row]), row)
    return dict(edges)


def _backward(edges: Edges) -> dict[int, set[int]]:
    behind: defaultdict[int, set[int]] = defaultdict(set)
    for waiter, targets in edges.items():
        for target in targets:
            behind[target].add(waiter)
    return dict(behind)


def _reached(following: Mapping[int, Iterable[int]], starts: Iterable[int]) -> frozenset[int]:
    """``starts`` and all that can be reached from them."""
    left = list(starts)
    seen = set(left)
    while left:
        new = set(following.get(left.pop(), ())) - seen
        seen |= new
        left += new
    return frozenset(seen)


def _circles(edges: Edges, stuck: Iterable[int], behind: Mapping[int, Iterable[int]]) -> list[list[tuple[int, int]]]:
    """A circle for every set of ranks that wait for one another. ``stuck``: missing ranks that no first cause holds up."""
    left, circles = set(stuck), list[list[tuple[int, int]]]()
    while left:
        at, path = min(left), dict[int, None]()
        while at not in path:
            path[at] = None
            at = min(edges[at])
        ring = list(path)[list(path).index(at) :]
        circles.append([(rank, edges[rank][ring[(k + 1) % len(ring)]]) for k, rank in enumerate(ring)])
        left -= _reached(behind, [at])
    return circles
