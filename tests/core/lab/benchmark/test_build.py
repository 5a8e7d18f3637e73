"""Building the benchmark: what is lacking is recorded and packed, and whatever ends it, it goes on where it was."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from teller_core.errors import InputError, LimitError, MissingExtra, OutOfRoom, TellerError
from teller_core.lab.benchmark import build as building
from teller_core.lab.benchmark.build import Built, build
from teller_core.lab.benchmark.lives import Kind, LifePlan
from teller_core.lab.benchmark.pack import lives
from teller_core.lab.benchmark.telling import lines_of_built, report_of_built
from tests.core.lab.benchmark.told import block, calm, strike, window
from tests.waiting import alive, until

RECORDED = Path(__file__).parents[3] / "data" / "captures" / "tfserve_shim"
PLANS = [
    LifePlan(side, Kind("transformers"), "plain", "steady", seed, (("host_stall", "strong"),))
    for seed, side in enumerate(("train", "test", "train"))
]
BLOCK = block(
    [strike(), strike("gc_pause", "host.gc_pause", rejected="too small")], [calm(0, ["a"]), window(1, 0, ["b"])]
)


class Recorder:
    """Records what was recorded before; fails where it is told to."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.fails: dict[int, list[Exception]] = {}

    def __call__(self, plan: LifePlan, folder: Path, vllm: Path | None, progress: Callable[[str], None]) -> None:
        self.asked.append(plan.seed)
        folder.mkdir()
        shutil.copytree(RECORDED, folder / "bundle-1")
        if waiting := self.fails.get(plan.seed):
            raise waiting.pop(0)
        (folder / "truth.jsonl").write_text(json.dumps(asdict(BLOCK)) + "\n")


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def built(
    recorder: Recorder, folder: Path, plans: list[LifePlan] = PLANS, told: list[str] | None = None
) -> list[Built]:
    said = [] if told is None else told
    return build(plans, folder / "recordings", folder / "packed", said.append, record=recorder)


def test_what_is_lacking_is_recorded_and_packed_and_nothing_else(recorder: Recorder, tmp_path: Path) -> None:
    told: list[str] = []
    first = built(recorder, tmp_path, PLANS[:2], told)
    assert [(one.side, one.moved, one.new, one.failed) for one in first] == [
        ("train", 1, True, None),
        ("test", 1, True, None),
    ]
    assert first[0].rejected == [("gc_pause", "strong", "too small")]
    assert {life.name for life in lives(tmp_path / "packed")} == {plan.name for plan in PLANS[:2]}
    assert any("rejected gc_pause, strong: too small" in line for line in told)
    assert [one.new for one in built(recorder, tmp_path)] == [False, False, True]
    assert recorder.asked == [0, 1, 2]
    life = next(life for life in lives(tmp_path / "packed") if life.name == PLANS[0].name)
    assert (life.about["side"], life.about["kind"]["engine"], life.about["seed"]) == ("train", "transformers", 0)
    report = report_of_built(built(recorder, tmp_path), tmp_path / "packed")
    assert [line.new for line in report.lives] == [False] * 3
    assert lines_of_built(report)[-1].startswith("3 of 3 lives are there, with 3 episodes")


def test_what_was_recorded_is_packed_again_without_a_server(recorder: Recorder, tmp_path: Path) -> None:
    built(recorder, tmp_path)
    shutil.rmtree(tmp_path / "packed")
    assert all(one.new for one in built(recorder, tmp_path))
    assert recorder.asked == [0, 1, 2]


def test_a_life_that_fails_is_tried_again_then_told_and_left_out(recorder: Recorder, tmp_path: Path) -> None:
    gone = TellerError("The lab's service", "it did not come up", "Read server.log in its bundle")
    recorder.fails = {0: [gone], 1: [gone, gone]}
    told: list[str] = []
    found = built(recorder, tmp_path, told=told)
    assert [one.failed is None for one in found] == [True, False, True]
    assert recorder.asked == [0, 0, 1, 1, 2]
    assert any("given up: The lab's service: it did not come up" in line for line in told)
    report = report_of_built(found, tmp_path / "packed")
    assert "2 of 3 lives are there" in lines_of_built(report)[-1]
    assert built(recorder, tmp_path)[1].failed is None


@pytest.mark.parametrize("kind", [MissingExtra, OutOfRoom])
def test_what_no_second_try_can_change_ends_it(recorder: Recorder, tmp_path: Path, kind: type[TellerError]) -> None:
    recorder.fails = {0: [kind("It", "it is not there", "Get it")]}
    with pytest.raises(kind):
        built(recorder, tmp_path)
    assert recorder.asked == [0]


def test_it_stays_within_its_bounds(recorder: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "MOST_BYTES", 10)
    with pytest.raises(LimitError, match="The benchmark: it takes"):
        built(recorder, tmp_path)
    monkeypatch.setattr(building, "LEAST_FREE", 1 << 62)
    with pytest.raises(OutOfRoom, match="bytes are free"):
        built(recorder, tmp_path, PLANS[2:])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="it is a file"):
        build(PLANS, tmp_path / "file", tmp_path / "packed", print, record=recorder)


def test_a_life_of_two_starts_is_none(recorder: Recorder, tmp_path: Path) -> None:
    built(recorder, tmp_path, PLANS[:1])
    shutil.rmtree(tmp_path / "packed")
    (tmp_path / "recordings" / PLANS[0].name / "bundle-2").mkdir()
    assert "2 recordings" in (built(recorder, tmp_path, PLANS[:1])[0].failed or "")


KILLED = """
import os, signal, sys, time
from pathlib import Path
from tests.core.lab.benchmark.test_build import PLANS, Recorder
from teller_core.lab.benchmark import build as building, pack
folder, where = Path(sys.argv[1]), sys.argv[2]

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

class Dying(Recorder):
    def __call__(self, plan, folder, vllm, progress):
        super().__call__(plan, folder, vllm, progress)
        if where == "recording":
            die()

if where == "packing":
    building.pack = die
if where == "writing":
    Path.replace = die
if where == "naming":
    Path.rename = die
building.build(PLANS[:1], folder / "recordings", folder / "packed", print, record=Dying())
"""


@pytest.mark.parametrize("where", ["recording", "naming", "packing", "writing"])
def test_killed_at_any_moment_it_goes_on(recorder: Recorder, tmp_path: Path, where: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path), where], check=False, capture_output=True, text=True
    )
    assert done.returncode == -9, done.stderr
    assert lives(tmp_path / "packed") == []
    (one,) = built(recorder, tmp_path, PLANS[:1])
    assert (one.failed, one.new) == (None, True)
    assert len(recorder.asked) == (1 if where in ("recording", "naming") else 0)
    assert [life.name for life in lives(tmp_path / "packed")] == [PLANS[0].name]


def test_what_a_killed_build_left_running_is_ended(recorder: Recorder, tmp_path: Path) -> None:
    part = tmp_path / "recordings" / f".{PLANS[0].name}"
    (part / "bundle-1" / "cap").mkdir(parents=True)
    wait = [sys.executable, "-c", "import time; time.sleep(600)"]
    cap = (part / "bundle-1" / "cap").resolve()
    left = subprocess.Popen(wait, env={**os.environ, "TELLER_CAPTURE_DIR": str(cap)}, start_new_session=True)
    other = subprocess.Popen(
        wait, env={**os.environ, "TELLER_CAPTURE_DIR": f"{part}-other/cap"}, start_new_session=True
    )
    try:
        for each in (left, other):  # until then it has our own environment
            until(lambda pid=each.pid: b"600" in Path(f"/proc/{pid}/cmdline").read_bytes())
        built(recorder, tmp_path, PLANS[:1])
        assert left.wait(10) == -9
        assert alive(other.pid)
    finally:
        for each in (left, other):
            each.kill()
            each.wait()
