"""From what happened on one row to marks: what is too short to be drawn alone is drawn together, and counted."""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar, overload

import numpy as np

from teller_core.data.report_timeline import Drawn, Kind, TimelineRow
from teller_core.data.table import Int64
from teller_core.tell.layout import many

PIXELS = 1200
"""A panel is drawn this wide at most: what is shorter than a part in so many cannot be seen."""
TOGETHER = 4
"""Pixels in which short things of a row become one mark: wide enough to be seen, and to be few."""
SHORTEST_NS = 1
"""What nothing times has a length of this, or a panel of one moment would have none to divide by."""

Word = TypeVar("Word", bound=str)
Thing = tuple[int, int, Kind, str]
"""Something on a row: its start and duration in ns, its kind and its words."""


class Told(Sequence[Word], Generic[Word]):
    """What ``of`` says of each of some ``rows`` (int64), said when it is asked for: of a million things few stand for themselves,
    and the words of all of them take far more room than what they are of.
    """

    def __init__(self, of: Callable[[int], Word], rows: Int64) -> None:
        self.of, self.rows = of, rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Word: ...
    @overload
    def __getitem__(self, index: slice) -> "Told[Word]": ...
    def __getitem__(self, index: int | slice) -> "Word | Told[Word]":
        if isinstance(index, slice):
            return Told(self.of, self.rows[index])
        return self.of(int(self.rows[index]))


class Lane(NamedTuple):
    """What happened on one row, by start: ``start`` and ``dur`` int64 ns, ``kind`` and ``text`` one a thing, ``finding`` int64
    as in TimelineRow. ``said``: the log lines, where it is a row of these.
    """

    group: str
    layer: Drawn
    label: str
    start: Int64
    dur: Int64
    kind: Sequence[Kind]
    text: Sequence[str]
    finding: Int64
    said: Sequence[str] = ()


def lane(
    group: str,
    layer: Drawn,
    label: str,
    things: Sequence[Thing],
    finding: Sequence[int] = (),
) -> Lane:
    """A row of a few ``things``, with the finding that blames each."""
    order = sorted(range(len(things)), key=lambda i: things[i][:2])
    numbers = np.array(finding or [0] * len(things), dtype=np.int64)
    return Lane(
        group,
        layer,
        label,
        np.array([things[i][0] for i in order], dtype=np.int64),
        np.array([things[i][1] for i in order], dtype=np.int64),
        [things[i][2] for i in order],
        [things[i][3] for i in order],
        numbers[np.array(order, dtype=np.int64)] if order else numbers,
    )


def long_lane(
    group: str, layer: Drawn, label: str, time: tuple[Int64, Int64], *, kind: Kind, of: Callable[[int], str]
) -> Lane:
    """A row of however many things of one ``kind``, which no finding blames: ``time`` int64 ns, their starts and durations;
    ``of`` says what the one at a position is.
    """
    start, dur = time
    order = np.lexsort((dur, start)).astype(np.int64)
    none = np.zeros(len(order), dtype=np.int64)
    return Lane(group, layer, label, start[order], dur[order], Told(lambda _: kind, order), Told(of, order), none)


def not_drawn(*left: tuple[int, str]) -> str:
    """How many of each thing a panel has no room for, in words; empty where it has room for all."""
    said = ", ".join(many(count, thing) for count, thing in left if count)
    return f"not drawn for want of room: {said}" if said else ""


class _Groups(NamedTuple):
    """What each mark stands for: the thing that lasted longest, how many there are, from when to when, and their sum in ns."""

    longest: Int64
    many: Int64
    low: Int64
    high: Int64
    busy: Int64


def row_of(one: Lane, begin: int, pixel: int) -> TimelineRow:
    """The row with its marks: what lasts ``pixel`` ns or is blamed stands alone, the rest becomes one mark every few pixels."""
    return _drawn(one, _grouped(one, begin, pixel), begin)


def _grouped(one: Lane, begin: int, pixel: int) -> _Groups:
    small = (one.dur < pixel) & (one.finding == 0)
    alone, few = np.flatnonzero(~small), np.flatnonzero(small)
    return _joined(_single(one, alone), _together(one, few, begin, pixel))


def _drawn(one: Lane, groups: _Groups, begin: int) -> TimelineRow:
    longest: list[int] = groups.longest.tolist()
    count: list[int] = groups.many.tolist()
    return TimelineRow(
        group=one.group,
        layer=one.layer,
        label=one.label,
        start_ms=[_ms(ns) for ns in (groups.low - begin).tolist()],
        dur_ms=[_ms(ns) for ns in (groups.high - groups.low).tolist()],
        kind=[one.kind[i] for i in longest],
        text=[_text(one.text[i], n, ns) for i, n, ns in zip(longest, count, groups.busy.tolist(), strict=True)],
        count=count,
        finding=one.finding[groups.longest].tolist(),
        untrusted_text=[one.said[i] for i in longest] if one.said else [],
    )


def _single(one: Lane, rows: Int64) -> _Groups:
    start, dur = one.start[rows], one.dur[rows]
    return _Groups(rows, np.ones(len(rows), dtype=np.int64), start, start + dur, dur)


def _together(one: Lane, few: Int64, begin: int, pixel: int) -> _Groups:
    """``few`` rows, by start, as one group for every few pixels."""
    cell = (one.start[few] - begin) // (TOGETHER * max(pixel, 1))
    first = np.flatnonzero(np.diff(cell, prepend=cell[:1] - 1))
    if not len(few):
        return _single(one, few)
    start, dur = one.start[few], one.dur[few]
    by_length = np.lexsort((dur, cell))  # the cells in their order, in each the longest last
    last = np.append(first[1:], len(few)) - 1
    return _Groups(
        few[by_length[last]],
        last - first + 1,
        start[first],
        np.maximum.reduceat(start + dur, first),
        np.add.reduceat(dur, first),
    )


def _joined(one: _Groups, other: _Groups) -> _Groups:
    """Both, by start."""
    order = np.argsort(np.concatenate([one.low, other.low]), kind="stable")
    return _Groups(*(np.concatenate(pair)[order] for pair in zip(one, other, strict=True)))


def _text(longest: str, count: int, busy: int) -> str:
    return longest if count == 1 else f"{count:,} short ones, {_ms(busy):,} ms in all, the longest: {longest}"


def rows_of(lanes: Sequence[Lane], begin: int, length: int, most: int) -> tuple[list[TimelineRow], int]:
    """The rows of a panel that begins at ``begin`` ns and lasts ``length`` ns, and how many things share a mark with others.
    Where there are more than ``most`` marks, all become coarser until there are not, or until all of a row that nobody blames
    is one mark. Words are made of the marks alone.
    """
    pixel = max(length // PIXELS, SHORTEST_NS)
    shown = [one for one in lanes if len(one.start)]
    while True:
        groups = [_grouped(one, begin, pixel) for one in shown]
        if sum(len(each.many) for each in groups) <= most or pixel > length:
            rows = [_drawn(one, each, begin) for one, each in zip(shown, groups, strict=True)]
            return rows, sum(count for row in rows for count in row.count if count > 1)
        pixel *= 2


def _ms(ns: int) -> float:
    return round(ns / 1e6, 4)
