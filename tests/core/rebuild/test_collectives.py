"""Collectives of two ranks: who met whom, what that says of their clocks, and who was waited for."""

import json
from typing import Any

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


Kernels = list[tuple[int, int, str, dict[str, Any] | None]]
"""start and dur in us from BEGIN, the kernel's name, and the arguments of the ``record_param_comms`` around its launch."""


def device_tree(
    rank: int, kernels: Kernels, *, host: str = "a", world: int = 2, above: str = "", step: bool = False, pid: int = 0
) -> Tree:
    """A profile of a GPU: for each collective a call in Python, inside it its launch, below that its kernel.

    Rows in pre-order; a step, where there is one, is a root before them.
    """
    rows: list[tuple[int, int, str, int, int, int, str]] = []
    parent: list[int] = []
    if step:
        rows.append((0, 10**6, "step_7", 0, int(Layer.OPERATOR), -1, ""))
        parent.append(-1)
    for start, dur, name, comms in kernels:
        top = 0 if step else -1
        at = len(rows)
        outer = "record_param_comms" if comms is not None else above or "aten::add"
        layer = int(Layer.COMMUNICATION) if comms is not None or above else int(Layer.OPERATOR)
        rows.append((start - 30, 25, outer, 0, layer, -1, json.dumps(comms) if comms else ""))
        rows.append((start - 20, 5, "cudaLaunchKernel", 0, int(Layer.RUNTIME), at, ""))
        rows.append((start, dur, name, 1, int(Layer.COMMUNICATION), at, ""))
        parent += [top, at, at + 1]
    names = list(dict.fromkeys(row[2] for row in rows))
    args = list(dict.fromkeys(row[6] for row in rows if row[6]))
    stop = [at + 1 for at in range(len(rows))]
    for at in reversed(range(len(rows))):
        if parent[at] >= 0:
            stop[parent[at]] = max(stop[parent[at]], stop[at])
    trace = Trace(
        BEGIN + np.array([row[0] for row in rows]) * 1000,
        np.array([row[1] for row in rows]) * 1000,
        np.array([names.index(row[2]) for row in rows], np.int32),
        np.array([row[3] for row in rows], np.int32),
        np.zeros(len(rows), np.uint8),
        np.array([row[4] for row in rows], np.uint8),
        np.array([row[5] for row in rows], np.int64),
        np.array([args.index(row[6]) if row[6] else -1 for row in rows], np.int32),
        names,
        [Lane("9", "9", False), Lane("0", "7", True)],
        ["x"],
        args,
        Origin("kineto", "unix", rank=rank, world=world, host=host, pid=pid or 9 + rank),
    )
    return Tree(trace, np.array(parent, np.int32), np.array(stop, np.int32))


def comms(word: str, sequence: int | None = None, elements: int = 8, group: str = "0", size: int = 2) -> dict[str, Any]:
    said: dict[str, Any] = {
        "Collective name": word, "Process Group Name": group, "Group size": size, "In msg nelems": elements,
        "dtype": "Float", "Global rank start": 0, "Global rank stride": 1,
    }  # fmt: skip
    return said if sequence is None else {**said, "Seq": sequence}


def test_pytorchs_numbers_join_calls_whatever_their_order_and_gaps() -> None:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    first = device_tree(0, [(k * 1000, 100, name, comms("allreduce", k)) for k in (3, 4, 5, 6)])
    second = device_tree(1, [(k * 1000, 100, name, comms("allreduce", k)) for k in (4, 6)])
    capture = captured(first, second)
    assert capture.meetings.how == ["sequence", "sequence"]
    assert capture.meetings.came.tolist() == [2, 2]
    met = capture.collectives.sequence < 2
    assert (capture.collectives.start[met] - BEGIN).tolist() == [4_000_000, 4_000_000, 6_000_000, 6_000_000]


def test_a_kernel_that_says_nothing_is_what_was_called_above_its_launch() -> None:
    generic = "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"
    trees = [device_tree(r, [(5000 + 900 * r, 2000 - 900 * r, generic, comms("_allgather_base", 1))]) for r in (0, 1)]
    capture = captured(*trees)
    assert capture.meetings.kind == ["all_gather"]
    assert capture.meetings.late.tolist() == [1]
    named = [device_tree(r, [(5000, 100, "ncclKernel_SendRecv", None)], above="nccl:all_to_all") for r in (0, 1)]
    assert captured(*named).meetings.kind == ["all_to_all"]
    nothing = [device_tree(r, [(5000, 100, generic, None)]) for r in (0, 1)]
    assert captured(*nothing).meetings.kind == []


def test_calls_of_other_sizes_in_a_step_are_not_the_same_collective() -> None:
    name = "ncclKernel_AllReduce_RING_LL"
    sizes = ((8, 9), (9, 8))
    trees = [
        device_tree(
            r, [(1000 * (k + 1), 100, name, comms("allreduce", elements=n)) for k, n in enumerate(own)], step=True
        )
        for r, own in enumerate(sizes)
    ]
    capture = captured(*trees)
    assert capture.meetings.kind == []
    assert capture.problems["steps_with_uneven_collectives"] == 1


def test_calls_in_a_step_that_cannot_have_met_by_one_machines_clock_are_left_single_and_counted() -> None:
    name = "ncclKernel_AllReduce_RING_LL"
    trees = [device_tree(r, [(1000 + 300_000 * r, 100, name, None)], step=True) for r in (0, 1)]
    capture = captured(*trees)
    assert capture.meetings.kind == []
    assert capture.problems["collectives_that_cannot_have_met"] == 2


def test_without_steps_the_order_over_the_common_window_joins_recordings_that_began_at_different_times() -> None:
    name = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>"
    first = device_tree(0, [(1000 * k, 100, name, None) for k in range(1, 9)])
    second = device_tree(1, [(1000 * k + 60, 40, name, None) for k in range(4, 11)])
    capture = captured(first, second)
    assert capture.meetings.how == ["order"] * 5
    assert (capture.meetings.arrived - BEGIN).tolist() == [1000 * (1000 * k + 60) for k in range(4, 9)]


def test_equal_calls_of_two_hosts_without_steps_meet_nobody_where_several_orders_are_possible() -> None:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    trees = [device_tree(r, [(1000 * k, 100, name, None) for k in range(1, 9)], host=h) for r, h in enumerate("ab")]
    capture = captured(*trees)
    assert capture.meetings.kind == []
    assert capture.problems["collectives_in_doubtful_order"] == 8


def test_calls_of_two_hosts_whose_sizes_tell_one_order_meet() -> None:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    sizes = [8, 1, 1, 9, 2, 7]
    calls = [(1000 * k, comms("allreduce", elements=n)) for k, n in enumerate(sizes, 1)]
    trees = [
        device_tree(r, [(at + 7000 * r, 100, name, said) for at, said in calls], host=h) for r, h in enumerate("ab")
    ]
    capture = captured(*trees)
    assert capture.meetings.how == ["order"] * 6
    assert abs(capture.ranks[1].shift + 7_000_000) <= capture.ranks[1].clock_error < 150_000


def test_ranks_of_containers_with_one_pid_are_told_apart() -> None:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    trees = [device_tree(r, [(1000, 100, name, comms("allreduce", 1))], host="", pid=7) for r in (0, 1)]
    capture = captured(*trees)
    assert [(rank.rank, rank.pid) for rank in capture.ranks] == [(0, 7), (1, 7)]
    assert capture.meetings.came.tolist() == [2]
    # Whether they are of one machine nobody says: the meeting alone bounds the clock.
    assert 90_000 <= capture.ranks[1].clock_error <= 110_000


def test_notes_that_name_a_rank_and_no_process_are_of_the_process_with_that_rank() -> None:
    facts = [
        CollectiveFact(Process("", 0, rank=rank), BEGIN + 980_000, "0", (0, 1), 41, "nccl:all_reduce")
        for rank in (0, 1)
    ]
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    capture = captured(*[device_tree(r, [(1000, 100, name, None)]) for r in (0, 1)], facts=facts)
    assert capture.meetings.how == ["recorder"]
    assert len(capture.ranks) == 2


def test_ranks_that_only_a_recorder_heard_of_are_ranks_without_a_tree() -> None:
    facts = [CollectiveFact(Process("", 0, rank=rank), BEGIN, "0", (0, 1), 1, "nccl:all_reduce") for rank in (3, 1)]
    assert [(rank.rank, rank.tree) for rank in captured(facts=facts).ranks] == [(1, None), (3, None)]


def test_collectives_that_a_recorder_timed_meet_without_a_trace() -> None:
    facts = [
        CollectiveFact(
            Process("", 0, rank=rank), BEGIN + at, "c", (), number, "AllReduce", size=2, timed=True,
            started=BEGIN + at, finished=BEGIN + end,
        )
        for number, end, of in ((5, 2_000_000, (0, 1_500_000)), (6, 3_010_000, (3_000_000, 3_001_000)))
        for rank, at in enumerate(of)
    ]  # fmt: skip
    capture = captured(facts=facts)
    assert capture.collectives.wait.tolist() == [1_500_000, 0, UNKNOWN, UNKNOWN]
    assert capture.meetings.late.tolist() == [1, -1]
    assert capture.collectives.row.tolist() == [-1] * 4


def test_what_kept_the_late_rank_is_the_innermost_span_that_took_most_of_the_wait() -> None:
    name = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"
    early = device_tree(0, [(1000, 9100, name, comms("allreduce", 1))])
    late = device_tree(1, [(10_000, 100, name, comms("allreduce", 1))], step=True)
    capture = captured(early, late)
    assert capture.meetings.late.tolist() == [1]
    assert capture.meetings.by.tolist() == [9_000_000]
    assert capture.meetings.kept.tolist() == [0]  # the step: nothing inside it took most of the 9 ms


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
WORDS = st.sampled_from(sorted({*comms("allreduce", 1), "Input Dims", "Input type", "Process Group Ranks", "x"}))


@given(said=st.dictionaries(WORDS, JSON, max_size=8))
def test_whatever_the_arguments_say_the_collectives_are_kept_and_their_group_can_be_shown(said: dict[str, Any]) -> None:
    name = "ncclDevKernel_Generic_4"
    capture = captured(*[device_tree(r, [(1000, 100, name, {**said, "Collective name": "allreduce"})]) for r in (0, 1)])
    assert len(capture.collectives.rank) == 2
    assert all(group.isprintable() and len(group) < 200 for group in capture.meetings.group)
