"""The slow list where it is empty, or nobody measured: why, and what to call instead."""

from typing import Any

import pytest

from teller_core.data.report import Ask, Cell, Contrast, ServiceLevel
from teller_core.tell.instead import instead, no_requests
from teller_core.tell.layout import Style, without_middle
from teller_core.tell.text import page

PLAIN = Style(width=80)
LEVEL = ServiceLevel(name="waiting", unit="requests", lowest=0, highest=7, last=1, readings=9)


def test_a_capture_without_requests_says_why_and_what_to_call_instead(samples: Any) -> None:
    capture = samples.capture()
    asks = [
        Ask(verb="slow", capture=capture.id, view="horizontal", why="its ranks"),
        Ask(verb="slice", capture=capture.id, target="step 9", why="its longest step of 10"),
        Ask(verb="captures", capture=capture.id, why="what was found"),
    ]
    empty = samples.table(2).model_copy(update={"rows": [], "note": no_requests(capture), "instead": asks})
    shown = page(empty, PLAIN)
    assert "No requests: nothing that was read names one." in shown
    assert "  teller slow --view horizontal --capture 3f2a91c07be4  (its ranks)" in shown
    assert "  teller slice step 9 --capture 3f2a91c07be4  (its longest step of 10)" in shown
    assert "  teller captures  (what was found)" in shown


def test_a_log_that_names_no_request_is_not_asked_for_again(samples: Any) -> None:
    capture = samples.capture()
    log = capture.files[0].model_copy(update={"format": "engine_log"})
    said = no_requests(capture.model_copy(update={"files": [log]}))
    assert "the log that was read" in said
    assert "An engine's log" not in said


def test_what_is_offered_is_what_the_captures_hold(samples: Any) -> None:
    other = samples.capture()
    alone = other.model_copy(update={"id": "b" * 40, "requests": 0, "steps": 0, "ranks": []})
    assert [(ask.verb, ask.capture) for ask in instead(alone, [alone, other], None)] == [("slow", other.id)]
    ranks = [other.ranks[0], other.ranks[0].model_copy(update={"rank": 1})]
    full = alone.model_copy(update={"steps": 5, "ranks": ranks, "findings": [samples.finding()]})
    offered = instead(full, [full], 3)
    assert [(ask.verb, ask.view, ask.target) for ask in offered] == [
        ("captures", None, None),
        ("slow", "horizontal", None),
        ("slice", None, "step 3"),
    ]
    assert instead(full, [full], None)[-1].why == "its first step of 5"


def test_what_the_service_counted_is_shown_where_no_request_was_measured(samples: Any) -> None:
    table = samples.table(2).model_copy(update={"levels": [LEVEL]})
    assert "What it counted" not in page(table, PLAIN)
    times = [at for at, name in enumerate(table.columns) if name.endswith("_ms")]
    bare = [[None if at in times else cell for at, cell in enumerate(row)] for row in table.rows]
    shown = page(table.model_copy(update={"rows": bare}), PLAIN)
    assert "What it counted" in shown
    assert "waiting" in shown


def with_began(samples: Any, *began: str, ids: bool = True) -> Any:
    table = samples.table(len(began))
    rows = [
        [
            *(cell if ids or name != "engine_id" else None for name, cell in zip(table.columns, row, strict=True)),
            cause,
            time,
        ]
        for row, time, cause in zip(table.rows, began, ["scheduler.kv_preemption", None], strict=True)
    ]
    return table.model_copy(update={"columns": [*table.columns, "cause", "began"], "rows": rows})


TIMES = ("2026-08-01 10:15:24.900", "2026-08-01 10:15:25.900")


def test_when_requests_began_is_shown_where_no_id_tells_them_apart_or_there_is_room(samples: Any) -> None:
    assert "10:15:24" in page(with_began(samples, *TIMES, ids=False), PLAIN)
    assert "10:15:24" not in page(with_began(samples, *TIMES), PLAIN)
    assert "10:15:24" in page(with_began(samples, *TIMES), Style(width=120))
    assert "08-01 10:15:24" in page(
        with_began(samples, TIMES[0], "2026-08-02 00:00:01.000", ids=False), Style(width=100)
    )


def test_a_cause_is_never_cut_for_an_id_and_loses_its_family_on_narrow_pages(samples: Any) -> None:
    table = with_began(samples, *TIMES)
    table.rows[0][1] = "chatcmpl-" + "0" * 40 + "-ac4d289c"
    wide, narrow = page(table, Style(width=100)), page(table, PLAIN)
    assert "scheduler.kv_preemption" in wide and "  cha" in wide and "9c  " in wide
    assert "kv_preemption" in narrow and "scheduler" not in narrow
    assert max(map(len, narrow.splitlines())) <= 80


@pytest.mark.parametrize("width", [60, 80, 120])
def test_a_metric_by_which_nothing_was_judged_has_no_verdict_in_any_width(samples: Any, width: int) -> None:
    table = samples.table(2)
    bare = [[*row[:-1], None] for row in table.rows]
    assert table.columns[-1] == "verdict"
    shown = page(table.model_copy(update={"metric": "ttft", "rows": bare}), Style(width=width))
    assert "None" not in shown
    assert "teller why" in shown


def test_an_id_is_cut_in_its_middle() -> None:
    assert without_middle("chatcmpl-prof-002-9c300837", 14) == "chatcm...00837"
    assert without_middle("cmpl-1", 14) == "cmpl-1"


def test_ranks_recorded_twice_are_counted_once(samples: Any) -> None:
    update = {"view": "horizontal", "columns": ["rank", "host"], "rows": [[0, "a"], [0, "a"]], "total": 2}
    whole = samples.table(2).model_copy(update={**update, "next_cursor": None})
    assert page(whole, PLAIN).startswith("1 rank in 2 recordings side by side")
    cut = whole.model_copy(update={"total": 9})
    assert page(cut, PLAIN).startswith("9 ranks side by side")


def test_what_is_claimed_of_the_slow_stands_under_the_list_and_what_is_not_does_not(samples: Any) -> None:
    columns = [
        "what",
        "unit",
        "slow",
        "fast",
        "effect",
        "low",
        "high",
        "of_slow",
        "of_fast",
        "claimed",
        "untrusted_text",
    ]
    rows: list[list[Cell]] = [
        ["queue time", "ms", 900.0, 12.0, 0.97, 0.8, 1.0, 10, 30, True, None],
        ["log line like", "share", 0.9, 0.1, 0.8, 0.5, 0.9, 10, 30, True, "\x1b[31mstalled for *"],
        ["batch", "requests", 7.0, 5.0, 0.4, -0.1, 0.7, 10, 30, False, None],
    ]
    contrast = Contrast(slow=10, fast=30, tried=9, columns=columns, rows=rows)
    shown = page(samples.table(2).model_copy(update={"contrast": contrast}), PLAIN)
    assert "The slowest 10 beside the other 30" in shown
    assert "queue time" in shown
    assert "[31mst" in shown
    assert "\x1b" not in shown
    assert "batch" not in shown
    unclaimed = contrast.model_copy(update={"rows": rows[2:]})
    assert "beside the other" not in page(samples.table(2).model_copy(update={"contrast": unclaimed}), PLAIN)
