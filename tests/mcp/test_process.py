"""The server as a process of its own, and what importing it costs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from teller_mcp.prompt_files import load_prompts, prompt_folder
from teller_mcp.tools import TOOLS

HEAVY = ("torch", "transformers", "numba", "pandas", "scipy", "sklearn")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_importing_the_server_loads_nothing_heavy() -> None:
    code = f"import sys, teller_mcp.server; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_over_stdio_it_lists_its_tools_and_prompts_and_refuses_politely(traces: Path, mode: str) -> None:
    command = ["-m", "teller_mcp", "--root", str(traces), "--db", str(traces / "t.db")]
    parameters = StdioServerParameters(command=sys.executable, args=command)
    with (traces / "log").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log), mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == [tool.name for tool in TOOLS]
            for prompt in load_prompts(prompt_folder()):
                values = dict.fromkeys(prompt.required, "42")
                assert (await client.get_prompt(prompt.name, values)).messages
            refused = await client.call_tool("import_trace", {"paths": ["../secret.txt"]})
            assert refused.is_error
    assert "teller.audit INFO tool=import_trace arguments=paths outcome=refused" in (traces / "log").read_text()


def test_every_line_on_stdout_is_the_protocols(traces: Path) -> None:
    calls = [
        {"method": "initialize", "id": 1, "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}},
        {"method": "notifications/initialized"},
        {"method": "tools/list", "id": 2},
        {"method": "tools/call", "id": 3, "params": {"name": "run_rca", "arguments": {"request": 1}}},
    ]  # fmt: skip
    lines = "".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls)
    command = [sys.executable, "-m", "teller_mcp", "--root", str(traces), "--db", str(traces / "t.db")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(lines)
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        rest, _ = process.communicate()
    assert {answer["id"] for answer in answers} == {1, 2, 3}
    assert rest == ""
    assert process.returncode == 0


def test_a_client_that_is_gone_before_its_answer_is_no_fault(traces: Path) -> None:
    calls = [
        {"method": "initialize", "id": 1, "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}},
        {"method": "notifications/initialized"},
    ]  # fmt: skip
    late = {"method": "tools/list", "id": 2}
    command = [sys.executable, "-m", "teller_mcp", "--root", str(traces), "--db", str(traces / "t.db")]
    with (
        (traces / "log").open("w") as log,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        process.stdout.close()
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **late}) + "\n")
        process.stdin.close()
        assert process.wait(100) == 0
    told = (traces / "log").read_text()
    assert "Traceback" not in told and told.endswith("the client is gone\n")


def test_a_root_that_is_no_folder_is_refused_before_the_protocol_starts(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "teller_mcp", "--root", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1 and "it is no folder. Name a folder that holds traces." in done.stderr
