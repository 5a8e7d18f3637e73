"""The server over streamable HTTP. It listens on this machine alone, unless whoever starts it names who else may come.

Everybody shows the token, also on this machine: it has other users, and pages in a browser can reach it. Host and Origin are
checked by the SDK, whose own default would be no check at all on any address but 127.0.0.1.
"""

import logging
import re
import socket
from collections.abc import Iterable, Sequence
from ipaddress import ip_address

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from teller_core.errors import InputError
from teller_mcp.gate import Gate
from teller_mcp.token_file import shown

PATH = "/mcp"
HTTP_PORT = 80
MAX_BODY = 1 << 20
"""Bytes of a request. The longest call names 64 paths."""
MAX_CONNECTIONS = 256
MAX_SESSIONS = 256
IDLE_S = 600.0
"""After so long without a request a session of protocol 2025-11-25 is forgotten. Later ones have no sessions."""
GOING_S = 3
"""For answers under way when the server is told to end. Streams that stay open would hold it forever."""
NAME = re.compile(r"([A-Za-z0-9.-]+|\[[0-9a-fA-F:]+\])(:\d{1,5})?", re.ASCII)
METHODS = ("GET", "POST", "DELETE")
REASONS = {401: "token", 403: "origin", 413: "size", 421: "host"}
"""By status, what was wrong with a request; with any other it was the request itself."""

audit = logging.getLogger("teller.audit")
log = logging.getLogger("teller")


def listen(host: str, port: int, names: Sequence[str]) -> socket.socket:
    """A socket that listens on ``port`` of ``host``, any free one for 0.

    Raises InputError where it is taken, for a name that is none, and where others than this machine could come and
    ``names`` says under which name.
    """
    for name in names:
        if not NAME.fullmatch(name):
            raise InputError(f"--allow-host {name}", "it is no HOST or HOST:PORT", "Write it as clients do in the URL")
    if not _loopback(host) and not names:
        raise InputError(
            f"--host {host}",
            "other machines could reach the server",
            "Name what they may call it with --allow-host HOST:PORT, or leave --host out",
        )
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        why = f"nothing can listen on port {port} of {host} ({error.strerror})"
        raise InputError("--http", why, "Name another port with --http PORT") from None


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Answer with ``app`` those who come to ``listener``, until the process is told to end."""
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("mcp.server.transport_security").setLevel(logging.ERROR)  # it quotes what clients sent
    log.info("listening on http://%s%s for those who show the token", _written(*listener.getsockname()[:2]), PATH)
    config = uvicorn.Config(
        app,
        loop="asyncio",
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_graceful_shutdown=GOING_S,
    )
    uvicorn.Server(config).run(sockets=[listener])


def own_names(listener: socket.socket) -> list[str]:
    """What clients on this machine call a server on ``listener``; nothing where it listens elsewhere."""
    host, port = listener.getsockname()[:2]
    if not _loopback(host):
        return []
    return sorted({_written(name, port) for name in (host, "127.0.0.1", "localhost", "::1")})


def http_app(server: Gate, names: Sequence[str], token: str) -> ASGIApp:
    """``server`` under PATH, for those who call it by one of ``names`` (Host and Origin) and show ``token``."""
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(names),
        allowed_origins=[f"{scheme}://{name}" for name in names for scheme in ("http", "https")],
    )
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=security,
        max_request_body_size=MAX_BODY,
        max_sessions=MAX_SESSIONS,
        session_idle_timeout=IDLE_S,
    )
    app.router.redirect_slashes = False  # a redirect repeats the Host, which nobody has checked by then
    return _guarded(app, token)


def _guarded(app: ASGIApp, token: str) -> ASGIApp:
    """``app`` for those who show ``token``. Whatever is refused, here or by ``app``, leaves one line of the audit log."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        audited = _audited(scope, send)
        if _shows(scope["headers"], token):
            await app(scope, receive, audited)
            return
        text = "This server asks for its token: send the header 'Authorization: Bearer TOKEN', with that of its token file."
        await PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})(scope, receive, audited)

    return answer


def _shows(headers: Iterable[tuple[bytes, bytes]], token: str) -> bool:
    given = [value for name, value in headers if name == b"authorization"]
    return len(given) == 1 and shown(given[0], token)


def _audited(scope: Scope, send: Send) -> Send:
    """``send`` that notes a refusal, without anything that the client wrote."""

    async def note(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            method = scope["method"] if scope["method"] in METHODS else "other"
            reason = REASONS.get(message["status"], "request")
            audit.info("http method=%s outcome=refused status=%d reason=%s", method, message["status"], reason)
        await send(message)

    return note


def _loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _written(host: str, port: int) -> str:
    """As it stands in a URL, and so in the header Host."""
    name = f"[{host}]" if ":" in host else host
    return name if port == HTTP_PORT else f"{name}:{port}"
