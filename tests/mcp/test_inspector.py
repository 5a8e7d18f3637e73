"""The Inspector, the official client: it finds the definitions sound, and every tool answers it."""

import json
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from tests.mcp.serving import ROOT, Served, served
from tests.node.packages import needed

CAPTURE = Path(__file__).parents[1] / "data" / "captures" / "tfserve_shim"
CALLS: dict[str, dict[str, Any]] = {
    "import_trace": {"paths": ["."]},
    "search": {"text": "linear"},
    "list_slow_requests": {"limit": 3},
    "run_rca": {"request": 1},
    "get_causal_slice": {"target": "step 17"},
    "explain_operator": {"name": "aten::linear"},
    "compare": {"before": 1, "after": 2},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspector")
    with Store.open(folder / "t.db") as store:
        import_paths([CAPTURE], store, together=True)
    return folder


@pytest.fixture(scope="module")
def server(folder: Path) -> Generator[Served]:
    with served(folder, "--root", str(CAPTURE), "--db", str(folder / "t.db")) as found:
        yield found


def inspect(folder: Path, *arguments: str) -> dict[str, Any]:
    """The result of one call of the Inspector, which must find nothing wrong with it."""
    command = [*needed("inspector"), "--cli", *arguments, "--format", "json", "-q"]
    home = {"HOME": str(folder)}  # it keeps files of its own there
    done = subprocess.run(command, cwd=ROOT, env=home, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2_000:] + done.stderr[-2_000:]
    return json.loads(done.stdout)["result"]


def over_http(server: Served) -> list[str]:
    return [server.url, "--transport", "http", "--header", f"Authorization: {server.headers['Authorization']}"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_strict_inspector_lists_every_tool(server: Served, folder: Path, transport: str, era: str) -> None:
    stdio = [sys.executable, "-m", "teller_mcp", "--root", str(CAPTURE), "--db", str(folder / "t.db")]
    where = stdio if transport == "stdio" else over_http(server)
    listed = inspect(folder, *where, "--method", "tools/list", "--strict", "--protocol-era", era)
    assert [tool["name"] for tool in listed["tools"]] == list(CALLS)


@pytest.mark.parametrize("tool", CALLS)
def test_every_tool_answers_the_inspector_as_its_schema_says(server: Served, folder: Path, tool: str) -> None:
    asked = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(CALLS[tool])]
    answer = inspect(folder, *over_http(server), *asked, "--protocol-era", "modern")
    # A program in JavaScript has no integers above 2**53, as times since 1970 in ns are.
    exact, rounded = (json.loads(text, parse_int=float) for text in (answer["content"][0]["text"], json.dumps(answer)))
    assert rounded["structuredContent"] == exact
    assert answer["structuredContent"]["next"]
