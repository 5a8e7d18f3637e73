"""Collectives of two ranks: who met whom, what that says of their clocks, and who was waited for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.data.capture import Capture
from teller_core.data.records import CollectiveFact, FileRead, Process, Recording
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import Tree
from teller_core.rebuild.capture import rebuild

MS = 10**6
BEGIN = 1_800_000_000 * 10**9
Calls = list[tuple[int, int]]


def rank_tree(
    rank: int, host: str, calls: Calls, *, steps: bool = True, name: str = "gloo:all_reduce", world: int = 2
) -> Tree:
    """A profile of one rank: a step of 100 ms with its collectives (start, dur in us from BEGIN) on Gloo's thread."""
    rows = [(0, 100_000, 0, 0)] * steps + [(start, dur, 1, 1) for start, dur in calls]
    n = len(rows)
    start, dur, kind, lane = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    layer = np.where(kind == 1, int(Layer.COMMUNICATION), int(Layer.OPERATOR)).astype(np.uint8)
    trace = Trace(
        BEGIN + start * 1000, dur * 1000, kind.astype(np.int32), lane.astype(np.int32), np.zeros(n, np.uint8), layer,
        np.full(n, -1, np.int64), np.full(n, -1, np.int32), ["step_7", name], [Lane("9", "9", False), Lane("9", "10", False)],
        ["x"], [], Origin("kineto", "unix", rank=rank, world=world, host=host, pid=9 + rank),
    )  # fmt: skip
    return Tree(trace, np.full(n, -1, np.int32), np.arange(1, n + 1, dtype=np.int32))


def captured(*trees: Tree, facts: list[CollectiveFact] | None = None) -> Capture:
    files = [FileRead(str(i), "kineto", 1) for i in range(len(trees))]
    recording = Recording(
        files=files, traces=[(i, tree.trace) for i, tree in enumerate(trees)], collectives=facts or []
    )
    capture = rebuild(recording, trees, capture_id="c", name="n")
    capture.check()
    return capture


def test_ranks_meet_in_the_order_of_a_step_and_the_last_to_come_is_named() -> None:
    capture = captured(
        rank_tree(0, "a", [(1000, 9000), (20_000, 500)]), rank_tree(1, "a", [(9500, 550), (20_010, 500)])
    )
    table = capture.collectives
    assert table.rank.tolist() == [0, 1, 0, 1]
    assert table.sequence.tolist() == [0, 0, 1, 1]
    assert len(set(table.group.tolist())) == 1
    assert table.wait.tolist() == [8_500_000, 0, UNKNOWN, UNKNOWN]
    assert table.late.tolist() == [1, 1, -1, -1]
    assert table.step.tolist() == [0, 0, 0, 0]


def test_where_a_rank_that_must_come_is_missing_nobody_is_called_late() -> None:
    first, second = rank_tree(0, "a", [(1000, 9000)], world=3), rank_tree(1, "a", [(9500, 550)], world=3)
    table = captured(first, second).collectives
    assert table.late.tolist() == [-1, -1]
    assert table.wait.tolist() == [UNKNOWN, UNKNOWN]


def test_steps_in_which_ranks_made_different_numbers_of_calls_are_left_single_and_counted() -> None:
    capture = captured(rank_tree(0, "a", [(1000, 100), (2000, 100)]), rank_tree(1, "a", [(1000, 100)]))
    assert capture.problems["steps_with_uneven_collectives"] == 1
    assert len(set(capture.collectives.group.tolist())) == 2
    assert capture.collectives.late.max() == -1


def test_point_to_point_calls_meet_nobody() -> None:
    trees = [rank_tree(rank, "a", [(1000, 100)], name="ncclDevKernel_SendRecv") for rank in (0, 1)]
    assert set(captured(*trees).collectives.late.tolist()) <= {-1}


@given(
    shift=st.integers(-40_000, 40_000),
    calls=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 900), st.integers(1, 90)), min_size=1, max_size=8),
)
def test_meetings_bound_the_clocks_of_two_hosts_and_the_bound_holds(
    shift: int, calls: list[tuple[int, int, int]]
) -> None:
    first, second = [], []
    for k, (a, b, tail) in enumerate(calls):
        at, end = 50_000 + 2000 * k, 50_000 + 2000 * k + max(a, b) + tail
        first.append((at + a, end - at - a))
        second.append((at + b + shift, end - at - b))
    facts = [
        CollectiveFact(Process(host, pid), BEGIN + start * 1000 - 10, "0", (0, 1), k, "gloo:all_reduce")
        for host, pid, of in (("a", 9, first), ("b", 10, second))
        for k, (start, _) in enumerate(of)
    ]
    trees = (rank_tree(0, "a", first, steps=False), rank_tree(1, "b", second, steps=False))
    one, two = captured(*trees, facts=facts).ranks
    assert (one.shift, one.clock_error) == (0, 0)
    assert two.clock_error >= 0
    assert abs(two.shift + shift * 1000) <= two.clock_error


def test_hosts_that_never_met_have_no_common_clock() -> None:
    capture = captured(rank_tree(0, "a", [], steps=True), rank_tree(1, "b", [], steps=True))
    assert [rank.clock_error for rank in capture.ranks] == [0, UNKNOWN]


@pytest.mark.parametrize("gap", [10_000_000, 6_000_000])
def test_a_flight_recorders_note_far_from_any_call_names_none(gap: int) -> None:
    facts = [CollectiveFact(Process("a", 9), BEGIN + 50_000_000 - gap, "0", (0, 1), 4, "gloo:all_reduce")]
    capture = captured(rank_tree(0, "a", [(50_000, 100)], steps=False), facts=facts)
    assert capture.collectives.late.tolist() == [-1]
