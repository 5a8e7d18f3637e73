"""Captures and requests by what people call them: in every spelling, over all captures, and what is said for none."""

from dataclasses import replace
from pathlib import Path

import pytest

from teller_core.data.capture import Capture
from teller_core.errors import UnknownName
from teller_core.store.store import Store
from tests.core.store.made import assessment_of, capture_of, report_of

TRACE = "4BF92F3577B34DA6A3CE929D0E0E4736"
DASHED = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736"


def with_traces(identity: str, *traces: str) -> Capture:
    capture = capture_of(identity, requests=len(traces))
    called = [f"req-{identity}-{at}" for at in range(len(traces))]
    return replace(capture, requests=replace(capture.requests, trace_id=list(traces), engine_id=called))


@pytest.fixture
def store(tmp_path: Path):
    with Store.open(tmp_path / "t.db") as store:
        for capture in (
            with_traces("aa11", "", TRACE, "Req-X"),
            with_traces("bb22", DASHED, "", "req-x"),
            with_traces("cc33", "other", "REQ-X"),
        ):
            store.save(capture, assessment_of({}), [], report_of(capture))
        yield store


@pytest.mark.parametrize(
    "called",
    [TRACE, TRACE.lower(), DASHED, DASHED.upper(), f"00-{TRACE}-00f067aa0ba902b7-01", f'{{trace_id="{TRACE}"}}'],
)
def test_a_trace_is_found_in_every_spelling_in_the_newest_capture_that_has_it(store: Store, called: str) -> None:
    assert store.request_of(None, called) == ("bb22", 1)
    assert store.request_of("aa", called) == ("aa11", 2)


def test_an_id_as_it_was_given_comes_before_the_same_in_another_case(store: Store) -> None:
    assert store.request_of(None, "req-x") == ("cc33", 2)  # the newest capture first, whichever case
    assert store.request_of("bb", "REQ-BB22-0") == ("bb22", 1)
    both = with_traces("dd44", "TWICE", "twice")
    store.save(both, assessment_of({}), [], report_of(both))
    assert [store.request_of("dd", name)[1] for name in ("TWICE", "twice", "Twice")] == [1, 2, 1]


def test_a_number_is_of_the_newest_capture_alone(store: Store) -> None:
    assert store.request_of(None, "2") == ("cc33", 2)
    with pytest.raises(UnknownName, match="has requests 1 to 2"):
        store.request_of(None, "3")


def test_where_nobody_is_called_that_near_ones_are_told_by_numbers_never_by_ids(store: Store) -> None:
    with pytest.raises(UnknownName) as refused:
        store.request_of("aa", "req-aa11-9")
    assert "requests of much the same id: " in str(refused.value)
    assert "req-aa11-0" not in str(refused.value)
    assert "`search`" in str(refused.value)
    with pytest.raises(UnknownName, match="in none of the 3 captures one is called that; of the newest, "):
        store.request_of(None, "nothing like it")


def test_the_capture_of_an_id_that_is_nearly_right_is_offered(store: Store) -> None:
    with pytest.raises(UnknownName, match="Did you mean bb22? List their ids with".replace("?", r"\?")):
        store.resolve("bb32")
    with pytest.raises(UnknownName) as refused:
        store.resolve("7777")
    assert "Did you mean" not in str(refused.value)


def test_no_name_is_nobodys(store: Store) -> None:
    with pytest.raises(UnknownName):
        store.request_of("aa", " ")
