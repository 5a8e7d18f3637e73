"""A capture without any request says which rank the others wait for; one with requests names it as the cause."""

from dataclasses import replace
from typing import Any

import numpy as np

from teller_core.data.capture import Capture
from teller_core.data.report import Finding
from teller_core.data.table import UNKNOWN
from teller_core.judge.absences import findings
from teller_core.judge.prepare import prepare
from teller_core.judge.rules_absence import rank_missing
from teller_core.judge.scene import scene
from teller_core.rebuild.capture import rebuild
from tests.core.ingest.nccl.flight_dumps import MS, dump, entry
from tests.core.judge.serving import Ask, serve
from tests.core.rebuild.recorded_ranks import recorded

GROUPS = {"0": [0, 1, 2, 3]}
BEFORE = [entry("0", 1, 1, done=True)]


def captured(**of: list[dict[str, Any]]) -> Capture:
    """The capture of ranks 0 to 3, of which those that ``of`` does not name called ``rest``."""
    dumps = {rank: dump(GROUPS, [*BEFORE, *of.get(f"r{rank}", of["rest"])]) for rank in range(4)}
    return rebuild(recorded(dumps), [], capture_id="c", name="n")


def said(finding: Finding) -> list[str]:
    return [f"{item.name}: {item.value} {item.untrusted_text or ''}".strip() for item in finding.evidence]


def test_the_rank_that_did_not_come_is_named_with_evidence() -> None:
    (finding,) = findings(captured(rest=[entry("0", 2, 90)], r2=[]))
    assert (finding.cause, finding.rank, finding.view) == ("comm.rank_missing", 2, "horizontal")
    assert finding.operator == "nccl:all_reduce"
    assert finding.confidence == 0.85
    assert said(finding) == [
        "number of the collective of its group that it did not call: 2.0 nccl:all_reduce of 32 BFloat16 in group 0 (group 0)",
        "ranks that waited there: 0-1,3: 3.0",
        "ranks known to be held up behind it: 3.0",
        "its last recorded call came before their first: 89.0",
    ]
    assert finding.saving_ms is None


def test_a_rank_without_a_dump_is_a_hint() -> None:
    dumps = {rank: dump(GROUPS, [*BEFORE, entry("0", 2, 90)]) for rank in (0, 1, 3)}
    (finding,) = findings(rebuild(recorded(dumps), [], capture_id="c", name="n"))
    assert (finding.rank, finding.confidence) == (2, 0.6)
    assert "it left no dump, or one that forgot the call: None" in said(finding)


def test_of_many_missing_ranks_the_first_say_how_many_there_are() -> None:
    groups = {"0": list(range(100))}
    dumps = {rank: dump(groups, [*BEFORE, *([entry("0", 2, 90)] if rank < 60 else [])]) for rank in range(100)}
    found = findings(rebuild(recorded(dumps), [], capture_id="c", name="n"))
    assert [finding.rank for finding in found] == list(range(60, 76))
    assert said(found[0])[-1] == "ranks that others wait for like this one: 40.0"


def test_a_different_call_is_blamed_on_the_rank_that_is_alone_with_it() -> None:
    frames = [{"name": "step", "filename": "/app/decode.py", "line": 12}]
    (finding,) = findings(captured(rest=[entry("0", 2, 9)], r1=[entry("0", 2, 9, "nccl:broadcast", frames=frames)]))
    assert (finding.cause, finding.rank) == ("comm.collective_mismatch", 1)
    assert said(finding)[1:] == [
        "ranks that made another call under that number: 3.0 nccl:all_reduce of 32 BFloat16",
        "the code that called it: None step (decode.py:12)",
    ]


def test_ranks_of_equal_number_that_differ_are_not_blamed() -> None:
    odd = [entry("0", 2, 9, sizes=[[7]])]
    found = findings(captured(rest=[entry("0", 2, 9)], r1=odd, r3=odd))
    assert [(finding.cause, finding.rank) for finding in found] == [("comm.collective_mismatch", None)] * 2


def test_a_circle_of_waiting_is_a_deadlock() -> None:
    both = {"a": [0, 1], "b": [0, 1]}
    done = [entry("a", 1, 1, done=True), entry("b", 1, 2, done=True)]
    dumps = {0: dump(both, [*done, entry("a", 2, 10)]), 1: dump(both, [*done, entry("b", 2, 11)])}
    (finding,) = findings(rebuild(recorded(dumps), [], capture_id="c", name="n"))
    assert finding.cause == "comm.collective_hang"
    assert [item.name for item in finding.evidence] == ["rank 0 waits for rank 1", "rank 1 waits for rank 0"]


def test_a_rank_that_ends_nothing_any_more_is_named_beside_the_one_that_is_missing() -> None:
    status = {0: (20, 18), 1: (20, 18), 2: (20, 11), 3: (19, 18)}
    dumps = {
        rank: dump(GROUPS, [entry("0", n, n) for n in range(ended + 1, called + 1)], {"0": (called, ended)})
        for rank, (called, ended) in status.items()
    }
    found = findings(rebuild(recorded(dumps), [], capture_id="c", name="n"))
    assert [(finding.cause, finding.rank) for finding in found] == [
        ("comm.rank_missing", 3),
        ("comm.completion_stalled", 2),
    ]


def test_a_healthy_capture_says_nothing() -> None:
    assert findings(captured(rest=[entry("0", 2, 3, done=True)])) == []


def hung(at: int) -> tuple[Capture, Any]:
    """A service whose steps end for good when rank 2 does not come, at this step."""
    made, numbers = serve([Ask(20.0 * i, output=20) for i in range(30)])
    since = int(made.steps.finished[at])
    absences = captured(rest=[entry("0", 2, 90)], r2=[]).absences
    steps = np.arange(len(made.steps.engine)) <= at
    cut = replace(made.steps, finished=np.where(steps, made.steps.finished, UNKNOWN))
    return replace(made, steps=cut, absences=replace(absences, since=np.array([since + MS]))), numbers


def test_a_request_that_was_under_way_was_held_up_by_the_missing_rank() -> None:
    made, numbers = hung(60)
    case, since = prepare(made, numbers), int(made.absences.since[0])
    clues = {request: rank_missing(scene(case, request, "e2e")) for request in range(30)}
    table = made.requests
    for request, clue in clues.items():
        end = int(table.client_end[request])
        assert (clue is not None) == (end > since), request
        if clue is not None:
            begin = max(int(table.client_start[request]), since)
            assert (clue.cause, clue.ns) == ("comm.rank_missing", end - begin)
    assert any(clues.values()) and not all(clues.values())


def test_a_service_that_went_on_was_not_held_up() -> None:
    made, numbers = hung(60)
    whole, _ = serve([Ask(20.0 * i, output=20) for i in range(30)])
    case = prepare(replace(made, steps=whole.steps), numbers)
    assert all(rank_missing(scene(case, request, "e2e")) is None for request in range(30))
    assert findings(replace(made, steps=whole.steps)) == []
