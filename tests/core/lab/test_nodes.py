"""One service on two machines: each records its own bundle, and in the end there is one, whatever happens."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from teller_core.errors import InputError
from teller_core.lab import load, nodes
from teller_core.lab.link import ADDRESSES, Conditions, Link, linked, missing
from teller_core.lab.spaces import inside

SAY = [sys.executable, "-S", "-c", "import os; print(os.environ['VLLM_HOST_IP'], os.environ['WORD'])"]


class Plain(Link):
    """No namespaces: a command runs where the test does."""

    def __init__(self) -> None:
        super().__init__(("", ""), subprocess.Popen([sys.executable, "-S", "-c", ""], stdin=subprocess.PIPE, text=True))

    def command(self, side: int, words: list[str]) -> list[str]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return words


@pytest.fixture
def link() -> Iterator[Link]:
    made = Plain()
    yield made
    with made.process:
        made.process.kill()


def test_both_are_recorded_and_leave_one_bundle_with_what_the_client_measured(link: Link, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle-1"
    with nodes.recorded(link, [SAY, SAY], bundle, {"WORD": "here"}, working_folder=tmp_path) as services:
        for service in services:
            service.process.wait()
        load.append(services[0].folder / "client.jsonl", [{"rid": "a"}])
        assert not bundle.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["bundle-1"]
    said = [(bundle / node / "server.log").read_text().split() for node in nodes.NODES]
    assert said == [[address, "here"] for address in ADDRESSES]
    assert json.loads((bundle / nodes.NODES[0] / "client.jsonl").read_text()) == {"rid": "a"}
    assert [machine["name"] for machine in json.loads((bundle / "bundle.json").read_text())["merged"]] == [*nodes.NODES]


def test_what_a_killed_life_left_is_merged_before_the_next(link: Link, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with nodes.recorded(link, [SAY, SAY], tmp_path / "bundle-1", {"WORD": "x"}, working_folder=tmp_path) as services:
        for service in services:
            service.process.wait()
        shutil.copytree(tmp_path / ".bundle-1", kept)
    (tmp_path / "bundle-1" / "bundle.json").unlink()  # killed while it was merged
    kept.rename(tmp_path / ".bundle-1")
    (tmp_path / ".bundle-2" / nodes.NODES[0]).mkdir(parents=True)  # killed before anything was recorded
    nodes.mend(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle-1"]
    assert (tmp_path / "bundle-1" / "bundle.json").exists()


def test_a_bundle_that_is_there_is_left_alone(link: Link, tmp_path: Path) -> None:
    (tmp_path / "bundle-1").mkdir()
    beside = nodes.recorded(link, [SAY, SAY], tmp_path / "bundle-1", {}, working_folder=tmp_path)
    with pytest.raises(InputError, match="it is there already"), beside:
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["bundle-1"]


def test_only_the_first_machine_talks_to_clients() -> None:
    assert ["--headless" in nodes.words(side) for side in (0, 1)] == [False, True]
    assert nodes.words(0)[:3] == ["--nnodes=2", "--node-rank=0", f"--master-addr={ADDRESSES[0]}"]


class _Well(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def here() -> str:
    return os.readlink(f"/proc/self/task/{threading.get_native_id()}/ns/net")


@pytest.fixture(scope="module")
def real() -> Iterator[Link]:
    if why := missing():
        pytest.skip(f"no link between two namespaces can be made here: {why}")
    try:
        with linked() as made:
            yield made
    except InputError as error:
        pytest.skip(f"no link between two namespaces can be made here: {error}")


def test_a_thread_in_a_namespace_reaches_a_server_there_and_comes_back(real: Link) -> None:
    before = here()
    with inside(real.spaces[0]):
        assert here() != before
        server = ThreadingHTTPServer(("127.0.0.1", 0), _Well)
    assert here() == before
    with server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        port = int(server.server_address[1])
        assert load.healthy(port, real.spaces[0])
        assert not load.healthy(port, real.spaces[1])
        assert not load.healthy(port)
        asks = [load.Ask("a", 0.0, 3, 2)]
        (refused,) = load.send(load.Target(port, "m", real.spaces[1]), asks, 1, 1)
        (reached,) = load.send(load.Target(port, "m", real.spaces[0]), asks, 1, 1)
        server.shutdown()
        serving.join()
    assert (refused["err"], reached["err"]) == ("ConnectionRefusedError", "HTTP 501")
    assert here() == before


def test_a_namespace_that_is_not_there_is_an_error_and_the_thread_stays(real: Link) -> None:
    before = here()
    with pytest.raises(FileNotFoundError), inside("teller-nobody"):
        pass
    assert here() == before


def round_trip(link: Link, times: int = 9) -> float:
    """The median of ms that a byte takes there and back."""
    with inside(link.spaces[1]):
        listening = socket.create_server((ADDRESSES[1], 0))
    with inside(link.spaces[0]):
        near = socket.create_connection(listening.getsockname()[:2])
    far, _ = listening.accept()
    took: list[float] = []
    with listening, near, far:
        for _ in range(times):
            start = time.perf_counter()
            near.sendall(b"x")
            far.sendall(far.recv(1))
            near.recv(1)
            took.append(time.perf_counter() - start)
    return sorted(took)[times // 2] * 1e3


def test_the_link_is_slow_for_as_long_as_it_was_asked_and_says_when(real: Link) -> None:
    known = len(real.changes)
    with real.during(Conditions(delay_ms=20.0)) as began:
        assert round_trip(real, 3) >= 40.0
    assert [change.conditions.delay_ms for change in real.changes[known:]] == [20.0, 0.0]
    assert real.changes[known].time == began < real.changes[known + 1].time
    assert min(round_trip(real) for _ in range(3)) < 20.0
