"""A router's requests and an engine's: joined by id where the id is handed on, by time where only one fits, else told apart."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from teller_core import answers
from teller_core.data.capture import Capture
from teller_core.data.records import Process, Recording, RequestFact
from teller_core.data.table import UNKNOWN
from teller_core.pipeline import import_paths
from teller_core.rebuild.capture import rebuild
from teller_core.store.store import Store

ROUTER, SERVER = Process("", 1, "unknown"), Process("", 2, "frontend")
MS, S = 10**6, 10**9
BEGIN = 1_749_536_218 * S
LOGS = Path(__file__).parents[4] / "shared" / "traces" / "logs" / "vllm_0.9.0.1_production_stack"


def routed(name: str, at: int) -> RequestFact:
    return RequestFact(ROUTER, BEGIN + at * MS, MS, name, "routed")


def served(name: str, at: int, took: int = 300, resolution: int = MS) -> list[RequestFact]:
    times = [(BEGIN + time * MS) // resolution * resolution for time in (at, at + took)]
    kinds = ("received", "finished")
    return [RequestFact(SERVER, time, resolution, name, kind) for time, kind in zip(times, kinds, strict=True)]


def capture(facts: Sequence[RequestFact]) -> Capture:
    return rebuild(Recording(requests=list(facts)), [], capture_id="c", name="")


def test_an_id_that_the_router_hands_on_joins_however_late_the_engine_has_it() -> None:
    name = "fc469bec-b78e-4e99-acf5-cc23d104b89b"
    found = capture([routed(name, 5), *served(f"chatcmpl-{name}", 1900)]).requests
    assert (found.received - found.client_start).tolist() == [1895 * MS]
    assert (found.end() - found.begin()).tolist() == [2195 * MS]


def test_without_an_id_the_only_one_that_came_just_then_is_it() -> None:
    facts = [routed("a", 0), routed("b", 500), routed("c", 1000)]
    facts += [*served("chatcmpl-1", 2), *served("chatcmpl-2", 503), *served("chatcmpl-3", 1004)]
    found = capture(facts)
    assert (found.requests.received - found.requests.client_start).tolist() == [2 * MS, 3 * MS, 4 * MS]
    assert "routed_without_engine" not in found.problems


@pytest.mark.parametrize(
    ("passed", "came"),
    [([0], [2, 9]), ([0, 5], [7, 12]), ([0], [900]), ([10], [2])],
    ids=["two came", "two were passed on", "came much later", "came before"],
)
def test_where_several_fit_or_none_does_nothing_is_joined_and_that_is_said(passed: list[int], came: list[int]) -> None:
    facts = [routed(f"r{at}", at) for at in passed] + [fact for at in came for fact in served(f"chatcmpl-{at}", at)]
    found = capture(facts)
    assert len(found.requests.number) == len(passed) + len(came)
    assert found.problems["routed_without_engine"] == len(passed)


def test_a_routers_milliseconds_are_not_set_against_an_engines_whole_seconds() -> None:
    found = capture([routed("a", 400), *served("chatcmpl-1", 402, 3000, resolution=S)]).requests
    assert len(found.number) == 1
    assert found.client_start.tolist() == [UNKNOWN]
    assert (found.end() - found.begin()).tolist() == [3 * S]


@pytest.mark.skipif(not LOGS.exists(), reason="the shared traces are not here")
def test_of_a_router_and_a_server_that_logs_no_requests_it_is_said_that_none_fit(tmp_path: Path) -> None:
    with Store.open(tmp_path / "a.db") as store:
        (report,) = import_paths([LOGS], store).captures
        assert (report.requests, report.problems["routed_without_engine"]) == (3, 3)
        why = answers.why(store, "1")
    assert why.verdict == "could_not_tell"
    assert any("fit none of an engine" in line for line in why.not_seen)
    assert any("engine's log with its requests' ids" in line for line in why.next_checks)
