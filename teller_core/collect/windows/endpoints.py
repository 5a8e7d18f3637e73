"""An engine's own profiler, switched by its HTTP endpoint: ``/start_profile`` and ``/stop_profile`` of vLLM and SGLang.

Only this machine's loopback is asked, and what an operator listed as HOST:PORT. A name is resolved once, checked, and the
address that was checked is connected to. Redirects and proxies are never followed, every wait has a limit and the
text of an answer is not read. The engine writes the trace to its own folder.
"""

import http.client
import ipaddress
import json
import socket
import ssl
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from teller_core.errors import InputError

START_TIMEOUT_S = 15.0
STOP_TIMEOUT_S = 120.0
"""vLLM answers when every process has written its trace: 9.5 s were measured for 98 steps."""
STEPS = 10
MOST_STEPS = 1_000


class Endpoint(NamedTuple):
    """Where an engine is asked: the name it was given by, the address that was checked, whether TLS is spoken."""

    name: str
    address: str
    port: int
    tls: bool
    prefix: str


def start_profile(endpoint: str, allowed: Sequence[str] = (), steps: int = STEPS) -> None:
    """Ask the engine at the URL ``endpoint`` to profile itself for ``steps`` steps, without shapes or stacks.

    ``allowed`` lists HOST:PORT that may be asked besides this machine. SGLang reads ``num_steps``, vLLM from 0.32 on
    ``max_iterations``; an older vLLM goes on until ``stop_profile``. Raises InputError where the endpoint is not allowed,
    does not answer or refuses.
    """
    if not 0 < steps <= MOST_STEPS:
        raise InputError("The steps of a profile", f"they are not between 1 and {MOST_STEPS}", "Ask for about ten")
    about = {"num_steps": steps, "activities": ["CPU", "GPU"], "with_stack": False, "record_shapes": False}
    where = endpoint_of(endpoint, allowed)
    _refuse_unless_done(_post(where, "/start_profile", {**about, "max_iterations": steps}, START_TIMEOUT_S))


def stop_profile(endpoint: str, allowed: Sequence[str] = ()) -> None:
    """Ask the engine to end its profile and write it. An engine that ended it after its steps may say so: that is no error.

    Raises InputError where the endpoint is not allowed or does not answer.
    """
    status = _post(endpoint_of(endpoint, allowed), "/stop_profile", None, STOP_TIMEOUT_S)
    if status in (401, 403, 404):
        _refuse_unless_done(status)


def endpoint_of(url: str, allowed: Sequence[str] = ()) -> Endpoint:
    """The endpoint that ``url`` names. Raises InputError where it is no http(s) URL of an allowed place."""
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise InputError("The endpoint", "it is no URL", "Write it as http://127.0.0.1:8000") from None
    if parts.scheme not in ("http", "https") or not name or parts.query or parts.fragment or "@" in parts.netloc:
        raise InputError("The endpoint", "it is no plain http URL", "Write it as http://127.0.0.1:8000")
    listed = f"{name}:{port}" in {entry.strip().lower() for entry in allowed}
    return Endpoint(name, _address(name, port, listed), port, parts.scheme == "https", parts.path.rstrip("/"))


def _address(name: str, port: int, listed: bool) -> str:
    """The first address of ``name``, if all of its addresses are this machine's or the place is listed."""
    try:
        found = [str(entry[4][0]) for entry in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        found = []
    if not found:
        raise InputError("The endpoint", "its host is not known", "Correct it, or write an address")
    if not listed and not all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in found):
        why = "it is neither on this machine nor on the list of the operator"
        raise InputError("The endpoint", why, "Name 127.0.0.1, or let the operator list HOST:PORT")
    return found[0]


def _post(where: Endpoint, path: str, body: dict[str, object] | None, timeout: float) -> int:
    """The status of the answer to a POST. Its text is not read."""
    connection = http.client.HTTPConnection(where.name, where.port, timeout=timeout)
    text = b"" if body is None else json.dumps(body).encode()
    try:
        connection.sock = _connected(where, timeout)
        connection.request("POST", where.prefix + path, text, {"Content-Type": "application/json"} if text else {})
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        why = "it did not answer in time" if isinstance(error, TimeoutError) else "nothing there answers"
        raise InputError("The endpoint", why, "Check that the engine runs and that the port is its own") from None
    finally:
        connection.close()


def _connected(where: Endpoint, timeout: float) -> socket.socket:
    """A connection to the address that was checked: resolving the name again might give another."""
    plain = socket.create_connection((where.address, where.port), timeout)
    return ssl.create_default_context().wrap_socket(plain, server_hostname=where.name) if where.tls else plain


def _refuse_unless_done(status: int) -> None:
    if 200 <= status < 300:
        return
    if status == 404:
        why, then = (
            "this engine has no profiler switched on",
            "Start vLLM with --profiler-config, or use `teller capture`",
        )
    elif status in (401, 403):
        why, then = "the engine wants a key", "Ask it from inside, or use `teller capture`"
    else:
        why, then = f"the engine answered {status}", "Read its log; another profile may be running"
    raise InputError("The engine's profiler", why, then)
