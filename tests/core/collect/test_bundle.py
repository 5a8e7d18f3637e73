"""Somebody's command under the recorder: what the folder holds afterwards, and that nothing of it stays behind."""

import gzip
import json
import sys
import time
from pathlib import Path

import pytest

from teller_core.collect import bundle
from teller_core.collect.bundle import engine_of, events, record
from teller_core.collect.proc import family
from teller_core.collect.windows.control import Window, ask, close
from teller_core.errors import InputError
from tests.waiting import alive, until

QUIET = [sys.executable, "-c", "print('hello')"]


def test_a_command_leaves_its_output_and_what_it_was(tmp_path: Path) -> None:
    before = time.time_ns()
    with record(QUIET, tmp_path / "b") as service:
        service.process.wait()
    about = json.loads((tmp_path / "b" / "bundle.json").read_text())
    assert (tmp_path / "b" / "server.log").read_text() == "hello\n"
    assert not list(service.cap.glob("host-*"))  # it had nothing to say
    assert before < about["start_ns"] < about["stop_ns"]
    assert (about["schema"], about["exit"], len(about["anchors"])) == (2, 0, 2)
    assert about["command"] == Path(sys.executable).name


def test_a_bundle_can_be_read_while_its_command_still_runs(tmp_path: Path) -> None:
    with record([sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "b") as service:
        about = json.loads((tmp_path / "b" / "bundle.json").read_text())
        assert "stop_ns" not in about
        until(lambda: events(service.cap, "process"), service.process)
    assert json.loads((tmp_path / "b" / "bundle.json").read_text())["exit"] == -15


def test_variables_and_folders_reach_the_command_and_the_recorder_comes_after(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("value = 7\n")
    code = "import os, mine; print(os.environ['GIVEN'], mine.value, os.getcwd())"
    command = [sys.executable, "-c", code]
    with record(command, tmp_path / "b", {"GIVEN": "x"}, [tmp_path], working_folder=tmp_path) as service:
        service.process.wait()
    assert (tmp_path / "b" / "server.log").read_text() == f"x 7 {tmp_path.resolve()}\n"


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("")
    with pytest.raises(InputError, match="not empty"), record(QUIET, tmp_path):
        pass


def test_a_command_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"), record(["no-such-command"], tmp_path / "b"):
        pass


def test_a_command_that_will_not_end_is_made_to_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bundle, "GRACE_S", 0.2)
    code = """
import signal, subprocess, sys, time
signal.signal(15, signal.SIG_IGN)
print(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid, flush=True)
time.sleep(600)
"""
    with record([sys.executable, "-c", code], tmp_path / "b") as service:
        log = tmp_path / "b" / "server.log"
        until(lambda: log.read_text().endswith("\n"), service.process)
        child = int(log.read_text())
        assert family(service.process.pid) == sorted([service.process.pid, child])
    assert service.process.returncode == -9
    until(lambda: not alive(child))


@pytest.mark.parametrize(
    ("command", "engine"),
    [
        (["vllm", "serve", "m"], "vllm"),
        (["/opt/bin/transformers", "serve", "m"], "transformers"),
        (["python", "-m", "sglang.launch_server"], "sglang"),
        (["python", "app.py"], ""),
    ],
)
def test_the_engine_is_told_from_the_command(command: list[str], engine: str) -> None:
    assert engine_of(command) == engine


def _lines(tmp_path: Path) -> int:
    return (tmp_path / "b" / "server.log").read_bytes().count(b"\n")


@pytest.mark.slow
def test_a_profiler_window_covers_all_threads_and_says_what_it_cost(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = """
import threading, torch
def work():
    a = torch.ones(64, 64)
    while True:
        for _ in range(50): a @ a
        print("50 more", flush=True)
threading.Thread(target=work, daemon=True).start()
threading.Event().wait(600)
"""
    with record([sys.executable, "-c", code], tmp_path / "b", {"OMP_NUM_THREADS": "1"}) as service:
        ask(service.cap, Window(600, steps=None, events=None))
        until(lambda: events(service.cap, "profile_start"), service.process)
        before = _lines(tmp_path)
        until(lambda: _lines(tmp_path) >= before + 2, service.process)
        close(service.cap)
        until(lambda: events(service.cap, "profile_stop"), service.process)
        (stop,) = events(service.cap, "profile_stop")
    (trace,) = service.cap.glob("torch-*.json.gz")
    assert trace.name == stop["file"] + ".gz"
    found = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    operators = [event for event in found if event.get("name") == "aten::matmul"]
    assert operators
    assert {event["tid"] for event in operators} != {service.process.pid}
    assert 0 < stop["cost"] <= stop["t"] - stop["begin"] + 1_000_000


@pytest.mark.slow
def test_a_window_still_open_when_the_program_ends_is_not_lost(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = """
import pathlib, sys, torch
cap = pathlib.Path(sys.argv[1])
while not any("profile_start" in file.read_text() for file in cap.glob("host-*")):
    torch.ones(8) + 1
torch.ones(8) + 1
"""
    cap = tmp_path / "b" / "cap"
    with record([sys.executable, "-c", code, str(cap)], tmp_path / "b", {"OMP_NUM_THREADS": "1"}) as service:
        ask(service.cap, Window(600, steps=None, events=None))
        assert service.process.wait() == 0
    (trace,) = cap.glob("torch-*.json.gz")
    assert "aten::add" in gzip.decompress(trace.read_bytes()).decode()
    assert not events(cap, "hook_error")
