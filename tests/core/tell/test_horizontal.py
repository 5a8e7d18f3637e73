"""The horizontal view: ranks side by side and the collectives that were waited in longest."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from teller_core.data.capture import Absences, Collectives, Meetings, Rank, no_absences, no_meetings
from teller_core.data.report import RankShare, SlowReport
from teller_core.data.shares import rank_shares, untold
from teller_core.data.table import UNKNOWN
from teller_core.errors import InputError
from teller_core.tell.horizontal import COLUMNS, Sides, horizontal_report
from teller_core.tell.layout import Style
from teller_core.tell.text import page

MS = 10**6
RANKS = [Rank(number, f"node{number}", 7 + number, "worker", None, 0, clock_error=error) for number, error in
         ((0, 0), (1, 40_000), (2, 60_000))]  # fmt: skip


def collectives(*rows: tuple[int, int, int, int, int, int]) -> Collectives:
    """``rows``: sequence, rank, row, dur, wait, late."""
    sequence, rank, row, dur, wait, late = np.array(rows, dtype=np.int64).reshape(-1, 6).T
    small = [column.astype(np.int32) for column in (np.zeros(len(rows)), np.full(len(rows), 5), rank, row, late)]
    return Collectives(small[0], sequence, small[1], small[2], small[3], sequence * MS, dur, wait, small[4])


TABLE = collectives(
    (0, 0, 10, 9 * MS, 8 * MS, 2),
    (0, 1, 11, 7 * MS, 6 * MS, 2),
    (0, 2, 12, 1 * MS, 0, 2),
    (1, 0, 20, 3 * MS, 2 * MS, -1),
    (1, 1, 21, 1 * MS, UNKNOWN, -1),
    (1, 2, 22, 1 * MS, UNKNOWN, -1),
)
MEETINGS = Meetings(
    ["tp", "tp"], ["all_reduce", "all_gather"], ["step", "step"], np.array([3, 3], np.int32), np.array([3, 3], np.int32),
    np.array([8 * MS, 12 * MS]), np.array([2, -1], np.int32), np.array([5 * MS, UNKNOWN]),
    np.array([14 * MS, 2 * MS]), np.array([MS, MS]), np.array([4, -1], np.int32),
    np.array([-1, -1], np.int32),
)  # fmt: skip
SIDES = Sides(RANKS, TABLE, MEETINGS, no_absences())


def absent(*ranks: int) -> Absences:
    def columns(name: str) -> Any:
        return (
            [""] * len(ranks) if name in ("group", "description", "name", "dtype", "waiters") else np.zeros(len(ranks))
        )

    made: dict[str, Any] = {name: columns(name) for name in Absences.__dataclass_fields__}
    return Absences(**{**made, "rank": np.array(ranks, np.int32)})


def name_of(rank: int, row: int) -> str:
    return f"aten::mm of {rank}:{row}"


def shown(sides: Sides = SIDES, **more: Any) -> SlowReport:
    return horizontal_report("c" * 64, sides, name_of, **more)


def test_who_was_waited_for_most_comes_first_and_waits_are_added_up() -> None:
    report = shown()
    rows = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    assert [row["rank"] for row in rows] == [2, 0, 1]
    assert rows[0] == {
        "rank": 2, "position": 2, "host": "node2", "collectives": 2, "waited_ms": 0.0, "waited_for_ms": 14.0,
        "times_late": 1, "transfer_ms": 1.0, "missing": 0, "clock_error_us": 60.0,
    }  # fmt: skip
    assert (rows[1]["waited_ms"], rows[1]["waited_for_ms"], rows[1]["times_late"]) == (10.0, 0.0, 0)
    assert (rows[1]["transfer_ms"], rows[2]["transfer_ms"]) == (2.0, 1.0)


def test_the_longest_wait_names_the_late_rank_its_span_and_what_kept_it() -> None:
    first, second = shown().waits
    assert (first.handle, first.late_rank, first.late_by_ms, first.waited_ms, first.transfer_ms) == (
        "2:12",
        2,
        5,
        14,
        1,
    )
    assert (first.kept_by, first.kept_handle) == ("aten::mm of 2:4", "2:4")
    assert (second.late_rank, second.late_by_ms, second.kept_by, second.waited_ms) == (None, None, None, 2)


def test_what_no_clock_tells_is_null_and_the_note_says_why() -> None:
    table = replace(TABLE, wait=np.full(6, UNKNOWN), late=np.full(6, -1, np.int32))
    meetings = replace(MEETINGS, late=np.full(2, -1, np.int32), waited=np.full(2, UNKNOWN))
    report = shown(Sides(RANKS, table, meetings, no_absences()))
    at = [report.columns.index(name) for name in ("waited_ms", "waited_for_ms", "times_late", "transfer_ms")]
    assert all(row[k] is None for row in report.rows for k in at)
    assert report.waits == []
    assert report.note.startswith("0 of 2 collectives")
    assert "clocks that are bounded to 60.0 us in the recorded window" in report.note
    assert "nobody came later than the bound" in report.note


@pytest.mark.parametrize(
    ("ranks", "table", "meetings", "why"),
    [
        (RANKS, collectives(), no_meetings(), "no collective was recorded"),
        (RANKS, collectives((0, 0, 1, 1, UNKNOWN, -1)), no_meetings(), "one rank alone"),
        (RANKS, replace(TABLE, sequence=np.arange(6) + 9), no_meetings(), "could not be told"),
        (RANKS, TABLE, replace(MEETINGS, late=np.full(2, -1, np.int32), size=np.zeros(2, np.int32)), "must meet is not known"),
        (RANKS, TABLE, replace(MEETINGS, late=np.full(2, -1, np.int32), size=np.full(2, 9, np.int32)), "at most 3 of 9"),
        ([*RANKS[:2], replace(RANKS[2], clock_error=UNKNOWN)], TABLE, MEETINGS, "nothing bounds how far the clocks"),
        (RANKS, TABLE, replace(MEETINGS, late=np.array([2, 0], np.int32)), ""),
    ],
)  # fmt: skip
def test_the_reason_why_nobody_is_named(ranks: list[Rank], table: Collectives, meetings: Meetings, why: str) -> None:
    told = untold(ranks, table, meetings)
    assert why in told
    assert bool(told) == bool(why)


def test_ranks_that_did_not_come_are_counted_and_shown_even_if_nothing_else_is_known_of_them() -> None:
    report = shown(SIDES._replace(absences=absent(1, 1, 9)))
    missing = {row[0]: row[COLUMNS.index("missing")] for row in report.rows}
    assert missing == {0: 0, 1: 2, 2: 0, 9: 1}
    assert [row[:3] for row in report.rows if row[0] == 9] == [[9, None, ""]]
    assert "3 times a rank did not come" in report.note


def test_several_recordings_of_a_rank_are_rows_of_their_own_and_empty_ones_none() -> None:
    ranks = [RANKS[0], replace(RANKS[0], file=1), RANKS[1], RANKS[2]]
    table = replace(TABLE, rank=np.array([1, 2, 3, 1, 2, 3], np.int32), late=np.array([3, 3, 3, -1, -1, -1], np.int32))
    shares = rank_shares(ranks, table, no_absences())
    assert sorted((share.rank, share.position) for share in shares) == [(0, 1), (1, 2), (2, 3)]


def test_pages_follow_one_another_and_the_waits_stand_on_the_first() -> None:
    first = shown(limit=2)
    assert (len(first.rows), first.total, first.next_cursor, len(first.waits)) == (2, 3, "ranks.2", 2)
    second = shown(limit=2, cursor=first.next_cursor)
    assert (len(second.rows), second.next_cursor, second.waits) == (1, None, [])


@pytest.mark.parametrize("cursor", ["e2e.5.1", "ranks", "ranks.-1", "ranks.x", "ranks." + "9" * 30, ""])
def test_a_cursor_from_elsewhere_is_refused(cursor: str) -> None:
    with pytest.raises(InputError):
        shown(cursor=cursor)


def test_the_page_shows_ranks_waits_and_where_to_look() -> None:
    text = page(shown(), Style(width=120, unicode=False))
    assert text.startswith("3 ranks side by side, capture cccccccccccc")
    assert "aten::mm of 2:4" in text
    assert "teller slice 2:4 --capture cccccccccccc" in text


def test_the_columns_are_those_of_a_rank() -> None:
    assert tuple(RankShare.model_fields) == COLUMNS
