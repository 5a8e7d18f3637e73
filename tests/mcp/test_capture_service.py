"""A real service, recorded through the server as an assistant would, and asked about."""

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from teller_core.lab import load
from teller_core.lab.model import tiny_model
from teller_mcp.server import build_server
from tests.waiting import until

REQUESTS = 12


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def profiles(folder: Path, port: int, model: str) -> Path:
    command = [str(Path(sys.executable).with_name("transformers")), "serve", model, "--port", str(port)]
    command += ["--continuous-batching", "--attn-implementation", "sdpa", "--device", "cpu", "--host", "127.0.0.1"]
    command += ["--cb-num-blocks", "256", "--cb-max-batch-tokens", "256"]  # else it takes half of the machine's memory
    path = folder / "profiles.toml"
    path.write_text(
        f'[profiles.served]\ncommand = {json.dumps(command)}\nconsent = "given"\nseconds = 900\nwindow_s = 1\n'
        'environment = ["OMP_NUM_THREADS=1", "HF_HUB_OFFLINE=1"]\n'
    )
    return path


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def recorded(folder: Path, name: str) -> bool:
    """Whether a process of the service has written down that it knows this request."""
    return any(name.encode() in path.read_bytes() for path in folder.rglob("host-*.jsonl"))


@pytest.mark.anyio
@pytest.mark.slow
@pytest.mark.service
@pytest.mark.timeout(900)
async def test_a_service_that_was_recorded_over_mcp_is_asked_why_it_was_slow(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    model = tiny_model(tmp_path)
    port = free_port()
    server = build_server(tmp_path / "t.db", [tmp_path], allow_capture=profiles(tmp_path, port, f"./{model.name}"))
    asks = [load.Ask(f"r-{i:02d}", 0.0, 5 + 10 * (i % 3), 8) for i in range(REQUESTS)]
    async with Client(server) as client:
        await called(client, "capture_trace", profile="served")
        late = time.monotonic() + 300
        while not await anyio.to_thread.run_sync(load.healthy, port):
            job = (await called(client, "job", wait_s=1))["job"]
            assert time.monotonic() < late and job["state"] in ("starting", "recording"), job
        rows = await anyio.to_thread.run_sync(
            lambda: load.send(load.Target(port, f"./{model.name}"), asks, 4, 1, lambda: None)
        )
        assert [row["err"] for row in rows] == [None] * REQUESTS
        # uvicorn ends by the signal itself: what a process did in its last quarter of a second is not flushed then.
        await anyio.to_thread.run_sync(lambda: until(lambda: recorded(tmp_path, rows[-1]["rid"])))
        await called(client, "job", action="finish")
        job = {"state": "ending"}
        while job["state"] in ("recording", "ending", "importing"):
            job = (await called(client, "job", wait_s=20))["job"]
        assert (job["state"], job["ended_by"]) == ("done", "asked"), job
        listed = await called(client, "list_slow_requests", capture=job["capture"])
        assert {f"r-{i:02d}" for i in range(REQUESTS)} <= {row[1] for row in listed["rows"]}
        [first, *_] = listed["next"]
        verdict = await called(client, first["tool"], **first["arguments"])
        assert verdict["coverage"]["mapping"] == "recorded"
