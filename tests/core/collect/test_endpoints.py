"""An engine's own profiler is asked on this machine, or where the operator allows it, and nowhere else."""

import json
import socket
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from teller_core.collect.windows.endpoints import endpoint_of, start_profile, stop_profile
from teller_core.errors import InputError


class _Engine(HTTPServer):
    """Answers every POST with ``status`` and remembers what it was asked."""

    status = 200

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, Any]] = []

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        engine = self.server
        assert isinstance(engine, _Engine)
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        engine.asked.append((self.path, json.loads(text) if text else None))
        self.send_response(engine.status)
        self.send_header("Location", "http://192.0.2.1/stolen")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def engine() -> Generator[_Engine]:
    """A server that stands for an engine."""
    with _Engine() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_a_profile_is_bounded_in_steps_for_both_engines_and_has_no_shapes(engine: _Engine) -> None:
    start_profile(engine.url, steps=7)
    stop_profile(engine.url + "/")
    (started, body), (stopped, nothing) = engine.asked
    assert (started, stopped, nothing) == ("/start_profile", "/stop_profile", None)
    assert (body["num_steps"], body["max_iterations"], body["record_shapes"], body["with_stack"]) == (
        7,
        7,
        False,
        False,
    )


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(engine: _Engine, status: int) -> None:
    engine.status = status
    with pytest.raises(InputError, match=f"answered {status}"):
        start_profile(engine.url)
    assert len(engine.asked) == 1


@pytest.mark.parametrize(
    ("status", "why"), [(404, "no profiler switched on"), (401, "wants a key"), (500, "answered 500")]
)
def test_a_refusal_says_what_to_do(engine: _Engine, status: int, why: str) -> None:
    engine.status = status
    with pytest.raises(InputError, match=why):
        start_profile(engine.url)


def test_an_engine_that_ended_its_profile_after_its_steps_may_refuse_to_stop_it_again(engine: _Engine) -> None:
    engine.status = 500
    stop_profile(engine.url)
    engine.status = 404
    with pytest.raises(InputError, match="no profiler"):
        stop_profile(engine.url)


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1:8000",
        "http://[2001:db8::1]:8000",
        "http://10.0.0.1",
        "http://169.254.169.254/latest",
        "http://0.0.0.0:8000",
    ],
)
def test_another_machine_is_refused(url: str) -> None:
    with pytest.raises(InputError, match=r"neither on this machine|not known"):
        endpoint_of(url)


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "127.0.0.1:8000", "http://", "ftp://127.0.0.1", "http://user:key@127.0.0.1", "http://[::1",
     "http://127.0.0.1:99999", "http://127.0.0.1/?a=b", ""],
)  # fmt: skip
def test_what_is_no_plain_url_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="URL"):
        endpoint_of(url)


def test_a_place_that_the_operator_lists_is_allowed_on_its_port_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", 8000))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert endpoint_of("http://GPU1:8000", ["gpu1:8000"]).address == "192.0.2.7"
    with pytest.raises(InputError):
        endpoint_of("http://gpu1:8001", ["gpu1:8000"])


def test_a_name_that_points_both_here_and_elsewhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)) for host in ("127.0.0.1", "192.0.2.7")]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(InputError, match="neither"):
        endpoint_of("http://both.example")


def test_where_nothing_answers_the_refusal_says_so() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(InputError, match="nothing there answers"):
            start_profile(f"http://127.0.0.1:{taken.getsockname()[1]}")


@pytest.mark.parametrize("steps", [0, -1, 1001])
def test_steps_out_of_range_are_refused_before_anything_is_asked(steps: int) -> None:
    with pytest.raises(InputError, match="between"):
        start_profile("http://192.0.2.1", steps=steps)
