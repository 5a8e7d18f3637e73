"""The recorder, and the stat logger, in every Python that they are made for: with the standard library alone, and no warnings."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.core.collect import test_plugin
from tests.core.collect.test_shim import SCHEDULE, _environment, _events, _fake_vllm

NVTX = """
class annotate:
    def __init__(self, message=None, color=None, domain=None): pass
    def __enter__(self): return self
    def __exit__(self, *error): return False
    def __call__(self, function): return function
def push_range(message=None, color="blue", domain=None): pass
def pop_range(domain=None): pass
def mark(message=None, color="blue", domain=None): pass
"""
"""What of the nvtx package programs call."""
VERSIONS = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
PROGRAMS = {
    "a decision of the scheduler": (SCHEDULE, {"vllm.schedule": 1, "hooks": 1}),
    "a long collection": (
        "import gc\nkept = [[i] for i in range(500_000)]\ngc.collect()\n",
        {"gc": None},
    ),
    "a late event loop": (
        """
import asyncio, time, teller_shim_loop
async def main():
    teller_shim_loop.watch()
    await asyncio.sleep(0)
    time.sleep(0.3)
    await asyncio.sleep(0.05)
asyncio.run(main())
""",
        {"loop_lag": None},
    ),
    "a coroutine": (
        """
import asyncio, teller_shim_events as events, teller_shim_wrap as wrap
class Served:
    async def shutdown(self): return 5
wrap.after_await(Served, "shutdown", lambda args, kwargs, result: events.instant("shut", result=result))
assert asyncio.run(Served().shutdown()) == 5
""",
        {"shut": 1},
    ),
    "a forked child": (
        "import os\n"
        + SCHEDULE
        + "pid = os.fork()\n"
        + SCHEDULE
        + "if not pid: raise SystemExit\nassert not os.wait()[1]\n",
        {"vllm.schedule": 3, "process": 2, "process_end": 2},
    ),
    "many forks": (
        """
import os, teller_shim_events as events
for _ in range(40):
    child = os.fork()
    if not child: os._exit(0)
    assert not os.waitpid(child, 0)[1]
events.instant("said")
""",
        {"said": 1, "process_end": 1},
    ),
    "filters of warnings that stay the program's own": (
        """
import os, time, warnings, teller_shim_events as events
own = list(warnings.filters)
child = os.fork()
if not child: os._exit(warnings.filters != own)
assert not os.waitpid(child, 0)[1]
late = time.monotonic() + 30
while warnings.filters != own: assert time.monotonic() < late
events.instant("said")
""",
        {"said": 1},
    ),
    "two who start the thread at once": (
        """
import os, teller_shim_events as events, teller_shim_process as process
folder, allocate = os.environ["TELLER_CAPTURE_DIR"], process.allocate_lock
def allocated():
    process.allocate_lock = allocate
    process._run_thread(folder)
    return allocate()
process._stop_thread()
process.allocate_lock = allocated
process._run_thread(folder)
process._stop_thread()
assert len(os.listdir("/proc/self/task")) == 1
events.instant("said")
""",
        {"said": 1},
    ),
    "forks where the system has no thread left": (
        """
import os, teller_shim_events as events, teller_shim_process as process
from teller_shim_guard import problems
def refuse(*_): raise RuntimeError("can't start new thread")
process.start_new_thread, process.GONE_S = refuse, 600.0
for _ in range(3):
    child = os.fork()
    if not child: os._exit(0)
    os.waitpid(child, 0)
problems.clear()  # counted, as it should be
events.instant("said")
""",
        {"said": 1},
    ),
    "a module that keeps its loader": (
        SCHEDULE + "import vllm.v1.core.sched.scheduler as m\nassert m.__spec__.loader is m.__loader__\n",
        {"vllm.schedule": 1},
    ),
    "threads that all end": (
        """
import threading, teller_shim_events as events
threads = [threading.Thread(target=events.instant, args=("said",), kwargs={"text": "\\u00e9\\U0001f600"}) for _ in range(8)]
for thread in threads: thread.start()
for thread in threading.enumerate():
    if thread is not threading.main_thread(): thread.join()
""",
        {"said": 8},
    ),
    "words that JSON has no form for": (
        "import teller_shim_events as events\nevents.instant('odd', value={1: (2, None), 'x': {3}, 'y': object})\n",
        {"odd": 1},
    ),
    "ranges where no library listens": (
        """
import nvtx
@nvtx.annotate("decorated", domain="d")
def work(): return 5
with nvtx.annotate("outer"):
    nvtx.push_range("inner")
    nvtx.pop_range()
    nvtx.mark("here")
    assert work() == 5
""",
        {"decorated": 1, "outer": 1, "inner": 1, "here": 1},
    ),
    "a window where there is no torch": (
        """
import os, teller_shim_profile as profile
folder = os.environ["TELLER_CAPTURE_DIR"]
with open(os.path.join(folder, "PROFILE"), "w") as file: file.write("1.5 steps=3 host")
profile.obey(folder)
"""
        + SCHEDULE,
        {"profile_start": 0, "vllm.schedule": 1},
    ),
    "a ring of segments": (
        """
import os, teller_shim_events as events
os.environ["TELLER_CAPTURE_BYTES"] = "4000"
events.open_in(os.environ["TELLER_CAPTURE_DIR"])
for number in range(400):
    events.instant("filler", number=number)
    events.flush()
files = [name for name in os.listdir(os.environ["TELLER_CAPTURE_DIR"]) if name.endswith(".jsonl")]
assert 2 <= len(files) <= 9, files
events.instant("last")
""",
        {"last": 1},
    ),
}
"""Programs by what happens in them, and how many events of some names they leave; None: some."""


@cache
def python(version: str) -> str:
    """The command of that Python: on the path, or of those that pyenv keeps without showing them. Skips where there is none."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [shutil.which(f"python{version}"), *map(str, sorted(kept.glob(f"{version}.*/bin/python{version}")))]
    for one in found:
        if one and not subprocess.run([one, "-V"], capture_output=True, check=False).returncode:
            return one
    pytest.skip(f"no Python {version} here")


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_recorder_runs_on_every_supported_python(tmp_path: Path, version: str, program: str) -> None:
    code, left = PROGRAMS[program]
    library = _fake_vllm(tmp_path / "lib")
    (library / "nvtx").mkdir()
    (library / "nvtx-0.2.17.dist-info").mkdir()
    (library / "nvtx" / "nvtx.py").write_text(NVTX)
    (library / "nvtx" / "__init__.py").write_text("from nvtx.nvtx import annotate, mark, pop_range, push_range\n")
    done = subprocess.run(
        [python(version), "-W", "always", "-c", code],
        env=_environment(tmp_path / "cap", [library]),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    for name, count in left.items():
        found = len(_events(tmp_path / "cap", name))
        assert found if count is None else found == count, name
    assert not _events(tmp_path / "cap", "hook_error")
    assert _events(tmp_path / "cap", "process_end")


@pytest.mark.parametrize("version", ["3.9", *VERSIONS[3:]])
def test_python_warns_of_a_fork_beside_the_threads_of_the_program_as_ever(tmp_path: Path, version: str) -> None:
    code = """
import os, threading
go = threading.Event()
threading.Thread(target=go.wait).start()
child = os.fork()
if not child: os._exit(0)
os.waitpid(child, 0)
go.set()
"""
    told = [
        subprocess.run(
            [python(version), "-W", "always", "-c", code],
            env=_environment(cap),
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stderr.count("is multi-threaded, use of fork")
        for cap in (None, tmp_path / "cap")
    ]
    assert told == [version != "3.9"] * 2


@pytest.mark.parametrize("version", VERSIONS[1:])
def test_the_stat_logger_runs_on_every_python_that_vllm_runs_on(tmp_path: Path, version: str) -> None:
    done = subprocess.run(
        [python(version), "-W", "always", "-c", test_plugin.PRELUDE + test_plugin.STEPS],
        env=test_plugin.environment(tmp_path, tmp_path / "cap"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert {name: count for name, count in test_plugin.kinds(tmp_path / "cap").items() if name in "PSF"} == {
        "P": 1,
        "S": 3,
        "F": 1,
    }
