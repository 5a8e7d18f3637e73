"""The end of a program that is recorded: a disk that is dead, or Ctrl-C in a hook, holds nothing of it."""

from pathlib import Path

import pytest

from tests.core.collect import test_plugin
from tests.core.collect.test_shim import _events, _run

DEAD = """
import os, threading, time
import teller_shim_events as events, teller_shim_process as process, teller_shim_ring as ring
process.LAST_S = process.GONE_S = 0.2
held = threading.Event()
def dead(*given):
    held.set()
    time.sleep(600)
ring.write = dead
"""
FORKS = """
events.instant("said")
held.wait(30)
before = len(os.listdir(process.TASKS))
for _ in range(3):
    child = os.fork()
    if not child: os._exit(0)
    assert not os.waitpid(child, 0)[1]
assert len(os.listdir(process.TASKS)) == before
"""


@pytest.mark.parametrize("then", ["", "held.wait(30)", FORKS], ids=["at the end", "before it", "and forks"])
def test_a_disk_that_is_dead_holds_no_program_at_its_end(tmp_path: Path, then: str) -> None:
    code = f"{DEAD}events.instant('said')\n{then}\nprint('done')\n"
    done = _run(code, tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_server_on_a_disk_that_is_dead_ends_and_one_that_lives_on_is_recorded_on(tmp_path: Path) -> None:
    code = f"""{DEAD}
import asyncio, sys, types
class Server:
    async def shutdown(self): return 5
module = types.ModuleType("uvicorn.server")
module.Server = Server
sys.modules["uvicorn"] = types.SimpleNamespace(__version__="0.54.0")
process._uvicorn(module, os.environ["TELLER_CAPTURE_DIR"])
events.instant("before")
assert asyncio.run(Server().shutdown()) == 5
"""
    done = _run(code + "events.instant('after')\n", tmp_path / "dead")
    assert done.returncode == 0, done.stderr
    done = _run(code.replace("ring.write = dead", "") + "events.instant('after')\n", tmp_path / "alive")
    assert done.returncode == 0, done.stderr
    names = [
        event["name"] for event in _events(tmp_path / "alive") if event["name"] in ("before", "after", "process_end")
    ]
    assert names == ["before", "process_end", "after", "process_end"]


def test_what_is_interrupted_in_a_hook_is_done_all_the_same(tmp_path: Path) -> None:
    code = """
import teller_shim_wrap as wrap
class Service:
    def shutdown(self): print("shut")
def interrupted(args, kwargs): raise KeyboardInterrupt
wrap.before_call(Service, "shutdown", interrupted)
try: Service().shutdown()
except KeyboardInterrupt: print("interrupted")
"""
    done = _run(code, tmp_path)
    assert (done.stdout, done.stderr) == ("shut\ninterrupted\n", "")


@pytest.mark.parametrize("held", ["", "held.wait(30)\n"], ids=["at the end", "before it"])
def test_a_disk_that_is_dead_holds_no_vllm_with_our_stat_logger(tmp_path: Path, held: str) -> None:
    code = f"""
import sys, threading
where = sys.modules[type(logger.writer).__module__]
where.LAST_S = 0.2
held = threading.Event()
def dead(*given):
    held.set()
    time.sleep(600)
logger.writer._write = dead
logger.record(scheduler(), iteration(1000.0))
{held}print('served')
"""
    done = test_plugin.run(tmp_path, code, tmp_path / "cap")
    assert (done.returncode, done.stdout, done.stderr) == (0, "served\n", "")
