"""The recorder inside other programs: it sees, it follows children, and it never gets in their way."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from teller_core.collect.environment import SHIM
from tests.core.collect.children import CHILDREN, without_reason
from tests.waiting import until

FAKE_VLLM = {
    "vllm/__init__.py": '__version__ = "{version}"\n',
    "vllm/v1/__init__.py": "",
    "vllm/v1/core/__init__.py": "",
    "vllm/v1/core/sched/__init__.py": "",
    "vllm/v1/core/sched/scheduler.py": """
from types import SimpleNamespace as Made
class Scheduler:
    current_step = 7
    requests = {"a": Made(num_preemptions=0, num_prompt_tokens=20,
                          prefill_stats=Made(num_local_cached_tokens=12, num_external_cached_tokens=4))}
    def get_request_counts(self):
        return 2, 3
    def get_kv_cache_usage(self):
        return 0.25
    def schedule(self, fail=False, odd=False):
        if fail:
            raise KeyError("its own error")
        if odd:
            return "not what the hook knows"
        new = [Made(req_id="a", prompt_token_ids=[1] * 20, num_computed_tokens=16)]
        again = Made(req_ids=["b"], num_computed_tokens=[33], resumed_req_ids={"b"})
        return Made(scheduled_new_reqs=new, scheduled_cached_reqs=again, num_scheduled_tokens={"a": 4, "b": 1},
                    preempted_req_ids={"c"}, finished_req_ids={"d"}, scheduled_spec_decode_tokens={"b": [7, 8]})
""",
}


def _fake_vllm(folder: Path, version: str = "0.32.1+cpu") -> Path:
    """A package with the shape of vLLM's scheduler."""
    for name, text in FAKE_VLLM.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("{version}", version))
    return folder


def _run(
    code: str,
    cap: Path | None,
    path: Sequence[Path] = (),
    flags: Sequence[str] = (),
    python: str = sys.executable,
) -> subprocess.CompletedProcess[str]:
    """Run ``code`` with the recorder on the path, recording into ``cap`` where one is given."""
    return subprocess.run(
        [python, *flags, "-c", code],
        env=_environment(cap, path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _environment(cap: Path | None, path: Sequence[Path] = ()) -> dict[str, str]:
    """The environment that switches the recorder on."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "TELLER_CAPTURE_DIR")}
    variables["PYTHONPATH"] = os.pathsep.join(map(str, [SHIM, *path]))
    return variables if cap is None else variables | {"TELLER_CAPTURE_DIR": str(cap)}


def _events(cap: Path, name: str = "") -> list[dict[str, Any]]:
    """All events of a capture, or those called ``name``. Every line must be whole."""
    lines = [line for file in sorted(cap.glob("host-*.jsonl")) for line in file.read_text().splitlines() if line]
    found: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [event for event in found if name in ("", event["name"])]


SAID = "import teller_shim_events; teller_shim_events.instant('said')\n"
"""A process that has nothing to say leaves no file."""
SCHEDULE = "from vllm.v1.core.sched.scheduler import Scheduler\nScheduler().schedule()\n"
INERT = "import gc, sys, threading\nprint([m for m in sys.modules if 'teller' in m], gc.callbacks, threading.active_count())"


def test_without_its_variable_nothing_is_loaded(tmp_path: Path) -> None:
    assert _run(INERT, None).stdout == "[] [] 1\n"


@pytest.mark.parametrize("flags", [("-S",), ("-E",), ("-I",)])
def test_where_python_is_told_to_ignore_it_the_program_runs_as_ever(tmp_path: Path, flags: tuple[str, ...]) -> None:
    assert _run(INERT, tmp_path / "cap", flags=flags).stdout == "[] [] 1\n"
    assert not (tmp_path / "cap").exists()


@pytest.mark.parametrize("recording", [False, True])
def test_the_sitecustomize_that_it_hides_still_runs(tmp_path: Path, recording: bool) -> None:
    (tmp_path / "sitecustomize.py").write_text("value = 41\n")
    done = _run(
        "import sitecustomize; print(sitecustomize.value + 1)", tmp_path / "cap" if recording else None, [tmp_path]
    )
    assert (done.stdout, done.stderr) == ("42\n", "")


def test_two_recorders_on_one_path_do_not_call_each_other_for_ever(tmp_path: Path) -> None:
    shutil.copytree(SHIM, tmp_path / "other", ignore=shutil.ignore_patterns("__pycache__"))
    done = _run("print('ran')", tmp_path / "cap", [tmp_path / "other"])
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_an_error_of_the_hidden_one_is_reported_by_python_itself(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('theirs')\n")
    done = _run(SAID + "print('ran')", tmp_path / "cap", [tmp_path])
    assert done.stdout == "ran\n"
    assert "Error in sitecustomize" in done.stderr
    assert [event["name"] for event in _events(tmp_path / "cap", "process")] == ["process"]


def test_a_process_says_who_it_is_without_its_options(tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    script.write_text(SAID)
    command = [sys.executable, str(script), "model", "--api-key", "SECRET"]
    subprocess.run(command, env=_environment(tmp_path / "cap"), check=True, capture_output=True, timeout=60)
    text = next((tmp_path / "cap").glob("host-*.jsonl")).read_text()
    assert "SECRET" not in text
    assert json.loads(text.splitlines()[0])["argv"] == ["serve.py", "model"]


def test_clocks_are_anchored_at_start_and_end(tmp_path: Path) -> None:
    _run(SAID, tmp_path)
    start, end = _events(tmp_path, "process")[0]["anchor"], _events(tmp_path, "process_end")[0]["anchor"]
    assert all(after > before for before, after in zip(start, end, strict=True))


def test_a_decision_of_the_scheduler_is_recorded_whole(tmp_path: Path) -> None:
    _run(SCHEDULE, tmp_path / "cap", [_fake_vllm(tmp_path / "lib")])
    (event,) = _events(tmp_path / "cap", "vllm.schedule")
    assert event["ph"] == "X"
    assert event["dur"] > 0
    assert event["tokens"] == {"a": 4, "b": 1}
    assert event["prompt"] == {"a": 20}
    assert event["computed"] == [16, 33]
    assert (event["cached"], event["remote"]) == ({"a": 12}, {"a": 4})
    assert (event["n"], event["running"], event["waiting"], event["kv"]) == (7, 2, 3, 0.25)
    assert (event["preempted"], event["finished"], event["resumed"], event["drafted"]) == (
        ["c"],
        ["d"],
        ["b"],
        {"b": 2},
    )


def test_an_unknown_version_is_left_alone_and_the_bundle_says_so(tmp_path: Path) -> None:
    code = SCHEDULE + "print(hasattr(Scheduler.schedule, '__wrapped__'))"
    done = _run(code, tmp_path / "cap", [_fake_vllm(tmp_path / "lib", "0.99.0")])
    assert done.stdout == "False\n"
    (event,) = _events(tmp_path / "cap", "hooks_disabled")
    assert (event["package"], event["version"], event["tested"]) == ("vllm", "0.99.0", ["0.32"])


def test_a_hook_that_fails_costs_the_program_nothing_and_is_counted(tmp_path: Path) -> None:
    code = "from vllm.v1.core.sched.scheduler import Scheduler\nprint(Scheduler().schedule(odd=True))"
    done = _run(code, tmp_path / "cap", [_fake_vllm(tmp_path / "lib")])
    assert (done.stdout, done.stderr) == ("not what the hook knows\n", "")
    (event,) = _events(tmp_path / "cap", "hook_error")
    assert (event["mod"], event["err"], event["count"]) == ("vllm.schedule", "AttributeError", 1)
    assert len(_events(tmp_path / "cap", "vllm.schedule")) == 1


def test_an_error_of_the_program_passes_through(tmp_path: Path) -> None:
    code = """
from vllm.v1.core.sched.scheduler import Scheduler
try:
    Scheduler().schedule(fail=True)
except KeyError as error:
    print(error.args[0])
"""
    assert _run(code, tmp_path / "cap", [_fake_vllm(tmp_path / "lib")]).stdout == "its own error\n"
    assert _events(tmp_path / "cap", "vllm.schedule")[0]["err"] == "KeyError"


def test_a_hooked_module_keeps_its_loader(tmp_path: Path) -> None:
    code = "import inspect, vllm.v1.core.sched.scheduler as m\nprint(type(m.__loader__).__name__, len(inspect.getsource(m)) > 99)"
    assert _run(code, tmp_path / "cap", [_fake_vllm(tmp_path / "lib")]).stdout == "SourceFileLoader True\n"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_are_followed_however_they_start(tmp_path: Path, method: str) -> None:
    script = tmp_path / "work.py"
    script.write_text(f"""
import multiprocessing
def work():
    from vllm.v1.core.sched.scheduler import Scheduler
    Scheduler().schedule()
if __name__ == "__main__":
    worker = multiprocessing.get_context({method!r}).Process(target=work)
    worker.start()
    worker.join()
    print(worker.pid)
""")
    command = [sys.executable, str(script)]
    variables = _environment(tmp_path / "cap", [_fake_vllm(tmp_path / "lib")])
    done = subprocess.run(command, env=variables, check=True, capture_output=True, text=True, timeout=60)
    written = (tmp_path / "cap" / f"host-{int(done.stdout)}.jsonl").read_text()
    assert [json.loads(line)["name"] for line in written.splitlines() if "vllm.schedule" in line] == ["vllm.schedule"]


def test_a_killed_process_leaves_whole_lines(tmp_path: Path) -> None:
    code = "from vllm.v1.core.sched.scheduler import Scheduler\nwhile True: Scheduler().schedule()"
    variables = _environment(tmp_path / "cap", [_fake_vllm(tmp_path / "lib")])
    with subprocess.Popen([sys.executable, "-c", code], env=variables) as process:
        file = tmp_path / "cap" / f"host-{process.pid}.jsonl"
        until(lambda: file.exists() and file.read_bytes().count(b"\n") > 500, process)
        process.send_signal(signal.SIGKILL)
    lines = file.read_text().splitlines()
    assert len(lines) > 500
    assert all(json.loads(line)["t"] > 0 for line in lines[:-1])


def test_a_long_collection_is_recorded_and_a_short_one_is_not(tmp_path: Path) -> None:
    _run("import gc\nkept = [[i] for i in range(500_000)]\ngc.collect()\ndel kept\ngc.collect(0)", tmp_path)
    full = [event for event in _events(tmp_path, "gc") if event["gen"] == 2]
    assert full
    assert all(event["ph"] == "G" and event["dur"] >= 1_000_000 for event in _events(tmp_path, "gc"))


def test_a_folder_that_cannot_be_written_does_not_stop_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = _run("print('ran')", tmp_path / "file" / "cap")
    assert (done.stdout, done.stderr, done.returncode) == ("ran\n", "", 0)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_what_a_full_disk_loses_is_counted(tmp_path: Path) -> None:
    code = """
import os, teller_shim_events as e, teller_shim_ring as r
e.instant("kept")
e.flush()
good = r._state["fd"]
r._state["fd"] = os.open("/dev/full", os.O_WRONLY)
mine, r._state["file"] = r._state["file"], r._identity(r._state["fd"])
for _ in range(7): e.instant("lost")
e.flush()
r._state.update(fd=good, file=mine)
"""
    assert _run(code, tmp_path).returncode == 0
    (event,) = [event for event in _events(tmp_path, "hook_error") if event["mod"] == "events_lost"]
    assert event["count"] >= 7


def test_ranges_of_the_nvtx_package_are_recorded_without_a_library(tmp_path: Path) -> None:
    pytest.importorskip("nvtx")
    code = """
import nvtx
@nvtx.annotate("decorated")
def work(): return 5
with nvtx.annotate("outer", domain="d"):
    nvtx.push_range("inner"); nvtx.pop_range(); nvtx.mark("here"); print(work())
"""
    assert _run(code, tmp_path).stdout == "5\n"
    ranges = {event["name"]: event for event in _events(tmp_path) if event["ph"] == "N"}
    assert set(ranges) == {"decorated", "outer", "inner"}
    assert ranges["outer"]["domain"] == "d"
    assert ranges["outer"]["dur"] >= ranges["inner"]["dur"]
    assert [event["name"] for event in _events(tmp_path) if event["ph"] == "M"] == ["here"]


def test_children_that_record_nothing_leave_no_file(tmp_path: Path) -> None:
    done = _run(SAID + CHILDREN, tmp_path)
    assert without_reason(tmp_path, done.stdout) == []
    assert _events(tmp_path, "said")


def test_a_process_that_lives_on_is_in_the_bundle_though_it_says_nothing(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], env=_environment(tmp_path), stdin=subprocess.PIPE)
    try:
        file = tmp_path / f"host-{process.pid}.jsonl"
        until(lambda: file.exists() and file.stat().st_size, process)
    finally:
        process.communicate(b"\n", timeout=60)
    assert json.loads(file.read_text().splitlines()[0])["name"] == "process"


RING = """
import os, time, teller_shim_events as e
for number in range(4000):
    e.instant("filler", number=number, text="x" * 60)
    if number % 100 == 0: e.flush()
e.flush()
"""


def test_a_ring_keeps_the_newest_segments_within_its_bytes(tmp_path: Path) -> None:
    variables = _environment(tmp_path) | {"TELLER_CAPTURE_BYTES": "160000"}
    subprocess.run([sys.executable, "-c", RING], env=variables, check=True, timeout=60)
    files = sorted(tmp_path.glob("host-*-????.jsonl"))
    assert 2 <= len(files) <= 8
    assert all(json.loads(file.read_text().splitlines()[0])["name"] == "process" for file in files)
    assert sum(file.stat().st_size for file in files) <= 160_000
    numbers = [event["number"] for event in _events(tmp_path, "filler")]
    assert numbers == list(range(numbers[0], 4000))


def test_a_ring_forgets_what_is_too_old(tmp_path: Path) -> None:
    code = """
import time, teller_shim_events as e
e.instant("old"); e.flush()
while not [1 for t in [time.monotonic()] if t > e.ring._state["begun"] + 0.3]: pass
e.instant("new"); e.flush()
end = time.monotonic() + 2.1
while time.monotonic() < end: pass
e.flush()
"""
    subprocess.run(
        [sys.executable, "-c", code],
        env=_environment(tmp_path) | {"TELLER_CAPTURE_SECONDS": "2"},
        check=True,
        timeout=60,
    )
    assert not _events(tmp_path, "old")


def test_what_the_recorder_costs_is_told(tmp_path: Path) -> None:
    code = "from vllm.v1.core.sched.scheduler import Scheduler\nfor _ in range(500): Scheduler().schedule()"
    _run(code, tmp_path / "cap", [_fake_vllm(tmp_path / "lib")])
    cost = _events(tmp_path / "cap", "shim_cost")[-1]
    assert cost["calls"] == 500
    assert 0 < cost["hooks_ns"] < cost["cpu_ns"] == cost["hooks_ns"] + cost["thread_ns"]


def test_a_program_that_waits_for_all_its_threads_ends(tmp_path: Path) -> None:
    code = "import threading as t\n[each is t.main_thread() or each.join() for each in t.enumerate()]\nprint(t.enumerate())"
    done = _run(code, tmp_path)
    assert done.stdout.startswith("[<_MainThread(MainThread, started ")
    assert done.stdout.count("started") == 1


def test_a_program_that_closes_every_file_and_opens_its_own_finds_nothing_of_ours_in_them(tmp_path: Path) -> None:
    (tmp_path / "cap").mkdir()
    code = f"""
import gc, os, sys, time
slow = [[] for _ in range(2_000_000)]
gc.collect()
while not os.listdir({str(tmp_path / "cap")!r}):
    time.sleep(0.01)
os.closerange(3, 1024)
own = [os.open({str(tmp_path)!r} + "/own" + str(n), os.O_CREAT | os.O_RDWR) for n in range(300)]
gc.collect()
"""
    done = _run(code, tmp_path / "cap")
    assert (done.returncode, done.stderr) == (0, "")
    assert not any(path.stat().st_size for path in tmp_path.glob("own*"))
    assert _events(tmp_path / "cap", "process_end")


def test_what_cannot_be_said_in_json_costs_one_line_and_is_counted(tmp_path: Path) -> None:
    code = """
import sys, teller_shim_events as events
class Odd:
    def __str__(self): raise ValueError
sys.argv = [3, None]
events.instant("odd", value=Odd())
events.instant("good", value=1)
"""
    assert _run(code, tmp_path).returncode == 0
    assert [event["value"] for event in _events(tmp_path, "good")] == [1]
    assert {event["mod"] for event in _events(tmp_path, "hook_error")} >= {"line", "argv", "events_lost"}
