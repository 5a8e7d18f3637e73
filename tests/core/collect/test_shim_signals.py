"""Signals of the program that is recorded: they stay its own, and one that ends it takes little of the recording."""

import signal
from pathlib import Path

import pytest

from tests.core.collect.test_shim import _events, _run

SERVED = """
import os, signal
import uvicorn
import teller_shim_events as events

async def app(scope, receive, send):
    assert scope["type"] == "lifespan"
    while True:
        what = (await receive())["type"]
        events.instant(what)
        await send({"type": what + ".complete"})
        if what == "lifespan.shutdown":
            return
        os.kill(os.getpid(), signal.{name})

uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical")).run()
"""
"""A server that gets a signal as soon as it is up, and is asked to end by it."""


@pytest.mark.parametrize("fork", ["", "os.fork() and os._exit(os.waitstatus_to_exitcode(os.wait()[1]))"])
def test_a_signal_that_a_program_holds_back_to_wait_for_is_its_own(tmp_path: Path, fork: str) -> None:
    code = f"""
import os, signal, time
{fork}
for number in (signal.SIGTERM, signal.SIGUSR1):
    signal.pthread_sigmask(signal.SIG_BLOCK, [number])
    os.kill(os.getpid(), number)
    time.sleep(0.1)
    assert signal.sigwait([number]) == number
"""
    assert _run(code, tmp_path).returncode == 0


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_what_a_server_did_until_it_ended_by_a_signal_is_recorded(tmp_path: Path, name: str) -> None:
    pytest.importorskip("uvicorn")
    done = _run(SERVED.replace("{name}", name), tmp_path)
    assert done.returncode == -signal.Signals[name], done.stderr
    names = [event["name"] for event in _events(tmp_path) if event["name"] != "hook_error"]
    assert names.index("lifespan.startup") < names.index("lifespan.shutdown") < names.index("process_end")
    assert not _events(tmp_path, "hook_error")


def test_a_server_whose_shutdown_is_awaited_by_nobody_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "lib" / "uvicorn").mkdir(parents=True)
    (tmp_path / "lib" / "uvicorn" / "__init__.py").write_text("__version__ = '0.54.0'\n")
    made = "class Server:\n    def shutdown(self): return 5\n"
    (tmp_path / "lib" / "uvicorn" / "server.py").write_text(made)
    code = "from uvicorn.server import Server\nassert Server().shutdown() == 5"
    done = _run(code, tmp_path / "cap", [tmp_path / "lib"])
    assert (done.returncode, done.stderr) == (0, "")
    (off,) = _events(tmp_path / "cap", "hooks_disabled")
    assert off["package"] == "Server.shutdown"
