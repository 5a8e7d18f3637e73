"""Jobs: real processes that are recorded, ended and never outlived."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from teller_core.collect import jobs
from teller_core.collect.jobs import Job, JobPlan, Told
from tests.waiting import LONGEST_S, alive, until

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are followed on Linux")
LONG_S = 600
ESCAPES = """
import os, subprocess, sys, time
code = "import os, time; os.setsid(); open(%r, 'a').write(str(os.getpid()) + chr(10)); time.sleep(600)" % sys.argv[1]
for _ in range(2):
    subprocess.Popen([sys.executable, "-c", code])
open(sys.argv[1], "a").write(str(os.getpid()) + chr(10))
if "gone" in sys.argv:
    while len(open(sys.argv[1]).readlines()) < 3:
        time.sleep(0.01)
    sys.exit(3)
time.sleep(600)
"""
"""A service whose workers leave its session, and, when told so, outlive it."""


def planned(folder: Path, *words: str, **changes: object) -> JobPlan:
    command = (sys.executable, "-c", *words)
    fields = {
        "kind": "command",
        "folder": folder / "bundle",
        "seconds": LONG_S,
        "most_bytes": 10**8,
        "command": command,
    }
    return JobPlan(**{**fields, **changes})  # pyright: ignore[reportArgumentType]


def over(job: Job) -> Told:
    assert job.done.wait(LONGEST_S)
    return job.told


def pids(path: Path, number: int) -> list[int]:
    until(lambda: path.exists() and len(path.read_text().split()) == number)
    return [int(word) for word in path.read_text().split()]


def test_a_command_that_ends_by_itself_ends_its_job_with_its_status(tmp_path: Path) -> None:
    told = over(jobs.start(planned(tmp_path, "print('served'); raise SystemExit(7)")))
    assert (told.state, told.ended_by, told.exit) == ("ended", "itself", 7)
    bundle = tmp_path / "bundle"
    assert (bundle / "server.log").read_text() == "served\n"
    assert json.loads((bundle / "bundle.json").read_text())["exit"] == 7


def test_time_ends_a_job(tmp_path: Path) -> None:
    told = over(jobs.start(planned(tmp_path, "import time; time.sleep(600)", seconds=1.0)))
    assert (told.state, told.ended_by, told.exit) == ("ended", "time", -signal.SIGTERM)
    assert told.elapsed_s >= 1.0


def test_size_ends_a_job(tmp_path: Path) -> None:
    told = over(
        jobs.start(planned(tmp_path, "import time; print('x' * 3000, flush=True); time.sleep(600)", most_bytes=2000))
    )
    assert (told.state, told.ended_by) == ("ended", "size")
    assert told.bytes > 2000


def test_the_environment_and_the_folder_are_those_of_the_plan(tmp_path: Path) -> None:
    words = "import os; print(os.environ['A'], os.getcwd())"
    over(jobs.start(planned(tmp_path, words, variables={"A": "b"}, working_folder=tmp_path)))
    assert (tmp_path / "bundle" / "server.log").read_text() == f"b {tmp_path}\n"


def test_a_command_that_is_not_there_fails_its_job_in_words(tmp_path: Path) -> None:
    told = over(jobs.start(planned(tmp_path, command=("no-such-command",))))
    assert told.state == "failed"
    assert told.error == "The command to record: no such file or directory. Check its name and that it runs alone."


@pytest.mark.parametrize("how", ["stopped", "gone"])
def test_nothing_of_a_service_outlives_its_job(tmp_path: Path, how: str) -> None:
    """Workers left its session; where it has gone, its orphans are still ended."""
    job = jobs.start(planned(tmp_path, ESCAPES, str(tmp_path / "pids"), how))
    served = pids(tmp_path / "pids", 3)
    if how == "stopped":
        assert all(map(alive, served))
        jobs.stop(job)
    told = over(job)
    assert told.ended_by == ("asked" if how == "stopped" else "itself")
    assert not any(map(alive, served))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_of_a_service_outlives_the_owner_of_its_job(tmp_path: Path, number: int) -> None:
    plan = planned(tmp_path, ESCAPES, str(tmp_path / "pids"))
    code = (
        "import sys, time; from pathlib import Path; from teller_core.collect import jobs; "
        f"jobs.start(jobs.JobPlan('command', Path({str(plan.folder)!r}), {LONG_S}, 10**8, command={plan.command!r})); "
        "time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL) as owner:
        served = pids(tmp_path / "pids", 3)
        owner.send_signal(number)
    until(lambda: not any(map(alive, served)))
    until(lambda: "stop_ns" in json.loads((plan.folder / "bundle.json").read_text()))
    assert len(served) == 3 and not any(map(alive, served))


def test_a_service_does_not_outlive_a_job_that_was_killed(tmp_path: Path) -> None:
    job = jobs.start(planned(tmp_path, "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(600)",
                             str(tmp_path / "pids")))  # fmt: skip
    [served] = pids(tmp_path / "pids", 1)
    until(lambda: job.told.pid == served)
    os.kill(job.process.pid, signal.SIGKILL)
    assert over(job).state == "failed"
    until(lambda: not alive(served))


def test_a_window_is_opened_in_a_capture_that_runs_and_what_is_there_is_copied(tmp_path: Path) -> None:
    source = tmp_path / "running"
    (source / "cap").mkdir(parents=True)
    (source / "bundle.json").write_text('{"schema": 1, "engine": ""}')
    (source / "cap" / "host-7.jsonl").write_text("")
    (source / "cap" / ".unfinished").write_text("x")
    (source / "link").symlink_to("/etc/passwd")
    job = jobs.start(planned(tmp_path, kind="attach", source=source, window_s=30.0, command=()))
    until((source / "cap" / "PROFILE").exists)
    jobs.stop(job)
    told = over(job)
    assert (told.state, told.ended_by, told.error) == ("ended", "asked", "")
    copied = sorted(str(path.relative_to(tmp_path / "bundle")) for path in (tmp_path / "bundle").rglob("*"))
    assert copied == ["bundle.json", "cap", "cap/host-7.jsonl"]
    assert not (source / "cap" / "PROFILE").exists()


def test_what_is_too_large_is_not_copied(tmp_path: Path) -> None:
    source = tmp_path / "running"
    (source / "cap").mkdir(parents=True)
    (source / "bundle.json").write_text("x" * 3000)
    told = over(jobs.start(planned(tmp_path, kind="attach", source=source, seconds=0.2, command=(), most_bytes=2000)))
    assert (told.state, told.error[:30]) == ("failed", "The capture: it is larger than")


def test_where_no_capture_runs_there_is_none_to_attach_to(tmp_path: Path) -> None:
    told = over(jobs.start(planned(tmp_path, kind="attach", source=tmp_path / "none", command=())))
    assert told.error.startswith("The capture to attach to: none is recorded there.")


@contextmanager
def engine(traces: Path) -> Generator[tuple[str, list[str]]]:
    """An engine's endpoint, which writes a profile when it is asked to stop; and what it was asked."""
    asked: list[str] = []

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/stop_profile":
                (traces / f"rank0.{len(asked)}.json").write_text("{}")
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()
            thread.join()


def test_an_engine_profiles_itself_and_only_what_it_wrote_meanwhile_is_copied(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    (traces / "old.json").write_text("{}")
    with engine(traces) as (endpoint, asked):
        plan = planned(tmp_path, kind="endpoint", endpoint=endpoint, source=traces, window_s=0.3, command=())
        told = over(jobs.start(plan))
    assert (told.state, told.ended_by, told.error) == ("ended", "itself", "")
    assert asked == ["/start_profile", "/stop_profile"]
    assert [path.name for path in (tmp_path / "bundle").iterdir()] == ["rank0.2.json"]


def test_a_profile_is_stopped_when_its_job_is(tmp_path: Path) -> None:
    traces = tmp_path / "traces"
    traces.mkdir()
    with engine(traces) as (endpoint, asked):
        plan = planned(tmp_path, kind="endpoint", endpoint=endpoint, source=traces, window_s=50.0, command=())
        job = jobs.start(plan)
        until(lambda: "/start_profile" in asked)
        jobs.stop(job)
        assert over(job).ended_by == "asked"
    assert asked == ["/start_profile", "/stop_profile"]


def test_an_endpoint_elsewhere_is_refused_unless_it_is_listed(tmp_path: Path) -> None:
    told = over(
        jobs.start(planned(tmp_path, kind="endpoint", endpoint="http://192.0.2.1:8000", source=tmp_path, command=()))
    )
    assert told.state == "failed"
    assert told.error.startswith("The endpoint: it is neither on this machine nor on the list of the operator.")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_job_that_is_told_to_end_by_a_signal_leaves_nothing_of_what_it_records(tmp_path: Path, number: int) -> None:
    job = jobs.start(planned(tmp_path, ESCAPES, str(tmp_path / "pids")))
    started = pids(tmp_path / "pids", 3)
    for other in (signal.SIGUSR1, signal.SIGINT, signal.SIGHUP, number):
        job.process.send_signal(other)
    told = over(job)
    assert (told.state, told.ended_by) == ("ended", "asked")
    assert not any(alive(pid) for pid in started)


def test_the_command_of_a_job_has_the_signals_that_it_would_have(tmp_path: Path) -> None:
    code = "import signal\nassert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    code += "assert signal.getsignal(signal.SIGHUP) == signal.getsignal(signal.SIGTERM) == signal.SIG_DFL"
    assert over(jobs.start(planned(tmp_path, code))).exit == 0
