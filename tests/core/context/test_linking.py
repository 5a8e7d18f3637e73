"""Rows of several ranks as one: on one clock, with the calls that lie outside them, who handed those over, and pauses."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.context.dependencies import dependencies
from teller_core.context.linking import capture_linked, clear, linked, step_linked
from teller_core.data.capture import Collectives, Meetings, Pauses, Rank, process_name
from teller_core.data.graph import Graph, Kind
from teller_core.data.linked import Met, StepSpans
from teller_core.data.table import UNKNOWN
from teller_core.data.trace import Layer
from teller_core.data.tree import Tree
from tests.core.judge.service import MS, US, Rows, Work, service

KERNEL_LANE = 2


def talking(*handed: int) -> Tree:
    """A thread that hands collectives over at these us, 10 us each, and an operator behind them."""
    rows = Rows()
    for at in handed:
        rows.leaf("c10d::allreduce_", Layer.COMMUNICATION, at * US, 10 * US)
    rows.leaf("aten::add", Layer.OPERATOR, 900 * US, 10 * US)
    return rows.tree()


def met(*calls: tuple[int, int, int, int], size: int = 2) -> Met:
    """Collectives of (sequence, rank, start us, dur us), in no tree's rows, and their meetings."""
    n = len(calls)
    table = np.array(calls, dtype=np.int64).reshape(-1, 4).T
    none, zero = np.full(n, -1, dtype=np.int32), np.zeros(n, dtype=np.int32)
    unknown = np.full(n, UNKNOWN)
    count = int(table[0].max()) + 1
    many, long, nobody = np.full(count, size, dtype=np.int32), np.full(count, UNKNOWN), np.full(count, -1, np.int32)
    return Met(
        Collectives(zero, table[0], zero, table[1].astype(np.int32), none, table[2] * US, table[3] * US, unknown, none),
        Meetings(
            *(["g"] * count, ["all_reduce"] * count, ["order"] * count),
            *(many, many, long, nobody, long, long, long, nobody, nobody),
        ),
    )


def launches(graph: Graph) -> list[tuple[int, int]]:
    pick = graph.of(Kind.LAUNCH)
    return sorted(zip(graph.before[pick].tolist(), graph.after[pick].tolist(), strict=True))


def test_rows_of_all_parts_are_on_one_clock_and_keep_their_handles() -> None:
    tree = talking(100)
    found = linked([StepSpans(3, 40, tree, 7 * US), StepSpans(5, 0, tree, -2 * US)])
    assert found.start.tolist() == [107 * US, 907 * US, 98 * US, 898 * US]
    assert [found.handle(row) for row in range(4)] == [(3, 40), (3, 41), (5, 0), (5, 1)]
    assert [found.row(3, 41), found.row(5, 1), found.row(5, 2), found.row(4, 0)] == [1, 3, -1, -1]
    assert found.graph.rows == len(found) == 4


def test_the_dependencies_are_those_of_each_part() -> None:
    capture = service([Work()] * 3, ranks=2)
    found = step_linked(capture, 1)
    assert found is not None
    apart = [dependencies(part.tree) for part in found.parts]
    assert len(found.graph) == sum(map(len, apart))
    assert found.graph.before.tolist() == [*apart[0].before, *(apart[1].before + len(found.parts[0].tree))]


def test_a_step_without_a_profile_has_nothing_to_link() -> None:
    assert step_linked(service([Work(), Work(profiled=False)]), 1) is None


def test_calls_on_threads_of_their_own_are_rows_behind_those_of_all_parts_and_know_who_handed_them_over() -> None:
    found = linked(
        [StepSpans(0, 0, talking(100)), StepSpans(1, 0, talking(300))], met((0, 0, 150, 400), (0, 1, 340, 210))
    )
    assert (found.start[4:].tolist(), found.end[4:].tolist()) == ([150 * US, 340 * US], [550 * US, 550 * US])
    assert found.handle(4) is None
    assert found.calls.row.tolist() == [4, 5]
    assert found.calls.whole.tolist() == [True]
    assert launches(found.graph) == [(0, 4), (2, 5)]


@pytest.mark.parametrize(
    ("handed", "begun", "pairs"),
    [
        ((100, 300), (150, 350), [(0, 3), (1, 4)]),
        ((100, 300), (320, 350), [(0, 3), (1, 4)]),  # as many: in order, however late
        ((100, 300), (350,), [(1, 3)]),
        ((100,), (50,), []),
        ((100,), (150, 180), [(0, 2)]),
    ],
)
def test_who_handed_a_call_over_is_told_by_order_or_else_by_time(
    handed: tuple[int, ...], begun: tuple[int, ...], pairs: list[tuple[int, int]]
) -> None:
    calls = [(n, 0, at, 10) for n, at in enumerate(begun)]
    found = linked([StepSpans(0, 0, talking(*handed))], met(*calls))
    assert launches(found.graph) == pairs


def test_a_meeting_is_whole_where_all_who_must_meet_are_here() -> None:
    parts = [StepSpans(0, 0, talking(100)), StepSpans(1, 0, talking(100))]
    calls = [(0, 0, 150, 9), (0, 1, 150, 9), (1, 0, 250, 9)]
    assert linked(parts, met(*calls)).calls.whole.tolist() == [True, False]
    assert linked(parts, met(*calls, size=3)).calls.whole.tolist() == [False, False]
    assert linked(parts[:1], met(*calls)).calls.whole.tolist() == [False, False]
    apart = met(*calls)
    later = linked(parts, replace_first(apart, 1))
    assert later.calls.at.tolist() == [1]


def replace_first(found: Met, first: int) -> Met:
    """``found`` with its meetings from number ``first`` on alone."""
    columns = {name: getattr(found.meetings, name)[first:] for name in vars(found.meetings)}
    return found._replace(meetings=Meetings(**columns), first=first)


def test_pauses_of_a_process_stop_its_parts_alone() -> None:
    parts = [StepSpans(0, 0, talking(100), 5 * US), StepSpans(1, 0, talking(100))]
    ranks = [Rank(0, "a", 1, "worker", None, -1), Rank(1, "a", 2, "worker", None, -1)]
    start = np.array([200, 300, 400, 5_000], dtype=np.int64) * US
    pauses = Pauses(start, np.full(4, 50 * US), np.zeros(4, np.int64), ["a/1", "a/2", "a/1", "a/1"], ["worker"] * 4,
                    ["gc", "stop_signal", "thread_lag", "gc"])  # fmt: skip
    found = linked(parts, None, pauses, ranks).stops
    assert (found.at.tolist(), found.part.tolist()) == ([0, 1], [0, 1])
    assert (found.start.tolist(), found.end.tolist()) == ([205 * US, 300 * US], [255 * US, 350 * US])


def test_pauses_of_a_rank_whose_pid_nobody_knows_stop_no_other_rank() -> None:
    parts = [StepSpans(at, 0, talking(100)) for at in range(3)]
    ranks = [Rank(at, "a", 0, "worker", None, -1) for at in range(2)] + [Rank(0, "b", 0, "worker", None, -1)]
    who = [process_name("a", 0, 1), process_name("a", 0, None), process_name("b", 0, None), process_name("b", 0, 0)]
    pauses = Pauses(
        np.arange(200, 204) * US, np.full(4, 50 * US), np.zeros(4, np.int64), who, ["worker"] * 4, ["gc"] * 4
    )
    found = linked(parts, None, pauses, ranks).stops
    assert (found.at.tolist(), found.part.tolist()) == ([0, 2, 3], [1, 2, 2])


def test_of_two_recordings_of_one_process_the_one_with_more_rows_is_taken() -> None:
    few, many, later = talking(100), talking(100, 300, 500), talking(100)
    later = replace(later, trace=replace(later.trace, start=later.trace.start + MS))
    rank = Rank(0, "a", 1, "worker", None, -1)
    ranks = [rank, rank, rank, replace(rank, pid=2)]
    parts = [StepSpans(at, 0, tree) for at, tree in enumerate((few, many, later, few))]
    assert [part.rank for part in clear(parts, ranks)] == [1, 2, 3]
    assert clear([StepSpans(0, 0, Rows().tree())], ranks) == []


def test_ranks_whose_pid_nobody_knows_are_each_kept() -> None:
    ranks = [Rank(at, "a", 0, "worker", None, -1) for at in range(3)]
    parts = [StepSpans(at, 0, tree) for at, tree in enumerate((talking(100), talking(100, 300), talking(100)))]
    assert [part.rank for part in clear(parts, ranks)] == [0, 1, 2]


def test_all_of_a_capture_is_linked_but_how_graphs_were_captured() -> None:
    capture = service([Work()] * 3, ranks=3)
    apart = replace(capture.ranks[2], role="graph_capture")
    found = capture_linked(replace(capture, ranks=[*capture.ranks[:2], apart]))
    assert found is not None
    assert [part.rank for part in found.parts] == [0, 1]
    bare = replace(capture, ranks=[replace(rank, tree=None) for rank in capture.ranks])
    assert capture_linked(bare) is None


def test_what_takes_no_time_of_its_own_is_neither_of_a_thread_nor_work() -> None:
    rows = Rows()
    rows.open("cudaLaunchKernel", Layer.RUNTIME, 0)
    rows.leaf("gemm", Layer.KERNEL, 5 * US, MS, KERNEL_LANE)
    rows.leaf("gpu range", Layer.ENGINE, 5 * US, MS, KERNEL_LANE)
    rows.close(3 * US)
    found = linked([StepSpans(0, 0, rows.tree())])
    assert found.host.tolist() == [True, False, False]
    assert found.work.tolist() == [False, True, False]
    assert found.lane_part.tolist() == [0, 0, 0, 0]
