"""The server over HTTP: who may come, who may not, and that those who may are answered as over stdio."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from teller_core.calls import parser
from teller_core.calls.serving import OPTIONS, PORT, again
from teller_core.cli import VERBS
from teller_core.errors import InputError
from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_mcp.__main__ import _parser
from teller_mcp.http import MAX_BODY, listen
from teller_mcp.token_file import read_or_make, shown
from tests.mcp.serving import Served, client, served

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "vllm_faults" / "base"
NAMED = "gpu1.example:8443"
CLIENT = {"name": "t", "version": "0"}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
ERAS: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "2025-11-25": (
        {},
        {
            "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT},
        },
    ),
    "2026-07-28": (
        {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"},
        {"method": "tools/list", "params": {"_meta": META}},
    ),
}
"""What a client of each revision sends first: its own headers, and its message."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "t.db"
    with Store.open(path) as store:
        import_paths([CAPTURE], store, together=True)
    return path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, database: Path) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("http")
    with served(folder, "--root", str(CAPTURE), "--db", str(database), "--allow-host", NAMED) as found:
        yield found


def post(server: Served, era: str, *more: tuple[str, str], without: str = "", **changes: Any) -> httpx2.Response:
    """The first request of a client of ``era``, which may come, with ``more`` headers and the header ``without`` left out."""
    own, message = ERAS[era]
    usual = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "Host": server.names,
        **server.headers,
        **own,
    }
    changed = {name for name, _ in more} | {without}
    told = [*((name, value) for name, value in usual.items() if name not in changed), *more]
    headers = [(name.encode(), value.encode("latin-1")) for name, value in told]
    body = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
    with httpx2.Client(trust_env=False) as http:
        return http.post(**{"url": server.url, "headers": headers, "content": body, **changes})


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "more",
    [
        (),
        (("Host", "localhost:PORT"),),
        (("Host", NAMED),),
        (("Origin", "http://127.0.0.1:PORT"),),
        (("Origin", "http://localhost:PORT"),),
        (("Origin", f"https://{NAMED}"), ("Host", NAMED)),
        (("Authorization", "bearer TOKEN"),),
    ],
)
def test_those_who_come_as_they_should_are_answered(
    server: Served, era: str, more: tuple[tuple[str, str], ...]
) -> None:
    before = len(server.audited())
    asked = [(name, _filled(value, server)) for name, value in more]
    answer = post(server, era, *asked)
    assert answer.status_code == 200
    assert '"result"' in answer.text
    assert not [line for line in server.audited()[before:] if "refused" in line]


ATTACKS: dict[str, tuple[int, str, tuple[tuple[str, str], ...]]] = {
    "another host": (421, "host", (("Host", "evil.example"),)),
    "another host with our port": (421, "host", (("Host", "evil.example:PORT"),)),
    "our host with another port": (421, "host", (("Host", "127.0.0.1:1"),)),
    "our host without a port": (421, "host", (("Host", "127.0.0.1"),)),
    "a host that begins as ours": (421, "host", (("Host", "127.0.0.1:PORT.evil.example"),)),
    "the named host without its port": (421, "host", (("Host", "gpu1.example"),)),
    "any address": (421, "host", (("Host", "0.0.0.0:PORT"),)),
    "another origin": (403, "origin", (("Origin", "http://evil.example"),)),
    "an origin on another port": (403, "origin", (("Origin", "http://localhost:1"),)),
    "an origin that begins as ours": (403, "origin", (("Origin", "http://127.0.0.1:PORT.evil.example"),)),
    "an origin of no page": (403, "origin", (("Origin", "null"),)),
    "an origin of another scheme": (403, "origin", (("Origin", "file://127.0.0.1:PORT"),)),
    "another token": (401, "token", (("Authorization", f"Bearer {'A' * 43}"),)),
    "a token that begins as ours": (401, "token", (("Authorization", "Bearer TOKENA"),)),
    "no more than a scheme": (401, "token", (("Authorization", "Bearer"),)),
    "a token without a scheme": (401, "token", (("Authorization", "TOKEN"),)),
    "another scheme": (401, "token", (("Authorization", "Basic TOKEN"),)),
    "two tokens": (401, "token", (("Authorization", "Bearer TOKEN"), ("Authorization", "Bearer TOKEN"))),
    "a token that is no ASCII": (401, "token", (("Authorization", "Bearer \u00e9TOKEN"),)),
    "another host, origin and token": (
        401,
        "token",
        (("Host", "evil.example"), ("Origin", "http://evil.example"), ("Authorization", "Bearer x")),
    ),
}


def _filled(value: str, server: Served) -> str:
    return value.replace("PORT", server.names.split(":")[1]).replace("TOKEN", server.token)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("attack", ATTACKS)
def test_those_who_may_not_come_are_refused_with_one_line_of_the_audit_log(
    server: Served, era: str, attack: str
) -> None:
    status, reason, headers = ATTACKS[attack]
    before = server.audited()
    asked = [(name, _filled(value, server)) for name, value in headers]
    answer = post(server, era, *asked)
    assert answer.status_code == status
    assert "result" not in answer.text
    assert server.audited()[len(before) :] == [f"http method=POST outcome=refused status={status} reason={reason}"]
    assert "evil" not in server.log.read_text() and server.token not in server.log.read_text()


@pytest.mark.parametrize("era", ERAS)
def test_without_a_token_nobody_is_answered_and_hears_what_to_send(server: Served, era: str) -> None:
    for changes in ({}, {"url": f"{server.url}?access_token={server.token}"}, {"url": server.url.replace("/mcp", "/")}):
        answer = post(server, era, without="Authorization", **changes)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "Authorization: Bearer TOKEN" in answer.text


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("told", [True, False])
def test_a_body_that_is_too_large_is_refused_whether_its_size_is_told_or_not(
    server: Served, era: str, told: bool
) -> None:
    body = b" " * (MAX_BODY + 1)
    answer = post(server, era, content=body if told else iter([body[: MAX_BODY // 2]] * 3))
    assert answer.status_code == 413
    assert server.audited()[-1] == "http method=POST outcome=refused status=413 reason=size"


def test_what_is_refused_to_calls_is_refused_to_streams_and_to_the_end_of_sessions(server: Served) -> None:
    opened = post(server, "2025-11-25").headers["Mcp-Session-Id"]
    with httpx2.Client(trust_env=False) as http:
        for method in ("GET", "DELETE"):
            session = {"Mcp-Session-Id": opened, "Accept": "text/event-stream"}
            assert http.request(method, server.url, headers=session).status_code == 401
            for name, value, status in (("Host", "evil.example", 421), ("Origin", "http://evil.example", 403)):
                headers = {**session, **server.headers, name: value}
                assert http.request(method, server.url, headers=headers).status_code == status
        assert http.delete(server.url, headers={**session, **server.headers}).status_code == 200


def test_no_answer_sends_a_client_elsewhere(server: Served) -> None:
    answer = post(server, "2025-11-25", ("Host", "evil.example"), url=f"{server.url}/")
    assert answer.status_code == 404
    assert "location" not in answer.headers


@asynccontextmanager
async def over_stdio(database: Path, mode: str, folder: Path) -> AsyncGenerator[Client]:
    command = ["-m", "teller_mcp", "--root", str(CAPTURE), "--db", str(database)]
    with (folder / "log").open("w") as log:
        process = stdio_client(StdioServerParameters(command=sys.executable, args=command), errlog=log)
        async with Client(process, mode=mode) as found:
            yield found


async def all_that_it_says(asked: Client) -> list[Any]:
    """What a server says of itself and to some calls, one of them wrong."""
    tools, prompts = await asked.list_tools(), await asked.list_prompts()
    calls: list[tuple[str, dict[str, Any]]] = [
        ("import_trace", {"paths": ["."]}),
        ("list_slow_requests", {"limit": 5}),
        ("run_rca", {"request": 1}),
        ("get_causal_slice", {"target": "step 17"}),
        ("run_rca", {"request": 1, "metrik": "e2e"}),
        ("import_trace", {"paths": ["../secret"]}),
    ]
    answers = [await asked.call_tool(name, arguments) for name, arguments in calls]
    assert [answer.is_error for answer in answers] == [False] * 4 + [True] * 2
    prompt = await asked.get_prompt("why_slow", {"request": "1"})
    return [said.model_dump(mode="json") for said in (tools, prompts, *answers, prompt)]


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_http_the_server_says_what_it_says_over_stdio(
    server: Served, database: Path, tmp_path: Path, mode: str
) -> None:
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=server.headers, trust_env=False))
        there = await stack.enter_async_context(client(server, http, mode))
        here = await stack.enter_async_context(over_stdio(database, mode, tmp_path))
        assert there.server_info == here.server_info and there.instructions == here.instructions
        assert there.protocol_version == here.protocol_version
        assert await all_that_it_says(there) == await all_that_it_says(here)
        assert there.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")


def refused(*arguments: str) -> str:
    """The one line of a server that does not start."""
    command = [sys.executable, "-m", "teller_mcp", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_it_listens_where_others_can_come_only_where_their_names_are_given(tmp_path: Path) -> None:
    known = ["--db", str(tmp_path / "t.db"), "--token-file", str(tmp_path / "token"), "--http", "0"]
    assert "--host 0.0.0.0: other machines could reach the server." in refused(*known, "--host", "0.0.0.0")
    assert not (tmp_path / "token").exists()
    named = ["--db", str(tmp_path / "t.db"), "--host", "0.0.0.0", "--allow-host", "gpu1:8377"]
    with served(tmp_path, *named, program=["teller_core.cli", "serve"]) as server:
        here = server.url.replace("0.0.0.0", "127.0.0.1")
        assert post(server, "2026-07-28", ("Host", "gpu1:8377"), url=here).status_code == 200
        assert post(server, "2026-07-28", ("Host", here.split("/")[2]), url=here).status_code == 421
        assert post(server, "2026-07-28", ("Host", "gpu1:8377"), url=here, without="Authorization").status_code == 401


def test_teller_serve_hands_on_whatever_it_was_called_with() -> None:
    words = ["--root", "a b", "--root=-c", "--allow-capture", "p.toml", "--weights", "w", "--http", "--host", "::1"]
    words += ["--allow-host", "a:1", "--allow-host", "b:2", "--token-file", "t"]
    called = parser(VERBS).parse_args(["serve", *words])
    expected = {"root": [Path("a b"), Path("-c")], "http": PORT, "host": "::1", "allow_host": ["a:1", "b:2"]}
    expected |= {"allow_capture": Path("p.toml"), "weights": Path("w"), "token_file": Path("t")}
    assert expected.keys() == set(OPTIONS)
    handed_on = _parser().parse_args(again(called))
    assert {option: getattr(handed_on, option) for option in OPTIONS} == expected
    assert again(parser(VERBS).parse_args(["serve"])) == []


@pytest.mark.parametrize("name", ["*", "", "http://gpu1:8377", "gpu1:8377/mcp", "gpu1:port", "gpu1 gpu2", "gpu1\n"])
def test_a_host_that_no_url_can_have_is_no_name(name: str) -> None:
    with pytest.raises(InputError, match="it is no HOST or HOST:PORT"):
        listen("127.0.0.1", 0, [name])


def test_a_port_that_is_taken_and_options_of_http_without_it_are_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"nothing can listen on port {port}"):
            listen("127.0.0.1", port, [])
    assert "--host: it says something of HTTP" in refused("--host", "127.0.0.1", "--db", str(tmp_path / "t.db"))


def test_the_token_is_made_once_for_its_user_alone_whoever_comes_first(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "token"
    with ThreadPoolExecutor(8) as pool:
        tokens = set(pool.map(lambda _: read_or_make(path), range(64)))
    assert len(tokens) == 1
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert os.listdir(path.parent) == ["token"]
    assert {read_or_make(tmp_path / str(other)) for other in range(8)}.isdisjoint(tokens)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (lambda path: (path.write_text("a" * 43), path.chmod(0o640)), "others may read it"),
        (lambda path: (path.write_text("a" * 43), path.chmod(0o602)), "others may read it"),
        (lambda path: path.write_text("short"), "it holds no token"),
        (lambda path: path.write_text("a" * 43 + "\n" + "b" * 43), "it holds no token"),
        (lambda path: path.write_text("\u00e9" * 43, "utf-8"), "it holds no token"),
        (lambda path: path.mkdir(), "it cannot be read"),
        (lambda path: os.mkfifo(path, 0o600), "it is no regular file"),
        (lambda path: path.symlink_to("elsewhere"), "it cannot be read"),
    ],
)
def test_a_token_file_that_anybody_else_could_have_a_hand_in_is_refused(tmp_path: Path, made: Any, why: str) -> None:
    path = tmp_path / "token"
    (tmp_path / "elsewhere").write_text("a" * 43)
    (tmp_path / "elsewhere").chmod(0o600)
    before = os.umask(0o077)
    try:
        made(path)
    finally:
        os.umask(before)
    with pytest.raises(InputError, match=why):
        read_or_make(path)


def test_a_token_that_a_person_wrote_is_taken_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text("correct.horse~battery+staple/0123==\n")
    assert read_or_make(path) == "correct.horse~battery+staple/0123=="
    assert shown(b"Bearer correct.horse~battery+staple/0123==", read_or_make(path))
