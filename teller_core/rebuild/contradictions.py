"""Meetings that the other meetings of the same two processes contradict.

One meeting says of the difference between two clocks that it lies in an interval: each rank began before the other ended. Where
one interval lies apart from others, either these calls were no meeting or a stamp of it is wrong, or the clocks did not keep
their difference: they are set otherwise from then on, or never were what they were taken for. The second shows: all meetings
after it, or before it, then have the other difference. So a meeting is left out where some before it and some after it lie apart
from it, where nearly all others have a difference in common, and, on one machine, where that is its clock's. A clock that was
set twice between two meetings, there and back, would be taken for no meeting: nobody is named in it either way.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.table import UNKNOWN, Int64, Mask
from teller_core.rebuild.collective_calls import Key
from teller_core.rebuild.together import Together

RARE = 100
"""Of so many meetings of two processes one may be left out. More is a clock that cannot be trusted."""
NEVER = 1 << 61


class _Said(NamedTuple):
    """What meetings of two processes say, by time: the difference of their clocks lies in ``low`` to ``high`` int64 ns.

    ``group``, ``row``: which meeting of which :class:`Together`."""

    group: Int64
    row: Int64
    low: Int64
    high: Int64


def without_contradicted(
    met: Sequence[Together], of: Int64, *, same: Int64, grain: Int64, drift: int, direct: Int64
) -> tuple[list[Together], frozenset[Key]]:
    """``met`` with the meetings that contradict others no longer taken for synchronous, and their keys.

    ``of`` int64: the process of each rank. ``same``, ``direct`` int64 (processes, processes) ns: what sharing a machine says, or
    UNKNOWN, and what it and all meetings say directly. ``grain`` int64 ns a process, ``drift`` ns: as for the bounds.
    """
    wrong = [np.zeros(len(group.keys), dtype=np.bool_) for group in met]
    for p, q in np.argwhere(np.triu(direct + direct.T < 0)).tolist():
        own = UNKNOWN if same[p, q] == UNKNOWN else max(int(same[p, q]), int(same[q, p]))
        said = _said(met, of, (p, q), grain, drift if own == UNKNOWN else 0)
        out = _apart(said, NEVER if own == UNKNOWN else own)
        for at, row in zip(said.group[out].tolist(), said.row[out].tolist(), strict=True):
            wrong[at][row] = True
    left = [group._replace(synchronous=group.synchronous & ~out) for group, out in zip(met, wrong, strict=True)]
    return left, frozenset(
        key
        for group, out in zip(met, wrong, strict=True)
        for key, no in zip(group.keys, out.tolist(), strict=True)
        if no
    )


def _said(met: Sequence[Together], of: Int64, pair: tuple[int, int], grain: Int64, drift: int) -> _Said:
    parts = [*_parts(met, of, pair)]
    group, row, first, low, high = (np.concatenate([part[k] for part in parts]) for k in range(5))
    order = np.argsort(first, kind="stable")
    p, q = pair
    return _Said(group[order], row[order], low[order] - 2 * grain[q] - drift, high[order] + 2 * grain[p] + drift)


def _parts(met: Sequence[Together], of: Int64, pair: tuple[int, int]) -> Iterator[tuple[Int64, ...]]:
    """Of each group in which both met: its number, rows, begins by the first clock, and what they say at least and at most."""
    for at, group in enumerate(met):
        one, other = (np.flatnonzero(of[list(group.rank)] == process) for process in pair)
        if len(one) and len(other):
            rows = np.flatnonzero(group.synchronous)
            start, end = group.start[rows], group.start[rows] + group.dur[rows]
            low = start[:, one].max(axis=1) - end[:, other].min(axis=1)
            high = end[:, one].min(axis=1) - start[:, other].max(axis=1)
            yield np.full(len(rows), at, dtype=np.int64), rows, start[:, one].min(axis=1), low, high


def _apart(said: _Said, bound: int) -> Mask:
    """Which meetings are left out: see the module. ``bound`` ns: by how much the two clocks may differ at most."""
    none = np.zeros(len(said.low), dtype=np.bool_)
    at = np.unique(np.clip(np.append(said.low, -bound), -bound, bound))
    having = np.searchsorted(np.sort(said.low), at, side="right") - np.searchsorted(np.sort(said.high), at, side="left")
    common = at[int(np.argmax(having))]
    out = (said.low > common) | (said.high < common)
    if int(out.sum()) * RARE > len(out):
        return none
    low, high = np.where(out, -NEVER, said.low), np.where(out, NEVER, said.high)
    return out & _beyond(said, low, high) & _beyond(_turned(said), low[::-1], high[::-1])[::-1]


def _turned(said: _Said) -> _Said:
    return _Said(*(column[::-1] for column in said))


def _beyond(said: _Said, low: Int64, high: Int64) -> Mask:
    """Which of the meetings lie apart from some before them, of which ``low`` and ``high`` are the edges."""
    lowest_high = np.append(NEVER, np.minimum.accumulate(high)[:-1])
    highest_low = np.append(-NEVER, np.maximum.accumulate(low)[:-1])
    return (said.low > lowest_high) | (said.high < highest_low)
