"""The hook points inside a service: what is asked for is done there and nowhere else, and told once it is over."""

import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from teller_core.lab import inside
from teller_core.lab.injectors import ACTS, POINTS, PULSES
from teller_core.lab.inside import INJECT

FOREVER = 2**62


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    hooks: dict[str, Any] = {}
    stand_in = SimpleNamespace(when_imported=hooks.__setitem__, hooks=hooks)
    monkeypatch.setitem(sys.modules, "teller_shim_imports", stand_in)
    spec = importlib.util.spec_from_file_location("points_under_test", INJECT / "teller_lab_points.py")
    assert spec is not None and spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    yield loaded


class Step:
    def run(self, value: int) -> int:
        return value + 1


def given(**what: Any) -> dict[str, Any]:
    return {"from": 100, "until": 0, **what}


def test_a_point_is_struck_while_it_is_asked_for_and_told_when_it_is_over(module: ModuleType, tmp_path: Path) -> None:
    points, step = module.Points(tmp_path), Step()
    assert points.call("step", Step.run, (step, 1), {}) == 2
    inside.ask(tmp_path, given(act="wait", point="step", role="worker", ms=1.0))
    points.turn(99)
    assert not points.doing
    points.turn(101)
    assert points.call("step", Step.run, (step, 1), {}) == 2
    assert points.call("schedule", Step.run, (step, 1), {}) == 2
    assert inside.told(tmp_path).delays == {}
    inside.ask(tmp_path, given(act="wait", point="step", role="worker", ms=1.0, until=200))
    points.turn(205)
    assert points.call("step", Step.run, (step, 1), {}) == 2
    points.turn(206)
    said = inside.told(tmp_path)
    (pid,) = said.on
    assert (said.on[pid], said.off[pid]) == ([101], [205])
    assert [delay.delay >= 1_000_000 for delay in said.delays[pid]] == [True]
    assert {role: process.pid for role, process in said.processes.items()} == {"worker": pid, "engine": pid}


@pytest.mark.parametrize("act", sorted({*ACTS["inside"]} - {*PULSES, "threads", "sync"}))
def test_every_act_at_a_point_takes_time_and_changes_no_answer(module: ModuleType, tmp_path: Path, act: str) -> None:
    points = module.Points(tmp_path)
    knobs = {"ms": 0.2, "times": 3, "work": 5, "file": str(tmp_path / "journal")}
    inside.ask(tmp_path, given(act=act, point="operator", role="worker", **knobs))
    points.turn(101)
    assert points.call("operator", Step.run, (Step(), 1), {}) == 2
    inside.ask(tmp_path, {})
    points.turn(300)
    ((delay,),) = inside.told(tmp_path).delays.values()
    assert delay.delay > 0
    assert not list(tmp_path.glob("journal*"))


def test_threads_and_waits_for_a_device_are_asked_of_torch_and_threads_are_given_back(
    module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, waits = [1], []
    device = SimpleNamespace(synchronize=lambda: waits.append(1))
    torch = SimpleNamespace(get_num_threads=lambda: now[-1], set_num_threads=now.append, cuda=device)
    monkeypatch.setitem(sys.modules, "torch", torch)
    points, step = module.Points(tmp_path), Step()
    inside.ask(tmp_path, given(act="threads", point="step", role="worker", threads_each_processor=4))
    points.turn(101)
    points.call("step", Step.run, (step, 1), {})
    points.call("step", Step.run, (step, 1), {})
    inside.ask(tmp_path, given(act="sync", point="operator", role="worker", times=2, until=0))
    points.turn(102)
    points.call("step", Step.run, (step, 1), {})
    points.call("operator", Step.run, (step, 1), {})
    assert now[0] == now[-1] == 1
    assert len(now) == 3 and now[1] % 4 == 0
    assert len(waits) == 2


class VllmScheduler:
    max_num_scheduled_tokens, max_num_running_reqs, max_num_active_reqs = 2048, 8, 8


class TransformersProcessor:
    max_batch_tokens = 512


@pytest.mark.parametrize(
    ("scheduler", "what", "lower"),
    [
        (VllmScheduler(), {"chunk": 64}, {"max_num_scheduled_tokens": 64}),
        (VllmScheduler(), {"seats": 2}, {"max_num_running_reqs": 2, "max_num_active_reqs": 2}),
        (TransformersProcessor(), {"chunk": 64}, {"max_batch_tokens": 64}),
    ],
)
def test_a_scheduler_has_a_lower_limit_for_as_long_as_it_is_asked_for(
    module: ModuleType, tmp_path: Path, scheduler: object, what: dict[str, int], lower: dict[str, int]
) -> None:
    points = module.Points(tmp_path)
    for asked, expected in ((what, lower), ({}, {})):
        inside.limit(tmp_path, asked)
        points.turn(101)
        points.call("step", lambda _: None, (scheduler,), {})
        points.call("schedule", lambda _: None, (scheduler,), {})
        own = type(scheduler)
        assert all(
            getattr(scheduler, name) == expected.get(name, getattr(own, name)) for name in vars(own) if "max" in name
        )
    points.turn(102)  # whether or not anything was ever asked of it besides
    assert set(inside.told(tmp_path).limited) == set(what)


def test_a_limit_that_is_no_lower_changes_nothing_and_is_not_told(module: ModuleType, tmp_path: Path) -> None:
    points, scheduler = module.Points(tmp_path), VllmScheduler()
    inside.ask(tmp_path, {})
    inside.limit(tmp_path, {"chunk": 4096})
    points.turn(101)
    points.call("schedule", lambda _: None, (scheduler,), {})
    points.turn(102)
    assert scheduler.max_num_scheduled_tokens == 2048
    assert not inside.told(tmp_path).limited


def test_one_layer_is_struck_and_no_other(module: ModuleType, tmp_path: Path) -> None:
    points = module.Points(tmp_path)
    calls: list[int] = []
    layers = [object(), object()]

    def forward(layer: object) -> None:
        calls.append(layers.index(layer))

    inside.ask(tmp_path, given(act="repeat", point="operator", role="worker", layer=1, times=4))
    points.turn(101)
    for layer in layers:
        points.call("operator", forward, (layer,), {})
    assert calls == [0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(("act", "knobs"), [("collect", {"objects": 2000}), ("hold", {"ms": 1.0})])
def test_pulses_come_in_the_process_of_the_role_alone(
    module: ModuleType, tmp_path: Path, act: str, knobs: dict[str, Any]
) -> None:
    points = module.Points(tmp_path)
    inside.ask(tmp_path, given(act=act, role="worker", point="", every_s=0.0, **knobs))
    points.turn(101)
    points.pulse(time.time_ns())
    points.call("schedule", Step.run, (Step(), 1), {})
    points.pulse(time.time_ns())
    points.call("step", Step.run, (Step(), 1), {})
    points.turn(102)
    points.pulse(time.time_ns())
    points.pulse(FOREVER)
    inside.ask(tmp_path, {})
    points.turn(103)
    points.turn(104)
    ((first, second),) = inside.told(tmp_path).delays.values()
    assert first.delay > 0
    assert second.start == FOREVER


@pytest.mark.parametrize(("rank", "struck"), [(None, [0, 1]), (1, [1]), (0, [0])])
def test_a_rank_that_is_named_is_struck_alone_and_ranks_say_which_they_are(
    module: ModuleType, tmp_path: Path, rank: int | None, struck: list[int]
) -> None:
    ranks = [module.Points(tmp_path), module.Points(tmp_path)]
    steps = [SimpleNamespace(rank=0), SimpleNamespace(rank=1)]
    inside.ask(tmp_path, given(act="wait", point="step", role="worker", rank=rank, ms=0.1))
    done: list[list[str]] = []
    for points, step in zip(ranks, steps, strict=True):
        points.call("step", lambda _: None, (step,), {})
        points.turn(101)
        points.call("step", lambda _: None, (step,), {})
        done.append([line for line in points._lines if line.startswith("did")])
    assert [number for number, lines in enumerate(done) if lines] == struck
    assert inside.told(tmp_path).processes.keys() == {"worker", "worker_1"}


def test_a_control_file_that_is_no_json_or_not_there_does_nothing(module: ModuleType, tmp_path: Path) -> None:
    points = module.Points(tmp_path)
    points.turn(101)
    (tmp_path / "control").write_text('{"act": "wa')
    points.turn(102)
    assert not points.doing


def test_every_point_of_the_table_is_hooked_in_both_engines(module: ModuleType, tmp_path: Path) -> None:
    module.install.__globals__["Points"] = lambda folder: SimpleNamespace(start=lambda: None, call=None)
    module.install(str(tmp_path))
    hooked = {(place[0].partition(".")[0], place[3]) for place in module.PLACES}
    assert {point for _, point in hooked} == set(POINTS)
    assert {point for engine, point in hooked if engine == "transformers"} == set(POINTS)
    assert set(sys.modules["teller_shim_imports"].hooks) == {place[0] for place in module.PLACES}
    assert {module.ROLES[point] for point in module.ROLES} == set(POINTS.values())


def test_a_hooked_function_is_called_as_before(module: ModuleType, tmp_path: Path) -> None:
    owner = type("Owner", (), {"run": lambda self, value, *, more=0: value + more})
    module._wrap(module.Points(tmp_path), "Owner", "run", "step", SimpleNamespace(Owner=owner))
    assert owner().run(1, more=2) == 3  # pyright: ignore[reportAttributeAccessIssue]


def test_half_a_line_of_the_log_is_left_for_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("7 is worker 9\n7 did 100 150\n7 did 200 2")
    said = inside.told(tmp_path)
    assert said.processes == {"worker": (7, 9)}
    assert said.delays == {7: [(100, 150, 50)]}
    assert json.loads(json.dumps(said.delays)) == {"7": [[100, 150, 50]]}
