"""Replays of everything real: they give back what was recorded, say what the window cut, and shorter work ends nothing later."""

from pathlib import Path

import numpy as np
import pytest

from teller_core.context.linking import capture_linked, step_linked
from teller_core.data.capture import Capture
from teller_core.judge.replay import Whose, charged, idled, moved, network, retime, saving, times
from teller_core.judge.replay.network import CUT, Network
from tests.core.judge.captured import ROOT, TRIMMED, WHOLE, rebuilt

TRACES = ROOT.parent / "shared" / "traces" / "kineto"
NAMES = ("tp_delay", "tp_fr", "vllm_2node", "tfserve_shim", "vllm_full", "vllm_shim")
MANY = [path for path in sorted(TRACES.glob("*")) if path.is_dir()] + [WHOLE / name for name in NAMES]
FOLDERS = [TRIMMED / "vllm_2node", *(path for path in MANY if path.is_dir())]


def graph_of(made: Capture) -> Network:
    """All that a capture recorded, on all of its ranks."""
    found = capture_linked(made)
    assert found is not None
    return network(found)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_a_real_recording_is_replayed(folder: Path) -> None:
    graph = graph_of(rebuilt(folder)[0])
    timed = graph.linked.host | graph.linked.work
    for shrink, way in ((False, graph.kept), (True, graph.shrunk)):
        assert (way.own[graph.owner >= 0] >= 0).all()
        same = retime(graph, way.owned, shrink=shrink)
        assert np.array_equal(same.start, graph.linked.start)
        assert np.array_equal(same.end, graph.linked.end)
        part = np.random.default_rng(0).choice([0.0, 0.5, 1.0], len(way.owned))
        short = retime(graph, np.floor(way.owned * part).astype(np.int64), shrink=shrink)
        assert (short.start[timed] <= graph.linked.start[timed]).all()
        assert (short.end[timed] <= graph.linked.end[timed]).all()
        for part in moved(graph, short):
            part.tree.check()
    assert set(graph.cut) <= set(CUT)
    said = times(graph)
    assert (said.idle >= 0).all()
    for found in (charged(graph, least=100_000), idled(graph, least=100_000)):
        assert np.array_equal(np.bincount(found.wait, found.ns, len(found.row)), found.end - found.start)
        assert (found.whose <= Whose.BEFORE).all()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}/{folder.name}")
def test_no_single_span_saves_more_than_its_own_time(folder: Path) -> None:
    graph = graph_of(rebuilt(folder)[0])
    rows = np.argsort(-graph.kept.owned[: len(graph.linked)], kind="stable")[:5]
    for row in rows.tolist():
        found = saving(graph, np.array([row]), np.zeros(1, dtype=np.int64))
        assert 0 <= found.low <= found.high <= int(graph.kept.owned[row])


@pytest.mark.skipif(not (WHOLE / "vllm_2node").is_dir(), reason="needs the whole recording of two nodes")
def test_a_slow_link_is_what_the_steps_of_two_real_nodes_took_longer_for() -> None:
    """Two ranks, first with a healthy link, then with 8 ms one way: a step that took 525 ms had ten collectives of 38 ms each."""
    made = rebuilt(WHOLE / "vllm_2node")[0]
    linked = step_linked(made, 101)
    assert linked is not None
    graph = network(linked)
    owners = np.arange(graph.nodes.meetings) + graph.nodes.meeting_owner
    excess = int((graph.kept.owned[owners] - 1_000_000).sum())
    found = saving(graph, owners, np.full(len(owners), 1_000_000))
    assert excess > 300_000_000
    assert 0.95 * excess <= found.low <= found.high <= 1.05 * excess


def test_what_the_window_of_a_real_trace_cut_is_named() -> None:
    made = rebuilt(TRIMMED / "vllm_2node")[0]
    cut = graph_of(made).cut
    assert cut
    assert all(count > 0 for count in cut.values())
