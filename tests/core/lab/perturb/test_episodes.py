"""An episode is a capture like any other, the same from the same seed, and its truth is what the strike cost."""

import numpy as np
import pytest

from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED
from teller_core.lab.evaluation.seen import blinded
from teller_core.lab.perturb.benign import Spread, between, drawn
from teller_core.lab.perturb.episodes import RUNS, STRUCK, Made, made, possible, severity
from teller_core.lab.perturb.faults import FAULTS
from teller_core.lab.perturb.folder import digest
from tests.core.lab.perturb.made import first

SPREAD = Spread(np.linspace(-0.03, 0.03, 9), np.linspace(-0.01, 0.01, 9))
SINCE = 1_700_000_000_000_000_000
CASES = [("ranks", name) for name in FAULTS if name != "graph_miss"] + [("graphs", "graph_miss")]


def episode(kind: str, name: str, seed: int = 5, *, real: bool = False) -> Made:
    found = made(first(kind), SPREAD, name, (seed, 1, 2), SINCE, real=real)
    assert found is not None
    return found


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_an_episode_is_a_capture_with_the_labels_of_its_runs(kind: str, name: str) -> None:
    found = episode(kind, name)
    found.capture.check()
    found.labels.check(found.capture)
    assert len(found.capture.requests.number) == RUNS
    assert found.runs.sum() == (0 if name == "nothing" else STRUCK)
    assert found.capture.steps.begin().min() >= SINCE
    steps = found.labels.step.reshape(RUNS, -1)
    assert (steps[~found.runs] == 0).all()
    struck = np.flatnonzero(found.runs)
    cause = FAULTS[name].cause
    allowed = {HEALTHY} if not cause else {cause, NOT_JUDGED}
    assert {found.labels.request[at] for at in struck.tolist()} <= allowed
    assert all(found.labels.request[at] == HEALTHY for at in np.flatnonzero(~found.runs).tolist())
    assert found.labels.hard.sum() == (STRUCK if cause is None else 0)


@pytest.mark.parametrize(("kind", "name"), CASES)
def test_the_same_seed_gives_the_same_episode_and_another_one_another(kind: str, name: str) -> None:
    one, again, other = (digest(episode(kind, name, seed).capture) for seed in (5, 5, 6))
    assert one == again != other


def test_abnormal_steps_are_touched_ones_that_lost_a_twentieth() -> None:
    for seed in range(4):
        found = episode("ranks", "gc_pause", seed)
        abnormal = found.labels.step.reshape(found.touched.shape) == 1
        assert (abnormal <= found.touched).all()
        assert (found.loss[abnormal] >= np.log1p(0.05)).all()
        assert (found.loss[~found.touched & (found.labels.step.reshape(found.touched.shape) == 0)] == 0).all()


def test_a_late_rank_is_named_in_the_truth_and_in_the_meetings() -> None:
    found = episode("ranks", "late_rank", 2)
    assert found.labels.ranks
    met = found.capture.collectives
    for step, rank in found.labels.ranks.items():
        assert set(met.late[met.step == step].tolist()) == {rank}
        assert (met.wait[(met.step == step) & (met.rank != rank)] > 0).all()


def test_more_work_is_recorded_as_such() -> None:
    found = episode("ranks", "more_work")
    tokens = found.capture.steps.generation_tokens.reshape(RUNS, -1)
    assert (tokens[found.runs] > tokens[~found.runs].max()).all()


def test_a_control_holds_the_recorded_run_itself() -> None:
    found = episode("one", "nothing", real=True)
    (rank,) = [rank for rank in found.capture.ranks if rank.tree is not None]
    piece = first("one").given.piece
    size = len(piece.linked)
    assert rank.tree is not None
    assert np.array_equal(rank.tree.trace.dur[:size], piece.linked.end - piece.linked.start)
    assert not np.array_equal(rank.tree.trace.dur[size : 2 * size], rank.tree.trace.dur[:size])


def test_like_spans_change_places_and_keep_their_times_together() -> None:
    ready = first("one")
    chance = np.random.default_rng(1)
    none = Spread(np.zeros(1), np.zeros(1))
    center = drawn(ready.given.piece, ready.alike, none, chance)
    draw = between(ready.given.piece, ready.alike, center, center, chance)
    owned = ready.given.piece.graph.kept.owned[: len(draw.span)]
    for group in np.unique(ready.alike.group[ready.alike.group >= 0]).tolist():
        mine = ready.alike.group == group
        now = np.rint(owned[mine] * draw.span[mine]).astype(np.int64)
        assert sorted(now.tolist()) == sorted(owned[mine].tolist())
    single = (ready.alike.group < 0) & ready.alike.known
    assert np.all(draw.span[single] == 1.0)


def test_methods_see_an_episode_like_any_capture() -> None:
    seen = blinded(episode("ranks", "slow_kernel").capture)
    assert seen.steps.profiled.all()
    assert len(seen.assessment.steps.took) == len(seen.capture.steps.engine)


def test_requests_of_a_single_step_are_judged_by_all_but_their_gaps() -> None:
    seen = blinded(episode("single", "slow_kernel").capture)
    asked = seen.assessment.requests
    assert "e2e" in asked.metric
    assert not (asked.value[[name == "itl_max" for name in asked.metric]] > 0).any()
    assert seen.steps.profiled.sum() == RUNS


def test_every_factor_has_a_word() -> None:
    assert [severity(factor) for factor in (1.05, 1.5, 3.0, 10.0)] == ["slight", "clear", "strong", "extreme"]
    assert possible(first("graphs"))
