"""The stat logger inside vLLM's API server: it writes what it is handed, bounds itself, and never gets in the way."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import teller_core.collect
from teller_core.data.records import Zone
from teller_core.ingest.found import Place
from teller_core.ingest.recorder import engine_stats
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.waiting import until

PLUGIN = Path(teller_core.collect.__file__).parent / "plugin"
LOGGERS = """
from abc import ABC, abstractmethod
class StatLoggerBase(ABC):
    @abstractmethod
    def record(self, scheduler_stats, iteration_stats, mm_cache_stats=None, engine_idx=0): ...
    @abstractmethod
    def log_engine_initialized(self): ...
"""
PRELUDE = """
import os, time
from importlib.metadata import entry_points
from types import SimpleNamespace as Made
import vllm
class Scheduler(Made): pass
class Iteration(Made): pass
class Request(Made): pass
class Prompt(Made): pass
class Details(Made): pass
(entry,) = entry_points(group="vllm.stat_logger_plugins")
logger = entry.load()(Made(scheduler_config=Made(max_num_seqs=8)), 0)
def scheduler(**more):
    return Scheduler(num_running_reqs=2, num_waiting_reqs=1, num_skipped_waiting_reqs=0, kv_cache_usage=0.25, **more)
def details(step):
    return Details(iteration_index=step, num_ctx_requests=1, num_ctx_tokens=24, num_generation_requests=0,
                   num_generation_tokens=0, elapsed_ms=13.5, is_dummy=False)
def iteration(at, first=(), finished=()):
    return Iteration(iteration_timestamp=at, num_generation_tokens=1, num_preempted_reqs=0,
                     time_to_first_tokens_iter=list(first), inter_token_latencies_iter=[0.004, 0.006],
                     prompt_token_stats=Prompt(total=24, computed=24, local_cache_hit=0, external_kv_transfer=0),
                     finished_requests=list(finished))
def request(name, e2e):
    return Request(request_id=name, e2e_latency=e2e, queued_time=0.001, prefill_time=0.02, decode_time=0.1,
                   inference_time=0.12, num_prompt_tokens=24, num_generation_tokens=8, num_cached_tokens=16,
                   num_preemptions=1, finish_reason="length")
"""


def run(tmp_path: Path, code: str, cap: Path | None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` after PRELUDE where a package of vLLM's shape and the plugin are on the path."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PRELUDE + code],
        env=environment(tmp_path, cap, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def environment(tmp_path: Path, cap: Path | None, version: str = "0.32.1+cpu", **more: str) -> dict[str, str]:
    loggers = tmp_path / "site" / "vllm" / "v1" / "metrics" / "loggers.py"
    loggers.parent.mkdir(parents=True, exist_ok=True)
    loggers.write_text(LOGGERS)
    for package in ("vllm", "vllm/v1", "vllm/v1/metrics"):
        (tmp_path / "site" / package / "__init__.py").write_text(f'__version__ = "{version}"\n')
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TELLER_", "PYTHONPATH"))}
    kept["PYTHONPATH"] = os.pathsep.join([str(PLUGIN), str(tmp_path / "site")])
    return kept | more | ({} if cap is None else {"TELLER_CAPTURE_DIR": str(cap)})


def rows(cap: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(cap.glob("stats-*.jsonl")) for line in path.read_text().splitlines()]


def kinds(cap: Path) -> Counter[str]:
    return Counter(str(row["k"]) for row in rows(cap))


STEPS = """
logger.record(scheduler(iteration_details=details(0)), iteration(1000.5, first=[0.25]), engine_idx=0)
logger.record(scheduler(iteration_details=details(1)), iteration(1001.0, finished=[request("cmpl-a-0", 0.75)]))
logger.record(scheduler(iteration_details=None), None)
"""


def test_it_is_found_by_its_entry_point_and_its_file_gives_the_request_and_its_steps(tmp_path: Path) -> None:
    done = run(tmp_path, STEPS, tmp_path / "cap")
    assert (done.returncode, done.stderr) == (0, "")
    (path,) = (tmp_path / "cap").iterdir()
    assert engine_stats.sniff(path.read_bytes())
    found = engine_stats.read(path, Place())
    assert [one.number for one in found.iterations] == [0, 1]
    (span,) = found.spans
    assert (span.request, span.start, span.end) == ("cmpl-a-0", 1000_250_000_000, 1001_000_000_000)
    assert {(one.begin, one.end): one.ns for one in span.intervals}["received", "first_token"] == 250_000_000
    assert span.tokens["preemptions"] == 1
    assert not set(found.problems) - {"missing_fields"}


def test_it_says_the_zone_in_which_the_log_beside_it_is_stamped(tmp_path: Path) -> None:
    assert run(tmp_path, STEPS, tmp_path / "cap", TZ="HERE-5:30").returncode == 0
    (path,) = (tmp_path / "cap").iterdir()
    found = engine_stats.read(path, Place())
    assert found.zones == [Zone(found.processes[0], 19_800 * 10**9)]


def test_lines_of_the_log_beside_it_have_their_place_in_time(tmp_path: Path) -> None:
    line = "(APIServer pid=%d) INFO %%m-%%d %%H:%%M:%%S [launcher.py:38] Available routes are:"
    done = run(tmp_path, f"{STEPS}print(time.strftime({line!r} % os.getpid()))\n", tmp_path / "cap", TZ="HERE-5:30")
    (tmp_path / "cap" / "server.log").write_text(done.stdout)
    with contextlib.closing(Store.open(tmp_path / "t.db")) as store:
        capture = import_paths([tmp_path / "cap"], store).captures[0]
    assert capture.log_lines == 1
    assert "files_of_unknown_zone" not in capture.problems


def test_without_its_variable_it_writes_nothing_and_starts_no_thread(tmp_path: Path) -> None:
    done = run(tmp_path, STEPS + "import threading; print(threading.active_count())", None)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")
    assert {path.name for path in tmp_path.iterdir()} == {"site"}


def test_a_version_it_was_not_tested_on_is_named_and_what_is_missing_too(tmp_path: Path) -> None:
    code = "logger.record(Scheduler(num_running_reqs=3), Iteration(iteration_timestamp=5.0))\n"
    assert run(tmp_path, code, tmp_path / "cap", version="0.40.0").returncode == 0
    head, step, missing = rows(tmp_path / "cap")[:3]
    assert (head["version"], head["tested"]) == ("0.40.0", False)
    assert (step["running"], step["at"]) == (3, 5.0)
    assert "Scheduler.kv_cache_usage" in missing["missing"]


def test_what_it_cannot_read_costs_vllm_nothing_and_is_counted(tmp_path: Path) -> None:
    code = """
class Odd:
    @property
    def num_running_reqs(self): raise KeyError("secret")
    num_waiting_reqs = 1
for _ in range(3): logger.record(Odd(), None)
logger.record(scheduler(), None)
"""
    done = run(tmp_path, code, tmp_path / "cap")
    assert (done.returncode, done.stderr) == (0, "")
    assert [row["errors"] for row in rows(tmp_path / "cap") if row["k"] == "C"] == [{"record.KeyError": 3}]
    assert "secret" not in "".join(path.read_text() for path in (tmp_path / "cap").iterdir())


def test_a_folder_that_cannot_be_written_loses_lines_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run(tmp_path, STEPS + "time.sleep(0.6); print('served')", tmp_path / "file")
    assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")


def test_a_disk_that_takes_no_more_costs_lines_and_vllm_nothing(tmp_path: Path) -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
for step in range(200):
    logger.record(scheduler(iteration_details=details(step)), iteration(1000.0 + step))
    if step % 20 == 0: logger.writer.flush()
assert logger.writer.lost > 100
print('served')
"""
    done = run(tmp_path, code, tmp_path / "cap")
    assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")
    (path,) = (tmp_path / "cap").iterdir()
    found = engine_stats.read(path, Place())
    assert found.iterations
    assert found.problems["bad_json"] <= 1  # the line that found no room


def test_it_keeps_no_more_than_its_bound_and_says_what_it_dropped(tmp_path: Path) -> None:
    code = """
for step in range(3000):
    logger.record(scheduler(iteration_details=details(step)), iteration(1000.0 + step))
    if step % 100 == 0: logger.writer.flush()
"""
    assert run(tmp_path, code, tmp_path / "cap", TELLER_CAPTURE_BYTES="80000").returncode == 0
    files = sorted((tmp_path / "cap").iterdir())
    assert sum(path.stat().st_size for path in files) <= 90_000
    steps = [row["step"] for row in rows(tmp_path / "cap") if row["k"] == "S"]
    assert steps == list(range(steps[0], 3000))
    assert all(json.loads(path.read_text().partition("\n")[0])["k"] == "P" for path in files)
    assert [row["dropped"] for row in rows(tmp_path / "cap") if row["k"] == "C"][-1] > 0


def test_a_second_life_with_the_same_pid_leaves_the_first_one_its_file(tmp_path: Path) -> None:
    code = """
path = os.path.join(os.environ["TELLER_CAPTURE_DIR"], "stats-%d-0000.jsonl" % os.getpid())
os.makedirs(os.path.dirname(path)); open(path, "w").write("earlier")
logger.record(scheduler(), None)
"""
    assert run(tmp_path, code, tmp_path / "cap").returncode == 0
    first, second = sorted((tmp_path / "cap").iterdir())
    assert first.read_text() == "earlier"
    assert second.name.endswith("-0001.jsonl")


def test_a_forked_child_writes_nothing_into_its_parents_file(tmp_path: Path) -> None:
    code = """
logger.record(scheduler(), None)
pid = os.fork()
if pid == 0:
    logger.record(scheduler(), None)
    os._exit(0)
os.waitpid(pid, 0)
"""
    done = subprocess.run(  # without -W error: Python 3.12 warns of a fork beside threads, here ours alone
        [sys.executable, "-c", PRELUDE + code], env=environment(tmp_path, tmp_path / "cap"), check=True, timeout=60
    )
    assert done.returncode == 0
    assert kinds(tmp_path / "cap")["S"] == 1


@pytest.mark.slow
def test_what_was_recorded_is_on_the_disk_without_a_further_call_so_a_kill_takes_little(tmp_path: Path) -> None:
    code = "logger.record(scheduler(), None)\nprint('recorded', flush=True)\ntime.sleep(600)\n"
    with subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code], env=environment(tmp_path, tmp_path / "cap"), stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"recorded\n"
        until(lambda: kinds(tmp_path / "cap")["S"] == 1, process)
        process.send_signal(signal.SIGKILL)
    assert kinds(tmp_path / "cap")["S"] == 1
