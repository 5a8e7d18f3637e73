"""From a kernel to its step and the requests that the step served, by numbers: the clocks of the two may be anything."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from teller_core.data.capture import Capture
from teller_core.data.steps import Mapping
from teller_core.ingest.files.planning import plan
from teller_core.ingest.reading import read_trees
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.nest import nest
from tests.core.collect.native.fake_runs import Run

pytest.importorskip("cupti", reason="cupti-python is not installed")
MS = 1_000_000
BEGIN = 1_800_000_000_000_000_000
STEPS, FIRST, EVERY, TOOK = 40, 7, 12 * MS, 9 * MS
SEEN = range(10, 30)
"""Steps while the window was open, by their place."""
FEED = f"""
open_now()
for place in range({SEEN.start}, {SEEN.stop}):
    begin = {BEGIN} + place * {EVERY} + 1_000_000 + int(os.environ["SHIFT"])
    feed(fake, step_of_two_launches(begin, 2 * place + 1, place + {FIRST}, os.getpid()))
feed(fake, [record(5, cbid=211, start=begin + 50_000_000, end=begin + 50_000_100, thread_id=os.getpid(), correlation_id=999)])
close_now()
"""


def _line(kind: str, time: int, name: str = "", **said: Any) -> str:
    return json.dumps({"ph": kind, "t": time, "tid": 1, "name": name, **said}) + "\n"


def _requests_of(place: int) -> dict[str, int]:
    rng = random.Random(place)
    return {f"r{name}": 1 for name in sorted(rng.sample(range(12), rng.randint(1, 6)))}


def _hooks(cap: Path, pid: int) -> None:
    """What the hooks write of the steps: what was chosen, and what the worker ran."""
    with (cap / f"host-{pid}.jsonl").open("w") as file:
        file.write(_line("P", BEGIN, "process", pid=pid))
        for place in range(STEPS):
            tokens, number, at = _requests_of(place), place + FIRST, BEGIN + place * EVERY
            file.write(_line("X", at - 100_000, "vllm.schedule", dur=50_000, n=number, tokens=tokens))
            file.write(_line("X", at, "vllm.execute_model", dur=TOOK, n=number, tokens=tokens))


def capture_of(folder: Path) -> Capture:
    """What is rebuilt of a bundle."""
    group = plan([folder], together=True)[0]
    reading = read_trees(group, nest)
    capture = rebuild(reading.recording, reading.trees, capture_id="c", name="c")
    capture.check()
    return capture


def requests_by_link(capture: Capture) -> dict[int, set[str]]:
    """The requests of the step of each device row, by the row's correlation id."""
    part, names = capture.participation, capture.requests.engine_id
    found: dict[int, set[str]] = {}
    for step, rank, row, stop in zip(
        *(getattr(capture.work, name).tolist() for name in ("step", "rank", "row", "row_stop")), strict=True
    ):
        tree = capture.ranks[rank].tree
        if row < 0 or tree is None:
            continue
        rows = np.arange(row, stop)
        requests = {names[request] for request in part.request[part.step == step].tolist()}
        for link in tree.trace.link[rows[tree.trace.on_device[rows]]].tolist():
            found[link] = requests
    return found


@pytest.mark.parametrize("shift", [0, 10 * MS, -25 * MS])
def test_a_kernel_leads_to_its_step_and_its_requests_whatever_the_clocks(run: Run, tmp_path: Path, shift: int) -> None:
    done = run(FEED, SHIFT=str(shift))
    assert done.returncode == 0, done.stderr
    (window,) = tmp_path.glob("cap/cupti-*.bin")
    _hooks(tmp_path / "cap", int(window.name.split("-")[1]))
    (tmp_path / "bundle.json").write_text('{"schema": 2, "engine": "vllm", "stop_ns": 1}')
    capture = capture_of(tmp_path)
    found = requests_by_link(capture)
    assert found == {2 * place + 1 + k: set(_requests_of(place)) for place in SEEN for k in range(2)}
    assert set(capture.steps.mapping.tolist()) == {int(Mapping.RECORDED)}
    assert capture.problems.get("device_clock_apart", 0) == (len(SEEN) if shift else 0)
    assert capture.problems.get("launched_before_scheduled", 0) == 0
    assert capture.steps.launched.tolist() == [BEGIN + place * EVERY for place in range(STEPS)]
    took = capture.steps.finished - capture.steps.launched
    assert (
        (took >= TOOK) & (took <= TOOK + 10_000)
    ).all()  # moved to where its launches just lie inside, a kernel ends later
    assert capture.tier == 4


def _operators(cap: Path, pid: int) -> None:
    """What torch's profiler wrote of the host beside the window: in each step one operator that runs the model, one that samples
    after it has returned, and one of a thread that has nothing to do with steps.
    """

    def operator(name: str, at: int, dur: int, thread: int = 1) -> dict[str, Any]:
        us = {"ts": (at - BEGIN) / 1000, "dur": dur / 1000}
        return {"ph": "X", "cat": "cpu_op", "name": name, "pid": pid, "tid": thread, **us}

    events = [operator("before", BEGIN + SEEN.start * EVERY - MS, MS // 2)]
    for place in SEEN:
        at = BEGIN + place * EVERY
        events += [operator(f"model {place}", at + MS, 5 * MS), operator(f"inner {place}", at + 2 * MS, MS)]
        events += [operator(f"sample {place}", at + TOOK + MS // 2, MS), operator("beside", at + MS, 9 * MS, 2)]
    events.append(operator("after", BEGIN + SEEN.stop * EVERY - MS, MS // 2))
    page = {"schemaVersion": 1, "baseTimeNanoseconds": BEGIN, "traceEvents": events}
    (cap / f"torch-{pid}-1.json").write_text(json.dumps(page))


def _places_by_operator(capture: Capture) -> dict[str, set[str]]:
    """The requests of the step of each operator that torch's profiler saw; those without a step are not there."""
    part, names = capture.participation, capture.requests.engine_id
    found: dict[str, set[str]] = {}
    for step, rank, row, stop in zip(
        *(getattr(capture.work, name).tolist() for name in ("step", "rank", "row", "row_stop")), strict=True
    ):
        tree = capture.ranks[rank].tree
        if row < 0 or tree is None or tree.trace.origin.producer != "kineto":
            continue
        lane = tree.trace.lane[row]
        requests = {names[request] for request in part.request[part.step == step].tolist()}
        for at in range(row, stop):
            if tree.trace.lane[at] == lane:
                found[tree.trace.names[int(tree.trace.name[at])]] = requests
    return found


@pytest.mark.parametrize("shift", [0, -25 * MS])
def test_operators_of_the_host_beside_a_window_of_the_gpu_lead_to_the_same_steps(
    run: Run, tmp_path: Path, shift: int
) -> None:
    done = run(FEED, SHIFT=str(shift))
    assert done.returncode == 0, done.stderr
    (window,) = tmp_path.glob("cap/cupti-*.bin")
    pid = int(window.name.split("-")[1])
    _hooks(tmp_path / "cap", pid)
    _operators(tmp_path / "cap", pid)
    (tmp_path / "bundle.json").write_text('{"schema": 2, "engine": "vllm", "stop_ns": 1}')
    capture = capture_of(tmp_path)
    wanted = {f"{name} {place}": _requests_of(place) for place in SEEN for name in ("model", "inner", "sample")}
    found = _places_by_operator(capture)
    assert {name: found.get(name) for name in wanted} == {name: set(of) for name, of in wanted.items()}
    assert "beside" not in found
    assert requests_by_link(capture) == {
        2 * place + 1 + k: set(_requests_of(place)) for place in SEEN for k in range(2)
    }
    assert {(rank.rank, rank.pid) for rank in capture.ranks if rank.tree is not None} == {(0, pid)}
