"""The horizontal view: the ranks of a capture side by side, and the collectives in which they waited for one another."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.capture import Absences, Collectives, Meetings, Rank
from teller_core.data.report import LongWait, RankShare, SlowReport
from teller_core.data.shares import rank_shares, untold
from teller_core.data.table import UNKNOWN
from teller_core.errors import InputError

COLUMNS = tuple(RankShare.model_fields)
NameOf = Callable[[int, int], str]
"""The name of the span at a row of the tree of the rank at a position."""


class Sides(NamedTuple):
    """What is told of the ranks of one capture."""

    ranks: Sequence[Rank]
    table: Collectives
    meetings: Meetings
    absences: Absences


def horizontal_report(
    capture: str,
    sides: Sides,
    name_of: NameOf,
    *,
    limit: int = 20,
    cursor: str | None = None,
) -> SlowReport:
    """``limit`` rows of ranks from ``cursor`` on, and, on the first page, as many collectives, by what was waited in them.

    Errors: InputError for a cursor that is not from here.
    """
    first = _first(cursor)
    shares = rank_shares(sides.ranks, sides.table, sides.absences)
    page = shares[first : first + limit]
    return SlowReport(
        capture=capture,
        view="horizontal",
        metric="e2e",
        columns=list(COLUMNS),
        rows=[[getattr(share, name) for name in COLUMNS] for share in page],
        total=len(shares),
        next_cursor=f"ranks.{first + limit}" if first + limit < len(shares) else None,
        note=_note(sides),
        waits=_waits(sides, name_of, limit) if first == 0 else [],
    )


def _first(cursor: str | None) -> int:
    if cursor is None:
        return 0
    head, _, number = cursor.partition(".")
    if head != "ranks" or not (number.isascii() and number.isdecimal() and len(number) < 10):
        raise InputError("the cursor", "it does not come from this list", "Begin again without a cursor")
    return int(number)


def _note(sides: Sides) -> str:
    meetings, absent = sides.meetings, len(sides.absences.rank)
    named, met = int((meetings.late >= 0).sum()), len(meetings.kind)
    said = f"{named} of {met} collectives in which ranks met have one that surely came last" if met else ""
    errors = [rank.clock_error for rank in sides.ranks if rank.rank >= 0]
    if met and UNKNOWN not in errors:
        said += f", by clocks that are bounded to {max(errors) / 1e3:,.1f} us in the recorded window"
    parts = [said, untold(sides.ranks, sides.table, meetings)]
    if absent:
        parts.append(f"{absent} times a rank did not come to a collective while others waited in it")
    return "; ".join(filter(None, parts))


def _waits(sides: Sides, name_of: NameOf, limit: int) -> list[LongWait]:
    waited = np.where(sides.meetings.waited == UNKNOWN, 0, sides.meetings.waited)
    order = np.lexsort((sides.meetings.arrived, -waited))[:limit]
    return [_wait(sides, k, name_of) for k in order.tolist() if waited[k] > 0]


def _wait(sides: Sides, k: int, name_of: NameOf) -> LongWait:
    meetings, table = sides.meetings, sides.table
    late, kept = int(meetings.late[k]), int(meetings.kept[k])
    rows = np.flatnonzero((table.sequence == k) & ((table.rank == late) | (late < 0)))
    rank, row = int(table.rank[rows[0]]), int(table.row[rows[0]])
    told = late >= 0 and kept >= 0
    return LongWait(
        handle=f"{rank}:{row}" if row >= 0 else "",
        kind=meetings.kind[k],
        untrusted_text=meetings.group[k],
        ranks=int(meetings.came[k]),
        late_rank=sides.ranks[late].rank if late >= 0 else None,
        late_by_ms=_ms(int(meetings.by[k])),
        waited_ms=int(meetings.waited[k]) / 1e6,
        transfer_ms=_ms(int(meetings.transfer[k])),
        kept_by=name_of(late, kept) if told else None,
        kept_handle=f"{late}:{kept}" if told else None,
        matched_by=meetings.how[k],
    )


def _ms(ns: int) -> float | None:
    return None if ns == UNKNOWN else ns / 1e6
