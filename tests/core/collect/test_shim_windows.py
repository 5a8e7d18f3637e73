"""Windows of the torch profiler inside another program: as long as asked, beside no other profiler, no lock held."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import teller_core.collect
from teller_core.collect.windows.control import Window, ask

pytest.importorskip("torch")
pytestmark = pytest.mark.slow
SHIM = Path(teller_core.collect.__file__).parent / "shim"

START = """
import json, os, sys, threading, time
cap = os.environ["TELLER_CAPTURE_DIR"]
def seen(name):
    return [json.loads(line) for file in os.listdir(cap) if file.startswith("host-") and file.endswith(".jsonl")
            for line in open(os.path.join(cap, file)) if '"name": "%s"' % name in line and line.endswith("}\\n")]
def until(name, work=lambda: time.sleep(0.01)):
    while not seen(name):
        work()
def ask(words, when=None):
    with open(os.path.join(cap, ".asked"), "w") as file:
        file.write(words)
    os.utime(os.path.join(cap, ".asked"), when)
    os.replace(os.path.join(cap, ".asked"), os.path.join(cap, "PROFILE"))
def operators():
    (torch.ones(16, 16) @ torch.ones(16, 16)).sum()
"""
ENGINE = {
    "vllm/__init__.py": '__version__ = "0.32.0"\n',
    "vllm/v1/__init__.py": "",
    "vllm/v1/worker/__init__.py": "",
    "vllm/v1/worker/gpu_worker.py": """
import torch
class Worker:
    def execute_model(self, scheduler_output):
        torch.ones(8) + 1
        return scheduler_output
""",
}


def _run(tmp_path: Path, code: str, words: str = "", first: str = "import torch\n") -> subprocess.CompletedProcess[str]:
    """Run ``code`` under the recorder, with an engine of vLLM's shape on the path, a window asked for beforehand."""
    cap = tmp_path / "cap"
    cap.mkdir()
    for name, text in ENGINE.items():
        path = tmp_path / "lib" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if words:
        (cap / "PROFILE").write_text(words)
    variables = {key: value for key, value in os.environ.items() if not key.startswith("TELLER_")}
    variables |= {
        "PYTHONPATH": os.pathsep.join([str(SHIM), str(tmp_path / "lib")]),
        "TELLER_CAPTURE_DIR": str(cap),
        "OMP_NUM_THREADS": "1",
    }
    return subprocess.run(
        [sys.executable, "-c", first + START + code],
        env=variables,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def _events(tmp_path: Path, name: str) -> list[dict[str, Any]]:
    lines = [line for file in sorted((tmp_path / "cap").glob("host-*.jsonl")) for line in file.read_text().splitlines()]
    return [event for event in map(json.loads, lines) if event["name"] == name]


def _traces(tmp_path: Path) -> list[list[str]]:
    """The names in every trace, in order of time."""
    paths = sorted((tmp_path / "cap").glob("torch-*.json"))
    return [[event.get("name", "") for event in json.loads(path.read_text())["traceEvents"]] for path in paths]


def test_a_window_ends_after_its_steps_and_leaves_the_engine_as_it_was(tmp_path: Path) -> None:
    code = """
from vllm.v1.worker.gpu_worker import Worker
before = Worker.execute_model
ask("600 steps=5 events=100000000")
until("profile_start")
for _ in range(5):
    assert Worker().execute_model(7) == 7
until("profile_stop")
assert Worker().execute_model(7) == 7
print(Worker.execute_model is before)
"""
    done = _run(tmp_path, code)
    assert done.stdout == "True\n", done.stderr
    (stop,) = _events(tmp_path, "profile_stop")
    (names,) = _traces(tmp_path)
    assert stop["steps"] == names.count("aten::add") == 5
    assert abs(stop["events"] - len(names)) < 50


def _window_of(tmp_path: Path, code: str) -> tuple[dict[str, Any], list[str]]:
    """Run ``code``: how its one window stopped, and the names in its trace."""
    done = _run(tmp_path, code)
    assert done.returncode == 0, done.stderr
    (stop,) = _events(tmp_path, "profile_stop")
    (names,) = _traces(tmp_path)
    return stop, names


def test_what_belongs_to_the_last_step_and_comes_after_it_is_in_the_window(tmp_path: Path) -> None:
    code = """
from vllm.v1.worker.gpu_worker import Worker
ask("600 steps=2")
until("profile_start")
for _ in range(2):
    Worker().execute_model(7)
time.sleep(0.02)
torch.ones(3).cos()
Worker().execute_model(7)
until("profile_stop")
"""
    stop, names = _window_of(tmp_path, code)
    assert stop["steps"] == 2
    assert "aten::cos" in names


def test_a_step_that_began_before_the_profiler_ran_is_not_counted(tmp_path: Path) -> None:
    code = """
import teller_shim_kineto
from vllm.v1.worker.gpu_worker import Worker
start = teller_shim_kineto.start
def start_late(*args):
    Worker().execute_model(7)
    return start(*args)
teller_shim_kineto.start = start_late
ask("600 steps=2")
until("profile_start")
for _ in range(2):
    Worker().execute_model(7)
until("profile_stop")
"""
    stop, names = _window_of(tmp_path, code)
    assert stop["steps"] == names.count("aten::add") == 2


def test_a_step_that_serves_nobody_is_none_of_those_that_were_asked_for(tmp_path: Path) -> None:
    code = """
from types import SimpleNamespace
from vllm.v1.worker.gpu_worker import Worker
ask("600 steps=2")
until("profile_start")
for tokens in (0, 0, 0, 4, 0, 1):
    Worker().execute_model(SimpleNamespace(total_num_scheduled_tokens=tokens))
Worker().execute_model(scheduler_output=SimpleNamespace(total_num_scheduled_tokens=1))
until("profile_stop")
"""
    stop, names = _window_of(tmp_path, code)
    assert stop["steps"] == 2 and names.count("aten::add") >= 6


def test_processes_open_a_window_at_the_time_that_they_are_told(tmp_path: Path) -> None:
    code = """
at = time.time_ns() + 1_500_000_000
child = os.fork()
if child:
    ask("600 at=%d" % at)
while len(seen("profile_start")) < 2:
    time.sleep(0.01)
if child:
    print(at)
"""
    done = _run(tmp_path, code)
    at = int(done.stdout)
    late = [event["t"] - event["cost"] - at for event in _events(tmp_path, "profile_start")]
    assert len(late) == 2
    assert min(late) >= 0
    assert (
        max(late) < 240_000_000
    )  # less than the turns at which processes look: whoever opens at once would differ by one


def test_a_window_that_is_closed_before_its_time_never_opens(tmp_path: Path) -> None:
    code = """
ask("600 at=%d" % (time.time_ns() + 50_000_000_000))
while teller_shim_profile._state["thread"] is None:
    time.sleep(0.01)
os.unlink(os.path.join(cap, "PROFILE"))
until("profile_refused")
ask("600")
until("profile_start")
"""
    done = _run(tmp_path, code, first="import torch\nimport teller_shim_profile\n")
    assert done.returncode == 0, done.stderr
    assert [event["reason"] for event in _events(tmp_path, "profile_refused")] == ["closed before it opened"]
    assert len(_events(tmp_path, "profile_start")) == 1


def test_a_window_ends_after_about_so_many_events(tmp_path: Path) -> None:
    code = """
while sum(stop["events"] for stop in seen("profile_stop")) < 3000:
    operators()
    time.sleep(0.001)
time.sleep(0.5)
"""
    done = _run(tmp_path, code, "600 events=3000")
    assert done.returncode == 0, done.stderr
    assert 3000 <= sum(stop["events"] for stop in _events(tmp_path, "profile_stop")) < 60_000


def test_stopping_leaves_the_interpreter_lock_to_others(tmp_path: Path) -> None:
    code = """
import teller_shim_kineto
assert teller_shim_kineto.can_stop_beside()
turns, watching, before = 0, False, teller_shim_kineto.stop
def stop(*args):
    global watching
    watching = True
    try:
        return before(*args)
    finally:
        watching = False
teller_shim_kineto.stop = stop
def watch():
    global turns
    while True:
        time.sleep(0.001)
        turns += watching
threading.Thread(target=watch, daemon=True).start()
until("profile_start")
for _ in range(6_000):
    operators()
os.unlink(os.path.join(cap, "PROFILE"))
until("profile_stop")
print(turns)
"""
    done = _run(tmp_path, code, "600 reason=call")
    assert done.returncode == 0, done.stderr
    (stop,) = _events(tmp_path, "profile_stop")
    assert stop["cost"] < stop["beside"]
    assert int(done.stdout) > 10


def test_with_an_untested_torch_it_is_stopped_as_torch_does_in_pieces(tmp_path: Path) -> None:
    code = """
torch.__version__ = "2.99.0"
until("profile_stop", operators)
time.sleep(0.5)
"""
    assert _run(tmp_path, code, "60 events=40000").returncode == 0
    stops = _events(tmp_path, "profile_stop")
    assert stops
    assert {stop["beside"] for stop in stops} == {0}
    assert all("aten::matmul" in names for names in _traces(tmp_path)[:1])
    assert not _events(tmp_path, "hook_error")


def test_a_profiler_of_the_program_ends_the_window_first_and_gets_all_its_own(tmp_path: Path) -> None:
    code = """
until("profile_start")
operators()
with torch.autograd.profiler.profile(use_kineto=True) as mine:
    torch.ones(3).cos()
mine.export_chrome_trace(sys.argv[0] + "mine.json")
print(open(sys.argv[0] + "mine.json").read().count("aten::cos"))
""".replace("sys.argv[0]", repr(str(tmp_path) + "/"))
    done = _run(tmp_path, code, "60")
    assert done.stdout == "1\n", done.stderr
    (names,) = _traces(tmp_path)
    assert "aten::matmul" in names
    assert "aten::cos" not in names
    assert not _events(tmp_path, "hook_error")


def test_where_the_program_profiles_itself_no_window_opens(tmp_path: Path) -> None:
    code = """
with torch.autograd.profiler.profile(use_kineto=True) as mine:
    ask("1")
    until("profile_refused")
    torch.ones(3).cos()
print(sum(event.name == "aten::cos" for event in mine.function_events))
"""
    assert _run(tmp_path, code).stdout == "1\n"
    assert [event["reason"] for event in _events(tmp_path, "profile_refused")] == ["another profiler runs"]
    assert not _traces(tmp_path)


def test_a_stop_that_cannot_be_seen_ends_nothing_but_the_window(tmp_path: Path) -> None:
    code = """
until("profile_start")
disable = torch._C._autograd._disable_profiler
disable()
torch.autograd.profiler._run_on_profiler_stop()
os.unlink(os.path.join(cap, "PROFILE"))
until("profile_lost")
print("lives")
"""
    done = _run(tmp_path, code, "600")
    assert done.stdout == "lives\n", done.stderr
    assert not _traces(tmp_path)


def test_a_fork_ends_the_window_before_the_child_exists(tmp_path: Path) -> None:
    code = """
until("profile_start")
operators()
child = os.fork()
if not child:
    torch.ones(3).cos()
    os._exit(7 if torch.autograd.profiler._is_profiler_enabled else 5)
print(os.waitpid(child, 0)[1] >> 8, len(seen("profile_stop")))
"""
    assert _run(tmp_path, code, "60").stdout == "5 1\n"
    (names,) = _traces(tmp_path)
    assert "aten::cos" not in names


def test_processes_of_an_engine_that_compute_nothing_are_left_alone(tmp_path: Path) -> None:
    done = _run(tmp_path, 'import vllm\nask("60")\nuntil("profile_refused")\n')
    assert done.returncode == 0, done.stderr
    assert [event["reason"] for event in _events(tmp_path, "profile_refused")] == ["no steps run here"]


def test_a_window_that_was_asked_for_long_ago_is_not_opened_by_a_new_process(tmp_path: Path) -> None:
    code = 'ask("1", (1, 1))\ntime.sleep(0.5)\nask("0.2")\nuntil("profile_stop")\n'
    assert _run(tmp_path, code).returncode == 0
    assert len(_events(tmp_path, "profile_start")) == 1


def test_a_trace_that_the_disk_cut_is_not_kept(tmp_path: Path) -> None:
    code = """
import teller_shim_profile
for text in ("", "{", '{"traceEvents": [' + " " * 40, '{"traceEvents": []' + " " * 4 + "}\\n"):
    path = os.path.join(cap, "x")
    with open(path, "w") as file:
        file.write(text)
    print(teller_shim_profile._complete(path), os.path.exists(path))
"""
    assert _run(tmp_path, code, first="").stdout.splitlines() == ["False False"] * 3 + ["True True"]


def test_the_words_of_the_control_file_are_those_that_the_recorder_reads(tmp_path: Path) -> None:
    ask(tmp_path, Window(0.3, 7, 900, shapes=True, at=17), "signal")
    words = (tmp_path / "PROFILE").read_text()
    code = f"import teller_shim_profile\nprint(json.dumps(teller_shim_profile._bounds({words!r}.split())))\n"
    bounds = {"seconds": 0.3, "steps": 7, "events": 900, "at": 17, "reason": "signal", "shapes": True, "host": True}
    assert json.loads(_run(tmp_path, code, first="").stdout) == bounds
    assert time.time_ns() > (tmp_path / "PROFILE").stat().st_mtime_ns
