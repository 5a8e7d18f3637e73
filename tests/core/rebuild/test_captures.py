"""Real captures: what the recorder saw of vLLM and transformers is rebuilt whole, and most of it without its decisions."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from teller_core.data.capture import Capture
from teller_core.data.records import Recording
from teller_core.data.steps import Mapping
from teller_core.data.table import UNKNOWN
from teller_core.data.tree import Tree
from teller_core.ingest.files.planning import plan
from teller_core.ingest.reading import read_group
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.nest import nest
from tests.core.rebuild.hide import hide_decisions

OURS = Path(__file__).parents[2] / "data" / "captures"
SHARED = Path(__file__).parents[4] / "shared"
RECORDED = (
    "vllm_full",
    "vllm_shim",
    "vllm_2node",
    "tfserve_shim",
    *(f"vllm_faults/{n}" for n in ("base", "kv", "batched", "omp8")),
)
HIDDEN = tuple(name for name in RECORDED if name != "tfserve_shim")


@cache
def read(folder: Path) -> tuple[Recording, tuple[Tree, ...]]:
    group = plan([folder], together=True)[0]
    recording = read_group(group, None)
    return recording, tuple(nest(trace) for _, trace in recording.traces)


def folder_of(name: str) -> Path:
    """The whole capture where it is at hand, else the part that comes with the project."""
    for root in (SHARED / "captures", OURS):
        if (root / name).is_dir():
            return root / name
    pytest.skip(f"the capture {name} is not here")


@cache
def built(name: str) -> tuple[Recording, Capture]:
    recording, trees = read(folder_of(name))
    capture = rebuild(recording, trees, capture_id="c", name=name)
    capture.check()
    return recording, capture


def pairs(capture: Capture, least: float) -> set[tuple[int, str]]:
    """(the engine's number of the step, request) of every pair at least so sure."""
    part = capture.participation
    sure = np.flatnonzero(part.confidence >= least).tolist()
    number, name = capture.steps.number, capture.requests.engine_id
    return {(int(number[part.step[row]]), name[part.request[row]]) for row in sure}


@pytest.mark.parametrize("name", RECORDED)
def test_requests_map_to_steps_as_recorded(name: str) -> None:
    recording, capture = built(name)
    chosen = sorted((d for d in recording.decisions if d.tokens), key=lambda d: d.start)
    part, names = capture.participation, capture.requests.engine_id
    rebuilt: list[dict[str, int]] = [{} for _ in capture.steps.engine]
    for step, request, tokens in zip(part.step.tolist(), part.request.tolist(), part.tokens.tolist(), strict=True):
        rebuilt[step][names[request]] = tokens
    assert rebuilt == [dict(d.tokens) for d in chosen]
    assert set(capture.steps.mapping.tolist()) == {int(Mapping.RECORDED)}
    assert capture.steps.scheduled.tolist() == [d.start + d.dur for d in chosen]
    assert capture.steps.preempted.sum() == sum(len(d.preempted) for d in recording.decisions)


@pytest.mark.parametrize("name", HIDDEN)
def test_every_line_that_counts_a_step_finds_it(name: str) -> None:
    recording, capture = built(name)
    lines = capture.lines
    counted = np.array([rule == "vllm.iteration" for rule in lines.rule])
    assert counted.sum() == len(recording.iterations)
    assert (lines.step[counted] >= 0).mean() >= 0.99
    tokens = np.bincount(capture.participation.step, capture.participation.tokens, len(capture.steps.engine))
    both = capture.steps.context_tokens + capture.steps.generation_tokens
    assert np.array_equal(tokens[lines.step[counted]], both[lines.step[counted]])


@pytest.mark.parametrize("name", RECORDED)
def test_every_step_has_its_times_in_order(name: str) -> None:
    recording, capture = built(name)
    steps = capture.steps
    cut_off = len(recording.decisions) - len(
        {(e.start, e.process) for e in recording.executions if e.process.host != "n1"}
    )
    assert (steps.launched == UNKNOWN).sum() == (steps.finished == UNKNOWN).sum() <= max(0, cut_off)
    assert "launched_before_scheduled" not in capture.problems
    if recording.iterations and recording.iterations[0].resolution < 10**6:
        both = (steps.delivered != UNKNOWN) & (steps.finished != UNKNOWN)
        late = (steps.delivered - steps.finished)[both]
        assert np.median(late) > 0
        assert (late > -(10**7)).all()


@pytest.mark.parametrize("name", HIDDEN)
def test_with_decisions_hidden_most_pairs_are_claimed_and_nearly_all_rightly(name: str) -> None:
    recording, trees = read(folder_of(name))
    hidden = rebuild(hide_decisions(recording), trees, capture_id="c", name=name)
    hidden.check()
    true, claimed = pairs(built(name)[1], 1.0), pairs(hidden, 0.9)
    assert len(claimed) >= 0.7 * len(true)
    assert len(claimed & true) >= 0.95 * len(claimed)
    assert int(Mapping.RECORDED) not in hidden.steps.mapping


def test_a_slow_link_shows_in_the_collectives_and_the_clocks_of_both_hosts_are_bounded() -> None:
    capture = built("vllm_2node")[1]
    worker = [i for i, rank in enumerate(capture.ranks) if rank.rank >= 0]
    assert {capture.ranks[i].rank for i in worker} == {0, 1}
    assert all(0 <= capture.ranks[i].clock_error < 1_000_000 for i in worker)
    dur, row = capture.collectives.dur, capture.collectives.rank
    by_entry = [float(np.median(dur[row == i])) for i in worker if (row == i).any()]
    assert min(by_entry) < 3e6
    if len(by_entry) == 4:  # two windows a rank: healthy, then delayed by 8 ms each way
        assert sum(middle > 25e6 for middle in by_entry) == 2
    met = capture.collectives.late >= 0
    assert met.any()
    assert not np.any(capture.collectives.wait[met] > dur[met])


def test_evictions_are_in_their_steps_and_their_requests() -> None:
    capture = built("vllm_faults/kv")[1]
    assert capture.steps.preempted.max() == 1
    assert capture.steps.preempted.sum() == capture.requests.preemptions.sum() == 4
    assert capture.participation.recomputed.sum() > 400


def test_an_engine_that_only_logged_and_profiled_itself_has_its_steps_and_most_requests_in_them() -> None:
    capture = built("vllm_engine_profile")[1]
    assert len(capture.steps.engine) == 294
    assert (capture.work.row >= 0).sum() == 98
    assert capture.tier == 4
    assert (capture.steps.mapping == int(Mapping.INFERRED)).mean() > 0.9
    own = np.array([name != "" for name in capture.requests.trace_id])
    assert (capture.requests.queue_ns[own] != UNKNOWN).all()


def kineto_folders() -> Iterator[Path]:
    root = SHARED / "traces" / "kineto"
    return iter(sorted(root.iterdir())) if root.is_dir() else iter(())


@pytest.mark.skipif(not (SHARED / "traces" / "kineto").is_dir(), reason="the public traces are not here")
def test_public_traces_hold_the_invariants_and_map_nobody() -> None:
    steps = 0
    for folder in kineto_folders():
        recording, trees = read(folder)
        capture = rebuild(recording, trees, capture_id="c", name=folder.name)
        capture.check()
        steps += len(capture.steps.engine)
        assert not capture.steps.mapping.any()
        assert len(capture.participation.step) == 0
    assert steps >= 24
