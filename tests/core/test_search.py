"""A text is found where it stands: in ids, in names of spans, in log lines; in one capture or in all, page by page."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core.data.capture import Capture, Rank
from teller_core.data.report_search import SearchReport
from teller_core.data.steps import Lines, StepWork
from teller_core.errors import InputError, UnknownName
from teller_core.search import search
from teller_core.store import search as looking
from teller_core.store.store import Store
from tests.core.store.made import assessment_of, capture_of, filled, report_of, tree_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
BEGAN = 1_796_000_000_000_000_000


def a_capture(identity: str, lines: list[str] = ["Preempted cmpl-1", "all is well 100%"]) -> Capture:  # noqa: B006
    """Two ranks with spans of the same names, three requests and two log lines."""
    tree = tree_of(400)
    trace = replace(tree.trace, names=["aten::mm", "ncclAllReduce", "AToT mm\x1b[31m"])
    ranks = [Rank(at, "host", 7 + at, "worker", replace(tree, trace=trace), 0, shift=at * 10**9) for at in range(2)]
    plain = capture_of(identity)
    return replace(
        plain,
        ranks=ranks,
        work=filled(StepWork, 2, step=[3, 3], rank=[0, 1], row=[0, 0], row_stop=[400, 400]),
        requests=replace(plain.requests, trace_id=["", TRACE, ""], client_start=np.full(3, BEGAN)),
        lines=filled(
            Lines,
            len(lines),
            untrusted_text=lines,
            number=np.arange(len(lines)) + 7,
            request=[1, *[-1] * (len(lines) - 1)],
            step=[-1] * len(lines),
            time=[BEGAN] * len(lines),
        ),
    )


def keep(store: Store, *captures: Capture) -> None:
    for capture in captures:
        store.save(capture, assessment_of({"e2e": [5_000_000] * 3}), [], report_of(capture))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "t.db") as store:
        keep(store, a_capture("aa11"))
        yield store


def rows(report: SearchReport) -> list[dict[str, Any]]:
    return [dict(zip(report.columns, row, strict=True)) for row in report.rows]


def test_one_row_a_name_has_the_calls_and_time_of_all_ranks_and_the_longest_span_with_its_step(store: Store) -> None:
    report = search(store, "MM", kind="operator")
    found = {row["untrusted_text"]: row for row in rows(report)}
    assert set(found) == {"aten::mm", "AToT mm [31m"}  # nothing in it commands a terminal
    tree = store.tree_rows("aa11", 0)
    mine = (tree.trace.name == 0) & (tree.trace.layer == 3)
    row = found["aten::mm"]
    assert row["calls"] == 2 * int(mine.sum())
    assert row["total_ms"] == round(2 * int(tree.trace.dur[mine].sum()) / 1e6, 3)
    rank, _, at = row["handle"].partition(":")
    assert (rank, row["step"]) == ("0", 3)
    assert mine[int(at)]
    assert row["took_ms"] == round(int(tree.trace.dur[mine].max()) / 1e6, 3)
    assert report.counts == {"operator": 2}


def test_all_words_must_be_there_in_any_order_and_case(store: Store) -> None:
    assert [row["untrusted_text"] for row in rows(search(store, "MM atot"))] == ["AToT mm [31m"] * 2
    assert search(store, "mm nothing").rows == []


def test_a_request_is_found_by_a_part_of_an_id_or_by_what_a_dashboard_shows(store: Store) -> None:
    part, header = search(store, "CLIENT-1"), search(store, f"00-{TRACE}-00f067aa0ba902b7-01")
    exemplar = search(store, f'# {{trace_id="{TRACE}"}} 0.67 1520879607.789')
    assert [rows(one)[0]["request"] for one in (part, header, exemplar)] == [2, 2, 2]
    row = rows(part)[0]
    assert (row["kind"], row["handle"]) == ("request", "request 2")
    assert row["untrusted_text"] == f"cmpl-1 client-1 {TRACE}"
    assert (row["took_ms"], row["time"]) == (5.0, "2026-11-30 00:53:20.000")
    dashed = f"{TRACE[:8]}-{TRACE[8:12]}-{TRACE[12:16]}-{TRACE[16:20]}-{TRACE[20:]}"
    assert search(store, dashed).counts == {"request": 1}


def test_a_log_line_comes_with_where_it_stands_and_whom_it_names(store: Store) -> None:
    (row,) = rows(search(store, "preempted", kind="log_line"))
    assert row["where"] == "trace.json.gz:7"
    assert (row["request"], row["handle"]) == (2, "request 2")
    assert row["untrusted_text"] == "Preempted cmpl-1"


@pytest.mark.parametrize(("text", "lines"), [("100%", 1), ("%", 1), ("_", 0), ("\\", 0), ("1 w%l", 0)])
def test_signs_that_sql_takes_for_others_stand_for_themselves(store: Store, text: str, lines: int) -> None:
    assert search(store, text, kind="log_line").counts.get("log_line", 0) == lines


def test_kinds_narrow_it_and_are_counted(store: Store) -> None:
    every = search(store, "m")
    assert every.counts == {"request": 3, "operator": 2, "kernel": 2, "log_line": 1}
    assert [row["kind"] for row in rows(every)][:3] == ["request"] * 3
    assert search(store, "m", kind="span").counts == {"operator": 2, "kernel": 2}
    assert search(store, "m", kind="kernel").counts == {"kernel": 2}


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_pages_together_are_the_whole_over_all_captures_the_newest_first(store: Store, limit: int) -> None:
    keep(store, a_capture("bb22"))
    whole = search(store, "m", capture="all", limit=1000)
    assert [row["capture"] for row in rows(whole)] == ["bb22"] * 8 + ["aa11"] * 8
    assert whole.capture is None
    assert whole.next_cursor is None
    got: list[Any] = []
    cursor: str | None = None
    while True:
        page = search(store, "m", capture="all", limit=limit, cursor=cursor)
        assert len(page.rows) <= limit
        got += [[row.get(name) for name in whole.columns] for row in rows(page)]
        assert (page.counts == whole.counts) is (cursor is None)
        cursor = page.next_cursor
        if cursor is None:
            break
        keep(store, a_capture(f"cc{len(got):02}"))  # what is imported meanwhile is newer than where the pages are
    assert got == whole.rows


def test_what_one_call_does_not_look_through_the_next_one_does(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"line {at} {'needle' if at % 10 == 0 else 'hay'}" for at in range(95)]
    keep(store, a_capture("bb22", lines))
    monkeypatch.setattr(looking, "MOST", 20)
    monkeypatch.setattr(looking, "A_PART", 0)
    got: list[str] = []
    cursor: str | None = None
    first = search(store, "needle", kind="log_line")
    assert "Not all was looked through" in first.note
    for _ in range(9):
        page = search(store, "needle", kind="log_line", limit=3, cursor=cursor)
        got += [row["untrusted_text"] for row in rows(page)]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert got == [line for line in lines if "needle" in line]


def test_nothing_found_says_where_else_to_look(store: Store) -> None:
    here, everywhere = search(store, "nothing"), search(store, "nothing", capture="all")
    assert (here.rows, here.counts, here.next_cursor) == ([], {}, None)
    assert "--capture all" in here.note
    assert "--capture all" not in everywhere.note
    with pytest.raises(UnknownName):
        search(store, "m", capture="ffff")


@pytest.mark.parametrize("text", ["", "  ", "a b c d e f g h i", "x" * 201])
def test_a_text_without_words_or_of_too_many_is_refused(store: Store, text: str) -> None:
    with pytest.raises(InputError, match="1 to 8 words and at most 200 characters"):
        search(store, text)


def test_a_cursor_of_another_search_is_refused(store: Store) -> None:
    cursor = search(store, "m", limit=1).next_cursor
    assert cursor
    assert len(search(store, "m", limit=1, cursor=cursor).rows) == 1
    for text, kind, given in (
        ("n", "any", cursor),
        ("m", "span", cursor),
        ("m", "any", "x"),
        ("m", "any", f"{cursor}0.1"),
    ):
        with pytest.raises(InputError, match="does not come from this search"):
            search(store, text, kind=kind, cursor=given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("text", ["\u00df", "\u0130", "'; DROP TABLE lines; --", "\\"])
def test_any_text_is_only_looked_for(store: Store, text: str) -> None:
    tree = tree_of(50)
    keep(store, capture_of("bb22", replace(tree, trace=replace(tree.trace, names=[f"a{text}b", "c", "\ud800"]))))
    assert set(search(store, text.upper(), kind="span").counts) == {"operator", "kernel"}
    assert search(store, f"{text}c").rows == []


def test_what_does_not_show_is_not_looked_for(store: Store) -> None:
    assert search(store, "\x00aten\ud800mm\x1b").counts == search(store, "aten mm").counts
    with pytest.raises(InputError):
        search(store, "\x00")
