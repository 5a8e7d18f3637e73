"""What replay does not know it names: it claims nothing of it, or gives two bounds."""

from dataclasses import replace

import numpy as np
import pytest

from teller_core.context.linking import linked
from teller_core.judge.replay import Network, network, retime, saving
from teller_core.judge.replay.arcs import COPIED, NO_ROOT, NOT_FREE, RANK_MISSING, SHARED
from teller_core.judge.replay.network import AGAINST_TIME, LAUNCHED_BEFORE, NOT_HERE, UNKNOWN_USE, unclaimed
from tests.core.judge.replay.machine import GETS, GIVES, Do, recorded, run
from tests.core.judge.service import MS, US

FIRST, LAST, TOKEN = Do("op", "first", 10 * US), Do("op", "last", 10 * US), Do("sync", "token", 0)
MEET = Do("meet", "ncclDevKernel_AllReduce", 500 * US)


def graph_of(*programs: list[Do]) -> Network:
    return network(recorded(run(programs, {}, [MS] * len(programs)))[0])


def test_a_collective_beside_other_work_of_its_device_is_not_guessed_at() -> None:
    beside = Do("launch", "gemm", 400 * US, stream=8)
    graph = graph_of([FIRST, beside, MEET, TOKEN, LAST], [FIRST, MEET, TOKEN, LAST])
    assert graph.cut[SHARED] == 1
    assert "shares its device" in unclaimed(graph)


@pytest.mark.parametrize("kind", [*GIVES, *GETS])
def test_a_root_that_nobody_names_is_not_guessed_at(kind: str) -> None:
    meeting = replace(MEET, kind=kind, root=0)
    rows = recorded(run([[FIRST, meeting, LAST]] * 2, {}, [MS, MS]))[0]
    assert not network(rows).cut
    graph = network(replace(rows, calls=replace(rows.calls, root=np.zeros(2, dtype=np.bool_))))
    assert graph.cut == {NO_ROOT: 1}
    assert np.array_equal(retime(graph, graph.kept.owned).end, rows.end)


@pytest.mark.parametrize(("kind", "free"), [("broadcast", 0), ("reduce", 1), ("send_recv", 0)])
def test_who_needs_nobody_and_was_still_there_long_after_another_came_may_have_waited(kind: str, free: int) -> None:
    meeting = replace(MEET, kind=kind, root=0)
    for late, lasted, known in (
        (300, 299, True),
        (300, 301, False),
        (300, 2900, False),
        (15, 16, True),
        (40, 500, True),
    ):
        programs = [[FIRST, meeting, LAST], [FIRST, meeting, LAST]]
        programs[1 - free].insert(1, Do("op", "late", late * US))
        rows = recorded(run(programs, {}, [MS, MS]))[0]
        assert not network(rows).cut
        end, call = rows.end.copy(), rows.calls.row[rows.lane_part[rows.lane[rows.calls.row]] == free]
        end[call] = rows.start[call] + lasted * US
        graph = network(replace(rows, end=end))
        assert graph.cut == ({} if known else {NOT_FREE: 1})
        assert known or NOT_FREE in unclaimed(graph)


def test_a_collective_by_copies_is_not_guessed_at() -> None:
    copy = replace(MEET, name="Memcpy PtoP")
    graph = graph_of([FIRST, copy, LAST], [FIRST, copy, LAST])
    assert graph.cut[COPIED] == 1
    assert unclaimed(graph)


def test_a_collective_of_which_a_rank_is_not_here_keeps_what_it_took() -> None:
    whole = recorded(run([(FIRST, MEET, TOKEN, LAST)] * 2, {}, [MS, MS]))[0]
    assert not unclaimed(network(whole))
    few = whole.calls
    alone = replace(whole, calls=replace(few, whole=np.zeros(len(few.kind), dtype=np.bool_)))
    graph = network(alone)
    assert graph.cut[RANK_MISSING] == 1
    assert unclaimed(graph)
    assert np.array_equal(retime(graph, graph.kept.owned).end, whole.end)


def test_a_sender_does_not_wait_for_who_receives_but_that_one_waits_for_it() -> None:
    passed = replace(MEET, kind="send_recv", root=0)
    sender = [FIRST, Do("op", "a", 50 * US), passed, LAST]
    receiver = [FIRST, Do("op", "b", 20 * US), passed, LAST]
    rans = run([sender, receiver], {}, [MS, MS])
    linked_rows, rows, _ = recorded(rans)
    graph = network(linked_rows)
    assert not graph.cut
    ends = [rows[rank][rans[rank].calls[0][1]] for rank in (0, 1)]
    for rank, which, moves in ((0, 1, [800, 800]), (1, 1, [0, 770])):
        longer = graph.kept.owned.copy()
        longer[rows[rank][which]] += 800 * US
        found = retime(graph, longer)
        assert [(int(found.end[row]) - int(graph.linked.end[row])) // US for row in ends] == moves


def test_work_that_was_launched_before_the_window_is_counted_and_stays() -> None:
    rows = recorded(run([(FIRST, Do("launch", "gemm", 90 * US), TOKEN, LAST)], {}, [MS]))[0]
    (part,) = rows.parts
    kernel = int(np.flatnonzero(rows.work)[0])
    tree = part.tree.part(0, len(part.tree))
    late = replace(tree, parent=np.where(np.arange(len(tree)) == kernel, -1, tree.parent).astype(np.int32))
    graph = network(linked([part._replace(tree=late)]))
    assert graph.cut[LAUNCHED_BEFORE] == 1
    assert retime(graph, np.zeros_like(graph.kept.owned)).start[kernel] == rows.start[kernel]


def test_a_wait_for_nothing_that_is_here_leaves_a_step_without_a_claim() -> None:
    graph = graph_of([FIRST, Do("call", "cudaEventSynchronize", 95 * US), LAST])
    assert graph.cut[NOT_HERE] == 1
    assert NOT_HERE in unclaimed(graph)


@pytest.mark.parametrize(("quiet", "low", "high"), [(307, 298, 301), (700, 0, 310)], ids=["a wait", "unknown"])
def test_silence_that_ends_with_the_work_of_the_device_is_a_wait_and_else_has_two_bounds(
    quiet: int, low: int, high: int
) -> None:
    program = [FIRST, Do("launch", "gemm", 300 * US), Do("quiet", "-", quiet * US), LAST]
    rans = run([program], {}, [MS])
    rows = recorded(rans)[1]
    graph = network(recorded(rans)[0])
    work = np.array([rows[0][2]])
    said = saving(graph, work, np.zeros(1, dtype=np.int64))
    assert low <= said.low / US <= said.high / US <= high
    assert (said.low < said.high) == ("may have worked" in said.assumes)


def test_long_silence_that_nothing_can_explain_is_counted() -> None:
    graph = graph_of([FIRST, Do("quiet", "-", 900 * US), LAST])
    assert graph.cut == {UNKNOWN_USE: 1}
    assert not unclaimed(graph)


def test_ranks_that_wait_for_each_other_against_time_are_taken_apart() -> None:
    pair = [Do("gloo", "one", 90 * US), Do("gloo", "two", 90 * US)]
    rows = recorded(run([[FIRST, *pair, LAST], [FIRST, *pair, LAST]], {}, [MS, MS]))[0]
    meeting = rows.calls.meeting.copy()
    second = np.flatnonzero(rows.lane_part[rows.lane[rows.calls.row]] == 1)
    meeting[second] = meeting[second][::-1]  # the calls of the second rank were matched the wrong way round
    graph = network(replace(rows, calls=replace(rows.calls, meeting=meeting)))
    assert graph.cut[AGAINST_TIME] > 0
    found = retime(graph, graph.kept.owned)
    assert np.array_equal(found.start, rows.start)
    assert np.array_equal(found.end, rows.end)
