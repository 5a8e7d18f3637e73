"""Real captures, whole: what was recorded of vLLM and transformers arrives as records, to the number."""

from collections import Counter
from pathlib import Path

import pytest

from teller_core.data.records import Recording
from teller_core.ingest.files.planning import plan
from teller_core.ingest.reading import read_group

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
EXPECTED = {
    "tfserve_shim": {"decisions": 195, "executions": 195, "requests": 32, "clients": 8, "pauses": 135, "lines": 72},
    "vllm_2node": {
        "decisions": 207,
        "executions": 414,
        "iterations": 200,
        "requests": 48,
        "clients": 12,
        "pauses": 876,
    },
    "vllm_faults/base": {"decisions": 268, "executions": 267, "iterations": 261, "requests": 64},
    "vllm_faults/kv": {"decisions": 498, "executions": 498, "iterations": 494, "requests": 52, "lines": 699},
    "vllm_full": {"decisions": 250, "executions": 250, "iterations": 245, "requests": 40, "clients": 12, "lines": 437},
}


@pytest.fixture(scope="module", params=sorted(EXPECTED))
def capture(request: pytest.FixtureRequest) -> tuple[str, Recording]:
    (group,) = plan([CAPTURES / request.param])
    return request.param, read_group(group)


def test_every_record_arrives(capture: tuple[str, Recording]) -> None:
    name, recording = capture
    assert {kind: len(getattr(recording, kind)) for kind in EXPECTED[name]} == EXPECTED[name]
    assert recording.engine == ("transformers" if name.startswith("tf") else "vllm")


def test_nothing_of_a_file_is_lost_silently(capture: tuple[str, Recording]) -> None:
    for file in capture[1].files:
        assert file.events_in_file == file.events_kept + sum(file.events_other.values()), file.name
        assert not file.problems, file.name


def test_processes_that_decide_and_run_are_told_apart(capture: tuple[str, Recording]) -> None:
    name, recording = capture
    deciding = {decision.process for decision in recording.decisions}
    running = {execution.process for execution in recording.executions}
    assert {process.role for process in deciding} == {"engine"}
    if name.startswith("tf"):
        assert running == deciding
    else:
        assert {process.role for process in running} == {"worker"}
        assert sorted(process.rank or 0 for process in running) == ([0, 1] if name == "vllm_2node" else [0])
        assert {line.process.role for line in recording.lines if line.rule == "vllm.iteration"} == {"frontend"}


def test_a_step_runs_after_it_was_decided_and_its_line_comes_last() -> None:
    (group,) = plan([CAPTURES / "vllm_full"])
    recording = read_group(group)
    pairs = list(zip(recording.decisions, recording.executions, strict=True))
    assert all(decision.tokens == execution.tokens for decision, execution in pairs)
    assert all(decision.start <= execution.start for decision, execution in pairs)
    first, last = recording.decisions[0].start, recording.iterations[-1].time
    assert all(first < iteration.time <= last for iteration in recording.iterations)


def test_real_preemptions_are_recorded() -> None:
    (group,) = plan([CAPTURES / "vllm_faults" / "kv"])
    preempted = Counter(request for decision in read_group(group).decisions for request in decision.preempted)
    assert sum(preempted.values()) == 4
