"""The demo's conversation, over a server that answers from memory."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mcp import Client

from teller_core import cli
from teller_core.cli import Verbs
from teller_core.lab.conversation import Talk, _converse, _questions, _reveal
from teller_core.tell.layout import Style
from teller_mcp.server import build_server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def truth(cause: str | None, struck: list[str]) -> Any:
    return SimpleNamespace(cause=cause, fault="cpu_colocation", struck=struck, interval=[0, 3_000_000_000])


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("cause", "struck", "last"),
    [
        ("host.cpu_contention", ["client-7"], "Right: request 42 was struck, and the answer was host.cpu_contention."),
        ("host.gc_pause", ["client-7"], "Wrong: request 42 was struck, and the answer was host.cpu_contention."),
        (None, [], "Wrong: request 42 was not struck, and the answer was host.cpu_contention."),
    ],
)
async def test_four_questions_are_asked_with_tools_and_then_the_truth_is_told(
    traces: Path, verbs: Callable[..., Verbs], cause: str | None, struck: list[str], last: str
) -> None:
    said: list[str] = []
    made = verbs()
    (traces / "bundle").mkdir()
    talk = Talk(Style(width=140), said.append)
    async with Client(build_server(traces / "t.db", [traces], verbs=lambda: made)) as client:
        request, answer = await _questions(client, talk)
        before = len(said)
        await _reveal(client, truth(cause, struck), request, answer, talk)
    asked = [line.strip() for line in said[:before] if line.lstrip().startswith("You")]
    called = [line.split("> ")[1].split("(")[0] for line in said[:before] if line.lstrip().startswith("> ")]
    assert len(asked) == 4
    assert called == ["import_trace", "list_slow_requests", "run_rca", "get_causal_slice", "compare"]
    assert any("Step 17 took 811.9 ms" in line for line in said[:before])
    assert said[-1].endswith(last)


@pytest.mark.anyio
async def test_an_import_that_goes_on_is_waited_for(traces: Path, verbs: Callable[..., Verbs]) -> None:
    from teller_core.lab.conversation import _call

    calls: list[str] = []

    class Late:
        async def call_tool(self, tool: str, arguments: object) -> Any:
            calls.append(tool)
            if len(calls) < 3:
                return SimpleNamespace(
                    is_error=True, content=[SimpleNamespace(text="not done after 25 s; it goes on.")]
                )
            return SimpleNamespace(is_error=False, structured_content={"captures": [], "next": [], "left_out": {}})

    late: Any = Late()
    assert await _call(late, None, "import_trace", paths=["bundle"]) == {"captures": []}
    assert len(calls) == 3


@pytest.mark.anyio
async def test_a_server_that_refuses_ends_the_demo_with_its_words(tmp_path: Path) -> None:
    from teller_core.errors import TellerError

    with pytest.raises(TellerError, match="The server refused import_trace: path 1: there is no such file"):
        await _converse(tmp_path, truth(None, []), Talk(Style(), lambda _: None))


def test_a_folder_that_holds_something_is_not_overwritten(
    tmp_path: Path, verbs: Callable[..., Verbs], capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").touch()
    assert cli.main(["demo", "--keep", str(tmp_path)], verbs) == 2
    assert "the folder is not empty" in capsys.readouterr().err


def test_serving_becomes_the_server(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "teller_core.cli", "serve", "--root", str(tmp_path / "none")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "it is no folder" in done.stderr
