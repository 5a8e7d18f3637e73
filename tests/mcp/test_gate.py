"""What the gate refuses, and in which words."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from teller_core.cli import Verbs
from teller_core.errors import UnknownName
from teller_mcp.server import build_server
from teller_mcp.tools import TOOLS
from tests.waiting import LONGEST_S

pytestmark = pytest.mark.anyio
Connect = Callable[..., Client]


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("run_rca", {"request": 42, "metrics": "ttft"}, "run_rca has no such argument; did you mean metric?"),
    ("run_rca", {"request": 42, "\x1b[31m": 1}, "run_rca has no such argument. It takes: request, metric"),
    ("run_rca", {}, "run_rca: request: Field required."),
    ("run_rca", {"request": None}, "run_rca: request: Input should be a valid"),
    ("run_rca", {"request": 42, "metric": "p99"}, "run_rca: metric: Input should be 'e2e', 'ttft'"),
    ("run_rca", {"request": 42, "slo_ms": -1}, "run_rca: slo_ms: Input should be greater than 0."),
    ("list_slow_requests", {"limit": 0}, "list_slow_requests: limit: Input should be greater than or equal to 1."),
    ("list_slow_requests", {"capture": "a" * 99}, "list_slow_requests: capture: String should have at most 64"),
    (
        "get_causal_slice",
        {"target": "step 1", "max_chars": 10**30},
        "get_causal_slice: max_chars: Input should be less than",
    ),
    ("import_trace", {"paths": "a.json"}, "import_trace: paths: Input should be a valid list."),
    ("import_trace", {"paths": []}, "paths: the list is empty."),
    ("import_trace", {"paths": ["a.json"] * 65}, "paths: 65 paths are more than 64."),
    ("import_trace", {"paths": ["b.json"]}, "path 1: there is no such file or folder."),
    ("import_trace", {"paths": ["a.json", "../secret.txt"]}, "path 2: it leads out of the 1 allowed folder(s)."),
    ("import_trace", {"paths": ["/etc/passwd"]}, "path 1: it leads out"),
    ("import_trace", {"paths": ["a\0.json"]}, "path 1: it leads out"),
    ("why", {}, "No such tool."),
    ("run_rcas", {}, "No such tool; did you mean run_rca? There are: import_trace"),
]


@pytest.mark.parametrize(("tool", "arguments", "words"), REFUSED)
async def test_a_wrong_call_is_refused_in_one_line_that_teaches(
    connect: Connect, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async with connect() as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content is None
    assert text_of(result).startswith(words)
    assert "\n" not in text_of(result) and "\x1b" not in text_of(result)


async def test_a_refusal_of_the_core_reaches_the_model_in_the_words_of_the_server(connect: Connect) -> None:
    def why(*_: object, **__: object) -> None:
        raise UnknownName("request 99", "the capture has requests 0 to 39", "List them with `slow`, as `this` says")

    async with connect(why=why) as client:
        result = await client.call_tool("run_rca", {"request": 99})
    assert result.is_error
    assert text_of(result) == (
        "request 99: the capture has requests 0 to 39. List them with list_slow_requests, as this says."
    )


async def test_a_crash_shows_a_reference_and_nothing_of_its_text(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    def why(*_: object, **__: object) -> None:
        raise RuntimeError("what the prompt said")

    async with connect(why=why) as client:
        result = await client.call_tool("run_rca", {"request": 1})
    text = text_of(result)
    assert result.is_error
    assert "fault of TELLER" in text and "prompt" not in text
    reference = text.rstrip(".").rpartition(" ")[2]
    [record] = [record for record in caplog.records if reference in record.getMessage()]
    assert record.exc_info and record.exc_info[1] is not None and "what the prompt said" in str(record.exc_info[1])


async def test_an_answer_over_the_cap_is_refused_with_what_to_ask_instead(connect: Connect, samples: Any) -> None:
    endless = samples.verdict(explanation="x" * 30_000)
    async with connect(why=lambda *_, **__: endless) as client:
        result = await client.call_tool("run_rca", {"request": 1})
    assert result.is_error
    assert "over the cap of 20000" in text_of(result) and "concise" in text_of(result)


async def test_a_call_past_its_deadline_is_answered_and_its_repetition_joins_the_same_work(
    traces: Path, verbs: Callable[..., Verbs], samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    times: list[object] = []

    def slow_import(paths: object, store: object, **_: object) -> Any:
        times.append(paths)
        assert go_on.wait(LONGEST_S)
        from teller_core.data.report import ImportReport

        return ImportReport(captures=[samples.capture()])

    given = verbs(import_paths=slow_import)
    patient = next(tool for tool in TOOLS if tool.name == "import_trace")
    tools = [replace(tool, deadline_s=0.2) if tool is patient else tool for tool in TOOLS]
    server = build_server(traces / "none.db", [traces], verbs=lambda: given, tools=tools)
    work, joined = server._work, anyio.Event()

    async def noted(key: str, job: Any) -> Any:
        going = asyncio.ensure_future(work(key, job))
        await asyncio.sleep(0)  # it runs until it waits for the worker
        joined.set()
        return await going

    async with Client(server) as client:
        late = await client.call_tool("import_trace", {"paths": ["a.json"]})
        assert late.is_error
        assert "not done after 0.2 s; it goes on. Call it again with the same arguments" in text_of(late)
        async with anyio.create_task_group() as tasks:

            async def again() -> None:
                result = await client.call_tool("import_trace", {"paths": ["a.json"]})
                assert not result.is_error

            monkeypatch.setitem(server._specs, "import_trace", patient)  # whose deadline no machine is too slow for
            monkeypatch.setattr(server, "_work", noted)
            tasks.start_soon(again)
            await joined.wait()
            go_on.set()
    assert len(times) == 1


async def test_more_calls_than_workers_wait_for_their_turn(connect: Connect, samples: Any) -> None:
    lock = threading.Lock()
    running, most = 0, 0

    def why(*_: object, **__: object) -> Any:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        barrier.wait(LONGEST_S)
        with lock:
            running -= 1
        return samples.verdict()

    barrier = threading.Barrier(4)
    async with connect(why=why) as client, anyio.create_task_group() as tasks:
        for request in range(12):
            tasks.start_soon(client.call_tool, "run_rca", {"request": request})
    assert most == 4


async def test_a_client_gone_wrong_is_told_to_wait(
    connect: Connect, samples: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("teller_mcp.gate.MAX_RUNNING", 1)
    go_on, begun = threading.Event(), threading.Semaphore(0)

    def why(*_: object, **__: object) -> Any:
        begun.release()
        assert go_on.wait(LONGEST_S)
        return samples.verdict()

    async with connect(why=why) as client, anyio.create_task_group() as tasks:
        tasks.start_soon(client.call_tool, "run_rca", {"request": 1})
        await anyio.to_thread.run_sync(begun.acquire)
        result = await client.call_tool("run_rca", {"request": 2})
        go_on.set()
        assert result.is_error
        assert text_of(result) == "Busy: 1 calls are running. Try again in a few seconds."


async def test_every_call_leaves_one_audit_line_without_the_values(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "teller.audit")
    async with connect() as client:
        await client.call_tool("run_rca", {"request": "secret-id", "metric": "ttft"})
        await client.call_tool("run_rca", {"request": 1, "secret-key": 2})
        await client.call_tool("secret-tool", {})
    lines = [record.getMessage() for record in caplog.records if record.name == "teller.audit"]
    assert [line.partition(" ms=")[0] for line in lines] == [
        "tool=run_rca arguments=request,metric outcome=ok",
        "tool=run_rca arguments=request outcome=refused",
        "tool=(unknown) arguments=- outcome=refused",
    ]
    assert not any("secret" in line for line in lines)


async def test_every_prompt_leaves_one_audit_line_without_the_values(
    connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "teller.audit")
    async with connect() as client:
        text = (await client.get_prompt("why_slow", {"request": "secret-id"})).messages[0].content
        for name, arguments in (
            ("why_slow", {"request": "1", "secret-key": "2"}),
            ("why_slow", {}),
            ("secret-prompt", {"request": "1"}),
        ):
            with pytest.raises(MCPError):
                await client.get_prompt(name, arguments)
    lines = [record.getMessage() for record in caplog.records if record.name == "teller.audit"]
    assert [line.partition(" ms=")[0] for line in lines] == [
        "prompt=why_slow arguments=request outcome=ok",
        "prompt=why_slow arguments=request outcome=refused",
        "prompt=why_slow arguments=- outcome=refused",
        "prompt=(unknown) arguments=- outcome=refused",
    ]
    assert isinstance(text, TextContent) and lines[0].endswith(f"characters={len(text.text)}")
    assert not any("secret" in line for line in lines)


async def test_what_a_library_prints_does_not_reach_stdout(
    connect: Connect, samples: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    def why(*_: object, **__: object) -> Any:
        print("noise")  # noqa: T201  # as a careless library would
        return samples.verdict()

    async with connect(why=why) as client:
        await client.call_tool("run_rca", {"request": 1})
    out, err = capsys.readouterr()
    assert out == "" and "noise" in err
