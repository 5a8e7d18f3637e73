"""One clock for all lines of a log: some have a zone, some a wall clock without one, some count from a start."""

from array import array
from collections import Counter

from teller_core.data.table import UNKNOWN
from teller_core.ingest.decimals import NS_PER_S
from teller_core.ingest.found import Found

QUARTER_HOUR = 900 * NS_PER_S
WIDEST_ZONE = 56
"""Quarters of an hour: no zone is over 14 hours from Greenwich."""
NONE, UNIX, WALL, LOCAL = range(4)
BORROWED = 4
"""Added to the clock of the line whose time another has borrowed."""


def kind_of(zoned: bool, local: bool) -> int:
    """The clock of a stamp."""
    return UNIX if zoned else LOCAL if local else WALL


class Clocks:
    """On which clock each kept line has its time, and what tells how far the wall clock is ahead of the Unix clock."""

    def __init__(self) -> None:
        self.kind = array("B")
        self.kinds: Counter[int] = Counter()
        self.votes: Counter[int] = Counter()
        """By quarters of an hour."""
        self._kind, self._time = NONE, UNKNOWN
        """Of the last line that has a time."""

    def add(self, kind: int, time: int) -> None:
        """The next line, with its time on the clock ``kind``."""
        if kind == NONE:
            self.kind.append(BORROWED + self._kind)
            return
        self.kind.append(kind)
        self.kinds[kind] += 1
        before, self._kind = self._kind, kind
        if before != kind and NONE < before < LOCAL and kind < LOCAL:
            self.vote(self._time - time if kind == UNIX else time - self._time)
        self._time = time

    def said(self, time: int, epoch: int) -> None:
        """A line of ``time`` on the wall clock tells the Unix time at which it was written."""
        if time != UNKNOWN and self.kind and self.kind[-1] == WALL:
            self.vote(time - epoch)

    def vote(self, ahead: int) -> None:
        """The wall clock seems to be ``ahead`` by that many ns."""
        quarters = round(ahead / QUARTER_HOUR)
        if abs(quarters) <= WIDEST_ZONE:
            self.votes[quarters] += 1

    def ahead(self) -> int | None:
        """ns by which the wall clock is ahead: the median of what neighbors tell. None where none tell."""
        half = (self.votes.total() + 1) // 2
        for quarters in sorted(self.votes):
            half -= self.votes[quarters]
            if half <= 0:
                return quarters * QUARTER_HOUR
        return None


def settle(found: Found, clocks: Clocks) -> None:
    """Put lines of a clock without zone on the Unix clock where lines with a zone, or that tell the epoch, show how.

    Times that count from a start stand only where no line has another clock. Problems: ``line_of_unknown_zone``.
    """
    kinds, shift = clocks.kinds, clocks.ahead()
    if kinds[LOCAL] and (kinds[UNIX] or kinds[WALL]):
        _move(found, {i for i, kind in enumerate(clocks.kind) if kind % BORROWED == LOCAL}, None)
    if not kinds[WALL]:
        found.clock = "unix" if kinds[UNIX] else "local"
    elif shift is None and kinds[UNIX]:
        found.problems["line_of_unknown_zone"] += kinds[WALL]
    elif shift is None:
        found.clock = "wall"
    else:
        _move(found, {i for i, kind in enumerate(clocks.kind) if kind % BORROWED == WALL}, shift)


def _move(found: Found, moved: set[int], shift: int | None) -> None:
    """Take ``shift`` from the times of the lines ``moved`` and of the facts they told; None takes the times themselves."""

    def at(time: int) -> int:
        return time if time == UNKNOWN else UNKNOWN if shift is None else time - shift

    for i in moved:
        found.lines.time[i] = at(found.lines.time[i])
        if shift is None:
            found.lines.resolution[i] = UNKNOWN
    found.iterations = [row._replace(time=at(row.time)) if row.line in moved else row for row in found.iterations]
    found.requests = [row._replace(time=at(row.time)) if row.line in moved else row for row in found.requests]
