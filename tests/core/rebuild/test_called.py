"""Collectives from a recorder of calls, beside those in traces."""

from typing import Any

import numpy as np
import pytest

from teller_core.data.capture import Rank
from teller_core.data.records import CollectiveFact, HostClock, Process, Recording
from teller_core.data.steps import StepWork
from teller_core.data.table import UNKNOWN
from teller_core.rebuild.called import all_calls
from teller_core.rebuild.collective_calls import Call
from teller_core.rebuild.collective_kinds import TALK
from teller_core.rebuild.engines import Place
from teller_core.rebuild.ranks import Ranked, Traced, clocks_apart, facts_by_rank

MS = 1_000_000


def fact(start: int, dur: int = MS, **changes: Any) -> CollectiveFact:
    process = Process("", 7, rank=0)
    made = CollectiveFact(
        process, start, "0", (), start // MS, "gloo:all_reduce", started=start, finished=start + dur, timed=True, size=2
    )
    return made._replace(**changes)


def ranked(entries: int = 1, hosts: tuple[str, ...] = ()) -> Ranked:
    names = hosts or ("",) * entries
    ranks = [Rank(at if hosts else 0, host, 7, "worker", None, -1) for at, host in enumerate(names)]
    places = [Place(rank.host, 7) for rank in ranks]
    return Ranked(ranks, [-1] * len(ranks), places)


def work(*rows: tuple[int, int, int, int]) -> StepWork:
    """(step, rank, start, stop) of each row."""
    step, rank, start, stop = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    none = np.full(len(step), -1, dtype=np.int32)
    return StepWork(step.astype(np.int32), rank.astype(np.int32), start, stop, none, none)


def test_a_call_is_of_the_step_that_its_process_ran_at_the_time() -> None:
    facts = [fact(5 * MS), fact(15 * MS), fact(25 * MS), fact(35 * MS)]
    calls = all_calls(
        ranked(), work((3, 0, 10 * MS, 20 * MS), (4, 0, 24 * MS, 30 * MS), (9, 1, 0, 99 * MS)), {0: facts}
    )
    assert [(call.start // MS, call.step) for call in calls] == [(5, -1), (15, 3), (25, 4), (35, -1)]


def test_what_a_trace_shows_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process with two windows: each shows its own calls, the recorder those between and around them, once."""
    shown = {0: [12, 14], 1: [31, 33]}

    def traced(i: int, _: object, __: object) -> list[Call]:
        return [Call(i, at, -1, at * MS, MS, at * MS, TALK) for at in shown[i]]

    monkeypatch.setattr("teller_core.rebuild.called.traced_calls", traced)
    facts = [fact(at * MS) for at in (5, 12, 14, 20, 31, 33, 40)]
    calls = all_calls(ranked(2), work(), {0: facts, 1: facts})
    assert sorted(call.start // MS for call in calls) == [5, 12, 14, 20, 31, 33, 40]
    assert [call.rank for call in calls if call.start // MS in (5, 20, 40)] == [0, 0, 0]


def test_notes_of_a_group_whose_calls_were_timed_are_not_counted_twice() -> None:
    noted = fact(5 * MS, timed=False, size=0, name="gloo:all_reduce", sequence=3, started=UNKNOWN, finished=UNKNOWN)
    recording = Recording(collectives=[noted, fact(5 * MS), noted._replace(group="1", sequence=4)])
    found = facts_by_rank(recording, ranked())
    assert [(one.group, one.timed) for one in found[0]] == [("0", True), ("1", False)]


@pytest.mark.parametrize(
    ("clocks", "apart"),
    [
        ([], UNKNOWN),
        ([HostClock("a", "m", UNKNOWN), HostClock("b", "m", UNKNOWN)], 50_000),
        ([HostClock("a", "m", 2 * MS), HostClock("b", "n", MS)], 3 * MS),
        ([HostClock("a", "m", 2 * MS), HostClock("b", "n", UNKNOWN)], UNKNOWN),
        ([HostClock("a", "", UNKNOWN), HostClock("b", "", UNKNOWN)], UNKNOWN),
        ([HostClock("a", "m", 2 * MS)], UNKNOWN),
    ],
)
def test_clocks_of_two_machines_differ_by_no_more_than_their_kernels_say(clocks: list[HostClock], apart: int) -> None:
    found = clocks_apart(ranked(hosts=("a", "b")), Traced([], []), clocks)
    assert found.tolist() == [[0, apart], [apart, 0]]
