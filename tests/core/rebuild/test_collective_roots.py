"""From whom, or to whom, the data of a collective goes: only what all its ranks name, and never by when they came."""

import json
from typing import Any

import numpy as np
import pytest

from teller_core.context.linking import capture_linked
from teller_core.data.capture import Capture
from teller_core.data.records import CollectiveFact, Process
from teller_core.data.trace import Lane, Layer, Origin, Trace
from teller_core.data.tree import Tree
from teller_core.judge.replay import network
from tests.core.rebuild.test_collectives import BEGIN, Calls, captured, comms, device_tree, rank_tree

BROADCAST, PASS = "ncclDevKernel_Broadcast_RING_LL", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
Said = dict[str, Any]


def rooted(word: str, *told: Said, name: str = BROADCAST) -> Capture:
    """Ranks that call one collective, the last of them late; each with what only its own arguments say."""
    size = len(told)
    trees = [
        device_tree(r, [(2000 + 900 * (r == size - 1), 3000, name, {**comms(word, 1, size=size), **more})], world=size)
        for r, more in enumerate(told)
    ]
    return captured(*trees)


@pytest.mark.parametrize("word", ["broadcast", "_broadcast_oop"])
def test_the_rank_in_the_arguments_of_a_broadcast_is_its_root(word: str) -> None:
    capture = rooted(word, *[{"Rank": 1}] * 3)
    assert capture.meetings.kind == ["broadcast"]
    assert capture.meetings.root.tolist() == [1]


@pytest.mark.parametrize("word", ["reduce", "gather", "scatter"])
def test_so_it_is_of_other_rooted_collectives(word: str) -> None:
    name = f"ncclDevKernel_{word.capitalize()}_Sum_f32_RING_LL"
    assert rooted(word, *[{"Rank": 0}] * 2, name=name).meetings.root.tolist() == [0]


def test_a_rank_in_the_arguments_of_what_all_give_and_get_is_no_root() -> None:
    assert rooted("allreduce", {"Rank": 0}, {"Rank": 1}, name="ncclDevKernel_AllReduce").meetings.root.tolist() == [-1]


@pytest.mark.parametrize("told", [[{"Rank": 0}, {"Rank": 1}], [{"Rank": 0}, {}], [{}, {}], [{"Rank": 2}] * 2])
def test_a_root_that_not_all_name_is_not_known(told: list[Said]) -> None:
    assert rooted("broadcast", *told).meetings.root.tolist() == [-1]


@pytest.mark.parametrize(
    ("more", "root"),
    [
        ({"Process Group Ranks": "[1, 0]"}, 1),
        ({"Process Group Ranks": [1, 0]}, 1),
        ({"Process Group Ranks": "[0, ...]"}, 0),
        ({"Process Group Ranks": "[0, 0]"}, 0),
        ({"Process Group Ranks": "", "Global rank stride": -1}, -1),
    ],
)
def test_a_rank_is_a_place_in_its_group(more: Said, root: int) -> None:
    assert rooted("broadcast", *[{"Rank": 0, **more}] * 2).meetings.root.tolist() == [root]


def a_pipeline(drop: str = "") -> Capture:
    """Three stages: each passes a tensor on twice, the second one larger."""

    def call(at: int, word: str, other: int, elements: int) -> tuple[int, int, str, Said | None]:
        said = comms(word, elements=elements, size=3) | {"Dst Rank" if word == "send" else "Src Rank": other}
        said.pop(drop, None)
        return at, 400, PASS, said

    first = [call(2000, "send", 1, 8), call(4000, "send", 1, 9)]
    second = [call(1000, "recv", 0, 8), call(2500, "send", 2, 8), call(3000, "recv", 0, 9), call(4500, "send", 2, 9)]
    third = [call(1000, "recv", 1, 8), call(4000, "recv", 1, 9)]
    return captured(*[device_tree(r, of, world=3, step=True) for r, of in enumerate((first, second, third))])


def test_sends_meet_the_receives_of_their_pair_in_order_and_the_sender_is_the_root() -> None:
    capture = a_pipeline()
    assert capture.meetings.kind == ["send_recv"] * 4
    assert capture.meetings.size.tolist() == [2] * 4
    assert capture.meetings.root.tolist() == [0, 0, 1, 1]
    met = capture.collectives
    pairs = [sorted(zip(met.rank[at].tolist(), ((met.start[at] - BEGIN) // 10**6).tolist(), strict=True)) for at in (
        np.flatnonzero(met.sequence == k) for k in range(4)
    )]  # fmt: skip
    assert pairs == [[(0, 2), (1, 1)], [(0, 4), (1, 3)], [(1, 2), (2, 1)], [(1, 4), (2, 4)]]


@pytest.mark.parametrize("drop", ["Dst Rank", "Src Rank"])
def test_calls_that_do_not_name_the_other_side_meet_nobody(drop: str) -> None:
    assert a_pipeline(drop).meetings.kind == []


def test_replay_waits_for_the_root_that_a_recording_names() -> None:
    rows = capture_linked(rooted("broadcast", *[{"Rank": 2}] * 3))
    assert rows is not None
    graph = network(rows)
    assert rows.calls.root.tolist() == [False, False, True]
    assert graph.meets.known.tolist() == [True]
    assert (graph.meets.time - BEGIN).tolist() == [5_000_000] * 2  # 2.1 ms after the root came at 2.9 ms


def host_tree(rank: int, calls: Calls, root: int, ran: Calls, groups: list[tuple[str, tuple[int, ...]]]) -> Tree:
    """A profile of a CPU: ``calls`` of a broadcast (start, dur in us) from ``root``, and what Gloo's thread then ``ran``."""
    rows = [(start, dur, 0, 0) for start, dur in calls] + [(start, dur, 1, 1) for start, dur in ran]
    start, dur, kind, lane = np.array(rows, dtype=np.int64).T
    n = len(rows)
    said = json.dumps({"Concrete Inputs": ["", "", str(root), "0", "False", "-1"]})
    trace = Trace(
        BEGIN + start * 1000, dur * 1000, kind.astype(np.int32), lane.astype(np.int32), np.zeros(n, np.uint8),
        np.full(n, int(Layer.COMMUNICATION), np.uint8), np.full(n, -1, np.int64), np.where(kind == 0, 0, -1).astype(np.int32),
        ["c10d::broadcast_", "gloo:broadcast"], [Lane("9", "9", False), Lane("9", "10", False)], ["x"], [said],
        Origin("kineto", "unix", rank=rank, world=2, host="a", pid=9 + rank, groups=groups),
    )  # fmt: skip
    return Tree(trace, np.full(n, -1, np.int32), np.arange(1, n + 1, dtype=np.int32))


@pytest.mark.parametrize(
    ("calls", "groups", "root"),
    [
        ([(1000, 50)], [("0", (1, 0))], 0),
        ([(1000, 50)], [("0", (0, 1)), ("1", (0, 1)), ("2", (0,))], 1),
        ([(1000, 50)], [("0", (0, 1)), ("1", (0, 1, 2))], -1),
        ([(1000, 50)], [], -1),
        ([(1000, 50), (3000, 50)], [("0", (0, 1))], -1),
        ([(1300, 50)], [("0", (0, 1))], -1),
    ],
    ids=["in order", "one group", "which group", "no group", "another call", "called later"],
)
def test_the_operator_that_called_gloo_names_the_root_where_it_is_plain_which(
    calls: Calls, groups: list[tuple[str, tuple[int, ...]]], root: int
) -> None:
    capture = captured(*[host_tree(rank, calls, 1, [(1100 + rank, 500)], groups) for rank in (0, 1)])
    assert capture.meetings.kind == ["broadcast"]
    assert capture.meetings.root.tolist() == [root]


def test_a_call_in_a_trace_has_the_root_of_the_note_that_was_made_of_it() -> None:
    trees = [rank_tree(rank, "a", [(1000, 9000)], name="gloo:broadcast") for rank in (0, 1)]
    facts = [
        CollectiveFact(Process("a", 9 + rank), BEGIN + 980_000, "0", (0, 1), 4, "gloo:broadcast", root=1)
        for rank in (0, 1)
    ]
    capture = captured(*trees, facts=facts)
    assert capture.meetings.how == ["recorder"]
    assert capture.meetings.root.tolist() == [1]
    assert captured(*trees, facts=[fact._replace(root=-1) for fact in facts]).meetings.root.tolist() == [-1]


def test_a_root_in_the_notes_of_a_recorder_is_a_number_in_the_job() -> None:
    def noted(name: str, root: int) -> list[int]:
        facts = [
            CollectiveFact(
                Process("a", 9 + rank, rank=rank), BEGIN, "g", (), 4, name, size=2, timed=True, started=BEGIN,
                finished=BEGIN + 9000, root=root,
            )
            for rank in (3, 5)
        ]  # fmt: skip
        return captured(facts=facts).meetings.root.tolist()

    assert noted("gloo:reduce", 5) == [1]
    assert noted("gloo:broadcast", 3) == [0]
    assert noted("gloo:broadcast", -1) == [-1]
    assert noted("gloo:all_reduce", 3) == [-1]
