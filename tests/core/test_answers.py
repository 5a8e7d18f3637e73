"""What is asked by name: the refusals that a mistyped name gets."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from teller_core import answers
from teller_core.answers import compare, slow, why
from teller_core.errors import InputError, UnknownName
from teller_core.slices import causal_slice
from teller_core.store.store import Store
from teller_core.tell.coarse import SECOND
from teller_core.tell.summary import capture_report
from tests.core.store.made import assessment_of, capture_of, report_of, tree_of


@pytest.fixture
def store(tmp_path: Path) -> Generator[Store]:
    with Store.open(tmp_path / "t.db") as opened:
        capture = replace(capture_of("0a"), id="0a" * 32)
        opened.save(capture, assessment_of({}), [], report_of(capture))
        yield opened


def test_a_side_that_is_neither_a_request_nor_a_capture_is_told_as_both(store: Store) -> None:
    with pytest.raises(UnknownName, match=r"names no request, and no single capture \(.*\)\. List the requests"):
        compare(store, "1", "9999")


def test_a_number_that_is_no_request_may_have_been_meant_as_a_step(store: Store) -> None:
    with pytest.raises(UnknownName, match="a step is called as `step 17`"):
        causal_slice(store, "304")
    with pytest.raises(UnknownName, match="requests 1 to") as refused:
        causal_slice(store, "request 304")
    assert "step 17" not in str(refused.value)


def test_a_rank_without_a_trace_is_refused_and_not_shown_empty(store: Store) -> None:
    with pytest.raises(UnknownName, match="the rank: "):
        causal_slice(store, "step 0", rank=99)


def test_who_asks_against_a_promise_says_which_one(store: Store) -> None:
    for ask in (lambda: slow(store, metric="slo"), lambda: why(store, "1", metric="slo")):
        with pytest.raises(InputError, match="slo_ms"):
            ask()
    assert slow(store, metric="slo", slo_ms=100.0).metric == "slo"


@pytest.mark.parametrize("slo_ms", [1e308, 1e13, 1e-320, 1e-7])
def test_a_promise_that_no_request_can_be_held_to_is_refused(store: Store, slo_ms: float) -> None:
    for ask in (lambda: slow(store, slo_ms=slo_ms), lambda: why(store, "1", slo_ms=slo_ms)):
        with pytest.raises(InputError, match="no time that a request can take"):
            ask()


def test_a_page_may_be_asked_for_in_any_size(store: Store) -> None:
    assert slow(store, limit=10**30).rows == slow(store, limit=20).rows


def test_ranks_whose_devices_are_not_compared_are_counted_in_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "MOST_SPANS", 50)
    with Store.open(tmp_path / "c.db") as store:
        for name, spans in (("0a", 40), ("0b", 60)):
            capture = replace(capture_of(name, tree_of(spans)), id=name * 32)
            told = capture_report(capture, already_known=False, imported_at="2026-11-29T12:00:00Z", findings=[])
            store.save(capture, assessment_of({}), [], told)
        note = compare(store, "0a", "0b").note
        assert "devices not compared: after, of 1 rank" in note and "before, of" not in note
        assert "devices not compared" not in compare(store, "0a", "0a").note


def test_a_list_says_of_how_many_requests_a_log_tells_the_times_in_whole_seconds_alone(tmp_path: Path) -> None:
    for coarse, said in ((0, None), (2, "Of 3 requests the times of 2 are whole"), (3, "Their times are whole")):
        begin = SECOND + np.where(np.arange(3) < coarse, 0, 7)
        capture = replace(capture_of("0a"), id=f"{coarse}a" * 32)
        capture = replace(capture, requests=replace(capture.requests, client_start=begin, client_end=begin + SECOND))
        with Store.open(tmp_path / f"{coarse}.db") as store:
            store.save(capture, assessment_of({}), [], report_of(capture))
            note = slow(store).note
        assert ("whole seconds of a log" in note) == (said is not None) and (said or "") in note
