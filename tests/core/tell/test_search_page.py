"""What was found, for a terminal: a table, and the calls that go on from it."""

from typing import Any

from teller_core.tell.layout import Style
from teller_core.tell.text import page

WIDE, NARROW = Style(width=120), Style(width=60)


def test_the_page_says_what_was_found_where_and_what_to_call_next(samples: Any) -> None:
    shown = page(samples.found(), WIDE)
    head = "Found in capture 3f2a91c07be4: 1 request, 2 communication spans, 1 log line"
    assert shown.startswith(head)
    assert "untrusted" not in shown
    assert "Look inside: teller why 42 --capture 3f2a91c07be4" in shown
    assert "Look inside: teller slice 0:1234 --capture 3f2a91c07be4" in shown
    assert "More: the same search with --cursor 0000abcd.1.1.2" in shown


def test_of_all_captures_each_row_and_each_call_names_its_own(samples: Any) -> None:
    found = samples.found()
    rows = [[*row, "ffffffffffff"] for row in found.rows]
    changes = {"capture": None, "columns": [*found.columns, "capture"], "rows": rows}
    shown = page(found.model_copy(update=changes), WIDE)
    assert shown.startswith("Found in all captures: ")
    assert "teller why 42 --capture ffffffffffff" in shown


def test_a_handle_is_never_cut_however_narrow_the_page(samples: Any) -> None:
    shown = page(samples.found(), NARROW)
    assert "0:1234" in shown
    assert all(len(line) <= NARROW.width for line in shown.splitlines() if not line.startswith(("Look", "More")))


def test_a_narrow_page_rather_has_names_than_times(samples: Any) -> None:
    assert "ncclDevKernel_AllGather" in page(samples.found(), NARROW)
    assert "server.log:33" in page(samples.found(), WIDE)


def test_a_long_name_keeps_both_ends(samples: Any) -> None:
    found = samples.found()
    rows = [[*row[:2], f"/a/{'x' * 90}/scheduler.py(7): run_batch", *row[3:]] for row in found.rows]
    shown = page(found.model_copy(update={"rows": rows}), WIDE)
    assert "run_batch" in shown
    assert "/a/x" in shown


def test_what_commands_a_terminal_does_not_reach_it(samples: Any) -> None:
    found = samples.found()
    rows = [[*row[:2], samples.hostile, *row[3:]] for row in found.rows]
    assert "\x1b" not in page(found.model_copy(update={"rows": rows}), WIDE)


def test_nothing_found_is_one_sentence(samples: Any) -> None:
    nothing = samples.found().model_copy(
        update={"rows": [], "counts": {}, "next_cursor": None, "note": "Nothing here."}
    )
    assert page(nothing, WIDE).strip() == "Nothing here."
