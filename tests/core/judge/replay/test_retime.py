"""Re-timed work is what the machine would have done; the same durations give the same times; shorter ones end nothing later."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from teller_core.judge.replay import Network, moved, network, retime, saving, times
from tests.core.judge.replay.machine import GETS, GIVES, Do, Program, awaited, recorded, run
from tests.core.judge.service import MS, US

KINDS = ("op", "op", "launch", "launch", "sync", "copy", "call", "quiet", "pause")


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Program], list[int]]:
    """Programs of some ranks and when each begins. Where they meet on devices, one stream does all: what shares a device with a
    collective is unknown to replay.
    """
    ranks = draw(st.integers(1, 3))
    meets = draw(st.sampled_from(["", "meet", "gloo"])) if ranks > 1 else ""
    streams = [7] if meets == "meet" else [7, 8]
    every = [[Do("op", "first", 5 * US)] for _ in range(ranks)]
    for part in range(draw(st.integers(1, 3))):
        for rank in range(ranks):
            for k in range(draw(st.integers(0, 5))):
                what = draw(st.sampled_from(KINDS))
                ns = draw(st.integers(1, 15 if what == "quiet" else 90)) * US
                name = f"gc{part}.{k}" if what == "pause" else f"{what}{part}.{k}"
                every[rank].append(Do(what, name, ns, draw(st.sampled_from(streams))))
        if meets:
            ns, kind = draw(st.integers(5, 400)) * US, draw(st.sampled_from(["all_reduce", *GETS, *GIVES]))
            root = (
                -1 if kind == "all_reduce" or (kind == "send_recv" and ranks > 2) else draw(st.integers(0, ranks - 1))
            )
            kind = "all_reduce" if root < 0 else kind
            for rank in range(ranks):
                every[rank].append(Do(meets, f"ncclDevKernel {part}", ns, kind=kind, root=root))
    begin = [1 * MS + draw(st.integers(0, 50)) * US for _ in range(ranks)]
    return [(*program, Do("op", "last", 5 * US)) for program in every], begin


def ops(programs: list[Program]) -> list[str]:
    return sorted(
        {
            f"{r}.{do.name}"
            for r, p in enumerate(programs)
            for do in p
            if do.what in ("op", "launch", "copy", "call", "pause")
        }
    )


def changed(graph: Network, rows: list[list[int]], rans: list, others: list) -> np.ndarray:
    """Durations of owners as in the other run: of operators, work and pauses; of meetings by what they took there."""
    durations = graph.kept.owned.copy()
    for rank, ran in enumerate(rans):
        for k, (name, *_) in enumerate(ran.spans):
            other = others[rank].spans[k]
            called = k in [row for _, row, _ in ran.calls]
            if not called and not name.startswith("cuda") and "Sync" not in name and "c10d" not in name:
                durations[rows[rank][k]] = other[3]
    stops = [others[rank].pauses[k][1] for rank, ran in enumerate(rans) for k in range(len(ran.pauses))]
    durations[graph.nodes.stop_owner : graph.nodes.meeting_owner] = stops
    for n in range(graph.nodes.meetings):
        came = {rank: ran.calls[n][2] for rank, ran in enumerate(others)}
        for rank, ran in enumerate(others):
            kind, root = ran.met[n]
            had, span = awaited(kind, root, rank, came), ran.spans[ran.calls[n][1]]
            if had is not None:
                durations[graph.nodes.meeting_owner + n] = span[2] + span[3] - had
    return durations


def longer(name: str) -> st.SearchStrategy[int]:
    """How long something takes in another run. A call of the runtime that lasts may be a wait that nobody recorded."""
    return st.integers(1, 90 if ".call" in name else 200).map(lambda us: us * US)


@given(programs(), st.data())
def test_replay_says_what_the_machine_does_with_other_durations(made: tuple, data: st.DataObject) -> None:
    program, begin = made
    rans = run(program, {}, begin)
    linked, rows, _ = recorded(rans)
    other = {name: data.draw(longer(name)) for name in ops(program) if data.draw(st.booleans())}
    other |= {do.name: data.draw(st.integers(5, 900)) * US for do in program[0] if do.what in ("meet", "gloo")}
    expected = run(program, other, begin)
    graph = network(linked)
    found = retime(graph, changed(graph, rows, rans, expected))
    for rank, ran in enumerate(expected):
        for k, (name, _, start, dur, _, _) in enumerate(ran.spans):
            at = rows[rank][k]
            assert (name, int(found.start[at]), int(found.end[at])) == (name, start, start + dur)
    for part, ran in zip(moved(graph, found), expected, strict=True):
        part.tree.check()
        assert sorted(part.tree.trace.start.tolist()) == sorted(span[2] for span in ran.spans)


@given(programs())
def test_the_same_durations_give_the_same_times(made: tuple) -> None:
    graph = network(recorded(run(made[0], {}, made[1]))[0])
    for shrink, way in ((False, graph.kept), (True, graph.shrunk)):
        found = retime(graph, way.owned, shrink=shrink)
        assert np.array_equal(found.start, graph.linked.start)
        assert np.array_equal(found.end, graph.linked.end)
        assert np.array_equal(found.moments, graph.time)


@given(programs(), st.data())
def test_perturbed_and_undone_is_what_was_recorded(made: tuple, data: st.DataObject) -> None:
    rans = run(made[0], {}, made[1])
    linked, rows, _ = recorded(rans)
    graph = network(linked)
    other = {name: data.draw(longer(name)) for name in ops(made[0]) if data.draw(st.booleans())}
    perturbed = run(made[0], other, made[1])
    again, same, _ = recorded(perturbed)
    assert same == rows
    back = network(again)
    found = retime(back, changed(back, rows, perturbed, rans))
    assert np.array_equal(found.start, graph.linked.start)
    assert np.array_equal(found.end, graph.linked.end)


@given(programs(), st.data())
def test_shorter_durations_end_nothing_later(made: tuple, data: st.DataObject) -> None:
    graph = network(recorded(run(made[0], {}, made[1]))[0])
    part = np.array(
        data.draw(st.lists(st.sampled_from([0.0, 0.3, 0.99, 1.0]), min_size=graph.owners, max_size=graph.owners))
    )
    for shrink, way in ((False, graph.kept), (True, graph.shrunk)):
        found = retime(graph, np.floor(way.owned * part).astype(np.int64), shrink=shrink)
        assert (found.start <= graph.linked.start).all()
        assert (found.end <= graph.linked.end).all()
        assert (found.start <= found.end).all()


@given(programs())
def test_self_time_and_waiting_sum_to_what_a_row_took_without_what_it_called(made: tuple) -> None:
    linked, _, _ = recorded(run(made[0], {}, made[1]))
    said = times(network(linked))
    assert (said.wait >= 0).all()
    timed = np.flatnonzero(linked.host | linked.work)
    own = (linked.end - linked.start)[timed]
    assert np.array_equal((said.own + said.wait)[timed], own)


@given(programs(), st.data())
def test_what_is_saved_together_is_no_more_than_what_each_end_could_move(made: tuple, data: st.DataObject) -> None:
    linked, _, _ = recorded(run(made[0], {}, made[1]))
    graph = network(linked)
    owners = np.flatnonzero(graph.kept.owned[: len(linked)] > 0)
    pair = np.array(data.draw(st.lists(st.sampled_from(owners.tolist()), min_size=1, max_size=3, unique=True)))
    together = saving(graph, pair, np.zeros(len(pair), dtype=np.int64))
    alone = [saving(graph, pair[[k]], np.zeros(1, dtype=np.int64)) for k in range(len(pair))]
    assert max(one.low for one in alone) <= together.low <= together.high
    assert together.low <= int(graph.kept.owned[pair].sum())


def test_a_negative_duration_is_refused() -> None:
    graph = network(recorded(run([(Do("op", "a", 5 * US),)], {}, [0]))[0])
    with pytest.raises(ValueError, match="negative"):
        retime(graph, graph.kept.owned - 10 * US)


def test_an_empty_recording_has_an_empty_replay() -> None:
    linked, _, _ = recorded(run([()], {}, [0]))
    graph = network(linked)
    assert retime(graph, graph.kept.owned).over == 0
    assert saving(graph, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)).high == 0
    assert replace(linked).start.size == 0
