"""What to call after an import."""

from typing import Any

import pytest

from teller_core.data.report import CaptureReport, ImportReport
from teller_core.tell.layout import Style
from teller_core.tell.next_calls import next_calls, recorded_apart
from teller_core.tell.text import page


@pytest.fixture
def named(samples: Any) -> CaptureReport:
    return samples.capture()


@pytest.fixture
def traced(samples: Any) -> CaptureReport:
    return samples.capture().model_copy(update={"id": "b" * 40, "requests": 0})


def ranks(capture: CaptureReport, *times: tuple[int, int]) -> CaptureReport:
    made = [
        capture.ranks[0].model_copy(update={"rank": at, "pid": 70 + at, "start": start, "stop": stop})
        for at, (start, stop) in enumerate(times)
    ]
    return capture.model_copy(update={"ranks": made})


def test_an_import_ends_with_the_call_that_lists_its_slow_requests(named: CaptureReport) -> None:
    shown = page(ImportReport(captures=[named]), Style(width=80))
    assert shown.endswith("Ask next\n  teller slow --capture 3f2a91c07be4  (the slowest requests first)")


def test_traces_beside_requests_may_have_been_recorded_together(named: CaptureReport, traced: CaptureReport) -> None:
    calls = [call for call, _ in next_calls([named, traced])]
    assert calls == ["import --together PATH...", f"slow --capture {named.id[:12]}", f"slow --capture {traced.id[:12]}"]


def test_two_captures_of_a_kind_can_be_compared(traced: CaptureReport) -> None:
    after = traced.model_copy(update={"id": "c" * 40})
    assert [call for call, _ in next_calls([traced, after])][-1] == f"compare {'b' * 12} {'c' * 12}"


def test_several_ranks_without_requests_are_looked_at_side_by_side(traced: CaptureReport) -> None:
    [(call, _)] = next_calls([ranks(traced, (0, 10), (2, 12))])
    assert call == f"slow --view horizontal --capture {'b' * 12}"


@pytest.mark.parametrize(
    ("times", "apart"),
    [
        ([(0, 10), (5, 15)], False),
        ([(0, 10), (12, 22)], False),
        ([(0, 10), (1, 9), (30, 40), (31, 40)], True),
        ([(30, 40), (0, 10)], True),
        ([(0, 100), (10, 20), (150, 160)], False),
        ([(0, 10)], False),
        ([], False),
    ],
)
def test_ranks_recorded_longer_apart_than_they_last_did_not_work_together(
    traced: CaptureReport, times: list[tuple[int, int]], apart: bool
) -> None:
    capture = ranks(traced, *times)
    assert recorded_apart(capture) is apart
    assert any(call.startswith("import --apart") for call, _ in next_calls([capture])) is apart


def test_ranks_without_times_tell_nothing_of_when(traced: CaptureReport) -> None:
    assert not recorded_apart(traced)


def test_a_process_recorded_twice_was_there_in_between(traced: CaptureReport) -> None:
    capture = ranks(traced, (0, 10), (30, 40))
    again = [rank.model_copy(update={"rank": 0, "pid": 70}) for rank in capture.ranks]
    assert not recorded_apart(capture.model_copy(update={"ranks": again}))
