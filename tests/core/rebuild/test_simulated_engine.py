"""Against an engine simulated apart from the code under test: what it recorded is rebuilt to the number."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from teller_core.data.capture import Capture
from teller_core.data.records import Recording
from teller_core.data.steps import Mapping, Role
from teller_core.rebuild.capture import rebuild
from tests.core.rebuild.hide import hide_decisions

Engine = Callable[..., Any]
RUNS = (
    {"ahead": False},
    {"ahead": True},
    {"ahead": False, "room": 700},
    {"ahead": True, "room": 700},
)


def captured(recording: Recording) -> Capture:
    capture = rebuild(recording, [], capture_id="c", name="n")
    capture.check()
    return capture


def members(capture: Capture, least: float = 0.0) -> list[dict[str, tuple[int, int, int]]]:
    """By step: tokens, role and recomputed tokens of each request."""
    steps: list[dict[str, tuple[int, int, int]]] = [{} for _ in capture.steps.engine]
    part = capture.participation
    for row in np.flatnonzero(part.confidence >= least).tolist():
        name = capture.requests.engine_id[part.request[row]]
        steps[part.step[row]][name] = (int(part.tokens[row]), int(part.role[row]), int(part.recomputed[row]))
    return steps


@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), run=st.sampled_from(RUNS))
@example(seed=4108, run={"ahead": False, "room": 700})  # one is evicted before its prompt is read
def test_what_was_recorded_is_rebuilt_to_the_number(engine: Engine, seed: int, run: dict[str, Any]) -> None:
    service = engine(seed, **run)
    capture = captured(service.recording)
    steps = capture.steps
    assert len(steps.engine) == len(service.steps)
    assert set(steps.mapping.tolist()) == {int(Mapping.RECORDED)}
    times = list(
        zip(
            *(getattr(steps, name).tolist() for name in ("scheduled", "launched", "finished", "delivered")), strict=True
        )
    )
    assert times == service.times
    assert steps.number.tolist() == list(range(len(service.steps)))
    assert steps.preempted.tolist() == service.evicted
    assert steps.kv_tokens.tolist() == [sum(n + before for n, before in of.values()) for of in service.steps]
    for mine, true in zip(members(capture), service.steps, strict=True):
        role = {
            name: Role.PREFILL if before < service.prompts[name] else Role.DECODE for name, (_, before) in true.items()
        }
        assert {name: of[:2] for name, of in mine.items()} == {
            name: (n, int(role[name])) for name, (n, _) in true.items()
        }


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), run=st.sampled_from(RUNS))
def test_what_was_computed_twice_is_what_evictions_lost(engine: Engine, seed: int, run: dict[str, Any]) -> None:
    service = engine(seed, **run)
    capture = captured(service.recording)
    again: dict[str, int] = dict.fromkeys(service.prompts, 0)
    for of in members(capture):
        for name, (_, _, recomputed) in of.items():
            again[name] += recomputed
    for job in service.jobs:
        tokens = sum(of[job.name][0] for of in service.steps if job.name in of)
        assert again[job.name] == tokens - (job.prompt + job.output - 1)
    preemptions = dict(zip(capture.requests.engine_id, capture.requests.preemptions.tolist(), strict=True))
    assert preemptions == {job.name: job.preempted for job in service.jobs}


@settings(max_examples=8)
@given(seed=st.integers(0, 10**6), ahead=st.booleans())
def test_a_request_has_the_times_of_its_caller_its_queue_and_its_steps(engine: Engine, seed: int, ahead: bool) -> None:
    service = engine(seed, ahead=ahead)
    requests = captured(service.recording).requests
    place = {name: i for i, name in enumerate(requests.engine_id)}
    for job in service.jobs:
        i = place[job.name]
        own = [step for step, of in enumerate(service.steps) if job.name in of]
        assert requests.client_id[i] == job.name.removeprefix("cmpl-").rsplit("-", 2)[0]
        assert (requests.client_start[i], requests.received[i], requests.queued[i]) == (
            job.arrives - 1_000_000,
            job.arrives,
            job.arrives,
        )
        assert requests.scheduled[i] == service.times[own[0]][0]
        assert requests.first_token[i] == job.tokens_at[0] - 50_000
        assert requests.last_token[i] == job.tokens_at[-1] - 50_000
        assert (requests.client_first[i], requests.client_end[i]) == (job.tokens_at[0], job.tokens_at[-1] + 1_000_000)
        assert (requests.prompt_tokens[i], requests.output_tokens[i]) == (job.prompt, job.output)
        if len(job.tokens_at) > 1:
            assert requests.itl_max[i] == np.diff(job.tokens_at).max()


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), data=st.data())
def test_lines_find_their_step_though_lines_and_decisions_were_lost(
    engine: Engine, seed: int, data: st.DataObject
) -> None:
    recording = engine(seed, ahead=seed % 2 == 0).recording
    kept = [line for line in recording.iterations if data.draw(st.integers(0, 9)) > 0]
    capture = captured(replace(recording, iterations=kept))
    rows = {int(capture.steps.number[step]): step for step in range(len(capture.steps.number))}
    assert all(rows.get(line.number) == line.number for line in kept if line.number is not None)
    assert len(capture.steps.engine) == len(recording.iterations)


@pytest.mark.parametrize("lost", [{3}, {5, 6, 7}, {0}, {10, 20}])
def test_steps_whose_decision_was_lost_are_known_by_their_worker_and_their_line(engine: Engine, lost: set[int]) -> None:
    service = engine(7)
    chosen = [d for d in service.recording.decisions if d.tokens]
    kept = [d for i, d in enumerate(chosen) if i not in lost]
    capture = captured(replace(service.recording, decisions=kept))
    assert len(capture.steps.engine) == len(service.steps)
    assert np.flatnonzero(capture.steps.scheduled == -(2**63)).tolist() == sorted(lost)
    assert capture.steps.launched.tolist() == [launched for _, launched, _, _ in service.times]


def test_hidden_decisions_are_inferred_and_rarely_wrong(engine: Engine) -> None:
    true = claimed = right = 0
    for seed in range(5):
        for run in RUNS:
            service = engine(seed, **run)
            capture = captured(hide_decisions(service.recording))
            for mine, of in zip(members(capture, 0.9), service.steps, strict=True):
                true, claimed, right = true + len(of), claimed + len(mine), right + len(mine.keys() & of.keys())
    assert claimed >= 0.7 * true
    assert right >= 0.95 * claimed


@pytest.fixture(scope="module")
def unhooked(engine: Engine) -> list[tuple[Any, Capture]]:
    """Services of which nobody recorded decisions or callers, and what inference makes of each: seconds of work."""
    services = [engine(seed, clients=False) for seed in range(12)]
    return [(service, captured(hide_decisions(service.recording))) for service in services]


def test_where_nobody_knows_how_long_answers_are_little_is_claimed_and_that_is_right(
    unhooked: list[tuple[Any, Capture]],
) -> None:
    true = claimed = right = 0
    for service, capture in unhooked:
        for mine, of in zip(members(capture, 0.9), service.steps, strict=True):
            true, claimed, right = true + len(of), claimed + len(mine), right + len(mine.keys() & of.keys())
    assert 0 < claimed < 0.5 * true
    assert right >= 0.95 * claimed


def test_confidence_means_what_it_says(unhooked: list[tuple[Any, Capture]]) -> None:
    sure: list[float] = []
    hit: list[bool] = []
    for service, capture in unhooked:
        part = capture.participation
        for row in np.flatnonzero(part.confidence < 0.9).tolist():
            sure.append(float(part.confidence[row]))
            hit.append(capture.requests.engine_id[part.request[row]] in service.steps[part.step[row]])
    assert len(sure) > 100
    assert np.mean(hit) > np.mean(sure) - 0.1
