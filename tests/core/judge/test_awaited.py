"""Whom the ranks of a step waited for: where clocks tell who came last, and where only the time in the collectives does."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.data.capture import Capture
from teller_core.data.table import UNKNOWN, take
from teller_core.judge.awaited import awaited, waited_for
from teller_core.judge.diagnose import judge
from teller_core.judge.prepare import Case, prepare
from tests.core.judge.serving import MS, Trouble, serve
from tests.core.judge.test_diagnose import CROWD, STRUCK, collectives, first

OTHER = 1


def two_ranks(error: int, times: tuple[float, float] = (8.0, 0.2)) -> Capture:
    """Two ranks, the clock of the second one known to ``error`` ns: in the window rank 0 is in collectives longer."""
    capture, _ = serve(CROWD, [Trouble("link", 800, 1300, 8)])
    made = collectives(capture, (800, 1300), times, wait=False)
    one = made.ranks[0]
    return replace(made, ranks=[one, replace(one, rank=1, pid=one.pid + 1, clock_error=error)])


def case_of(capture: Capture) -> Case:
    return prepare(capture, serve(CROWD, [Trouble("link", 800, 1300, 8)])[1])


def test_where_clocks_are_unbounded_who_was_in_a_collective_longest_waited_for_who_was_in_it_shortest() -> None:
    capture = two_ranks(UNKNOWN)
    met, table = awaited(case_of(capture)), capture.collectives
    struck = table.dur == 8 * MS
    assert struck.any()
    assert set(met.late[struck].tolist()) == {OTHER}
    assert set(met.wait[struck].tolist()) == {8 * MS - MS // 5}
    assert not met.wait[met.rank == met.late].any()
    report = judge(case_of(capture), STRUCK)
    assert (first(report), report.findings[0].rank) == ("comm.straggler_rank", 1)


def test_where_clocks_are_bounded_and_name_nobody_durations_name_nobody_either() -> None:
    assert set(awaited(case_of(two_ranks(50_000))).late.tolist()) == {-1}


def test_nobody_is_named_in_a_collective_of_which_a_rank_was_not_seen() -> None:
    capture = two_ranks(UNKNOWN)
    table = capture.collectives
    keep = np.ones(len(table.rank), np.bool_)
    keep[1] = False
    assert awaited(case_of(replace(capture, collectives=take(table, keep)))).late[0] == -1


def test_several_traces_of_one_process_are_one_rank() -> None:
    capture = two_ranks(50_000)
    table, ranks = capture.collectives, capture.ranks
    late = np.full(len(table.rank), 2, np.int32)
    several = replace(capture, ranks=[*ranks, ranks[1]], collectives=replace(table, late=late, wait=table.dur))
    case = case_of(several)
    assert set(awaited(case).late.tolist()) == {OTHER}
    assert set(waited_for(case, {})) == {OTHER}


@pytest.mark.parametrize("chance", [0, 9])
def test_the_steps_around_tell_whom_a_step_waited_for_in_which_each_waited_for_the_other(chance: float) -> None:
    capture = two_ranks(UNKNOWN)
    table = capture.collectives
    mine = np.unique(table.step[table.dur == 8 * MS])
    odd = int(mine[len(mine) // 2])
    dur = np.where((table.step == odd) & (table.rank == OTHER), int(chance * MS) or table.dur, table.dur)
    found = waited_for(case_of(replace(capture, collectives=replace(table, dur=dur))), {})
    assert found[OTHER][odd] > found.get(0, np.zeros(odd + 1))[odd]
