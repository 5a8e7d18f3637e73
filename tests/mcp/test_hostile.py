"""Text that was written against whoever reads it, through every tool, prompt, page, picture, trace and refusal.

A new tool needs a call in CALLS; a new field may hold text of traces only where MAY_HOLD says so.
"""

import asyncio
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, TextContent

from teller_core.cli import main
from teller_core.data.report_search import SearchKind
from teller_core.store.store import Store
from teller_core.tell import chrome
from teller_core.tell.report import drawn
from teller_core.tell.visible import visible
from teller_mcp.answers import is_plain
from teller_mcp.gate import Gate
from teller_mcp.prompt_files import load_prompts, prompt_folder
from teller_mcp.server import build_server
from teller_mcp.tools import CAPTURING, TOOLS
from tests.core.tell.report.parsed import ACTIVE, Parsed
from tests.mcp.hostile import HUGE, MARK, PAYLOADS, file_names, record, texts_of

pytestmark = pytest.mark.anyio
LONGEST = 300
"""Characters of a text out of a trace."""
REQUESTS = range(1, 11)
METRICS = ("e2e", "ttft", "tpot", "itl_max")
SAID = [*(text for name, text in PAYLOADS.items() if name != "surrogates"), HUGE]
"""What a client can send: halves of surrogate pairs are no text in JSON."""
CALLS: dict[str, list[dict[str, Any]]] = {
    "import_trace": [{"paths": ["."]}, {"paths": ["first"]}],
    "list_slow_requests": [
        {},
        {"detail": "full", "metric": "ttft", "limit": 2},
        {"view": "horizontal", "detail": "full"},
        {"view": "fleet", "detail": "full"},
    ],
    "run_rca": [{"request": n, "metric": metric, "detail": "full"} for n in REQUESTS for metric in METRICS]
    + [{"request": 1, "what_if": ["step 17=10ms"]}],
    "get_causal_slice": [{"target": f"request {n}", "detail": "full"} for n in REQUESTS]
    + [{"target": f"step {n}", "detail": "full"} for n in range(1, 20, 3)]
    + [{"target": "0:10"}],
    "explain_operator": [{"name": name, "detail": "full"} for name in ("nccl:all_reduce", "cudaLaunchKernel")],
    "search": [{"text": MARK, "kind": kind, "limit": 100, "detail": "full"} for kind in get_args(SearchKind)]
    + [{"text": "ignore previous", "capture": "all"}],
    "compare": [{"before": 1, "after": 4, "detail": "full"}, {"before": "FIRST", "after": "SECOND", "detail": "full"}],
    "capture_trace": [{}],
    "job": [{}],
}
"""Calls of every tool; FIRST and SECOND stand for the ids of the two captures."""
MAY_HOLD: dict[str, set[str]] = {
    "import_trace": {"captures.name", "captures.files.name", "captures.ranks.host", "captures.engine"},
    "list_slow_requests": {
        "rows[engine_id]",
        "rows[host]",
        "contrast.rows[untrusted_text]",
        "captures.name",
        "waits.kept_by",
        "waits.untrusted_text",
        "fleet.replica_rows",
    },
    "run_rca": {"engine_id", "findings.operator", "findings.evidence.name", "findings.evidence.untrusted_text"},
    "get_causal_slice": {"lines.text"},
    "explain_operator": {
        "name",
        "launches",
        "launched_by",
        "places.place",
        "places.slowest.text",
        "shapes.inputs",
    },
    "search": {"rows[untrusted_text]", "rows[where]"},
    "compare": {"differences.what"},
    "capture_trace": set(),
    "job": set(),
}
"""Where an answer may have text of a trace: names of operators, requests and files, and ``untrusted_text``."""
SEEN = {
    ("import_trace", "captures.files.name"),
    ("list_slow_requests", "rows[engine_id]"),
    ("run_rca", "engine_id"),
    ("get_causal_slice", "lines.text"),
    ("explain_operator", "name"),
    ("explain_operator", "launches"),
    ("explain_operator", "launched_by"),
    ("search", "rows[untrusted_text]"),
}
"""Where it must come out, so that the corpus does not go blind."""


class World(NamedTuple):
    """Two hostile recordings in a folder that may be read, imported."""

    root: Path
    store: Path
    profiles: Path
    captures: list[str]

    def server(self) -> Gate:
        return build_server(self.store, [self.root], allow_capture=self.profiles)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("hostile")
    root = folder / "root"
    record(root / "first")
    second = record(root / "second")
    for number, name in enumerate(file_names()):
        (second / f"{number}{name}").write_text('{"traceEvents": [')
    (folder / "profiles.toml").write_text('[profiles.quick]\ncommand = ["true"]\nconsent = "given"\nabout = "quick"\n')
    store = folder / "t.db"
    made = World(root, store, folder / "profiles.toml", [])

    async def read() -> None:
        async with Client(made.server()) as client:
            for name in ("first", "second"):
                result = await client.call_tool("import_trace", {"paths": [name]})
                assert not result.is_error, text_of(result)

    asyncio.run(read())
    with Store.open(store, read_only=True) as kept:
        yield made._replace(captures=[capture.id for capture in kept.captures()])


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def check(tool: str, answer: dict[str, Any], said: str = "") -> set[tuple[str, str]]:
    """Fail where text of a trace is not cleaned, not cut, or where it may not stand; the fields in which it stands. What the
    caller ``said`` itself may be suggested to it again.
    """
    seen: set[tuple[str, str]] = set()
    for field, text in texts_of(answer):
        assert text.isprintable(), f"{tool}: {field} holds what does not show"
        if MARK not in text or (field.startswith("next.arguments.") and text == visible(said)):
            continue
        seen.add((tool, field))
        assert len(text) <= LONGEST, f"{tool}: {field} has {len(text)} characters"
        if field.startswith("next."):
            assert field == "next.arguments.name", f"{tool}: {field} holds text of a trace"
            assert re.fullmatch(r"[\w:.() #+-]{1,120}", text), f"{tool}: {text!r} is suggested as an argument"
        else:
            assert field in MAY_HOLD[tool], f"{tool}: {field} holds text of a trace, and is not declared to"
    return seen


def check_refusal(text: str) -> None:
    """Fail where a refusal has anything of what was asked."""
    assert MARK not in text
    assert "AAAA" not in text
    assert text.isprintable() and len(text) <= 1_500


def test_every_tool_has_calls() -> None:
    assert set(CALLS) == set(MAY_HOLD) == {tool.name for tool in (*TOOLS, *CAPTURING)}


async def test_text_of_traces_is_cleaned_cut_and_only_where_it_may_stand(world: World) -> None:
    seen: set[tuple[str, str]] = set()
    names: set[str] = set()
    ids: dict[str, str] = dict(zip(["FIRST", "SECOND"], world.captures, strict=True))
    async with Client(world.server()) as client:
        for tool, calls in CALLS.items():
            answered = 0
            for call in calls:
                given = {key: ids.get(value, value) if isinstance(value, str) else value for key, value in call.items()}
                result = await client.call_tool(tool, given)
                if result.is_error:
                    check_refusal(text_of(result))
                    assert "no such argument" not in text_of(result), f"{tool}: a call of it is out of date"
                else:
                    answered += 1
                    assert result.structured_content is not None
                    seen |= check(tool, result.structured_content, given.get("text", ""))
                    lines = result.structured_content.get("lines", []) if tool == "get_causal_slice" else []
                    names |= {line["text"] for line in lines if MARK in line["text"]}
            assert answered, f"{tool}: no call of it has an answer"
        for name in names:
            result = await client.call_tool("explain_operator", {"name": name, "detail": "full"})
            assert result.structured_content is not None, text_of(result)
            seen |= check("explain_operator", result.structured_content)
    assert seen >= SEEN


async def test_no_refusal_says_again_what_it_was_given(world: World) -> None:
    async with Client(world.server()) as client:
        for tool in (await client.list_tools()).tools:
            texts = {
                key: "array" in told for key, told in kinds(tool.input_schema).items() if told & {"string", "array"}
            }
            required = dict.fromkeys(tool.input_schema.get("required", []), "1")
            for text in SAID:
                calls = [{**required, key: [text] if listed else text} for key, listed in texts.items()]
                for call in [*calls, {**required, text: 1}]:
                    result = await client.call_tool(tool.name, call)
                    if result.is_error:
                        check_refusal(text_of(result))
                    else:
                        assert result.structured_content is not None
                        check(tool.name, result.structured_content, text)
        for text in SAID:
            check_refusal(text_of(await client.call_tool(text, {})))


async def test_no_refusal_calls_a_file_by_a_hostile_name(tmp_path: Path) -> None:
    root = tmp_path / "root"
    names = [name for name in file_names() if not is_plain(name)]
    assert len(names) > 12
    for number, name in enumerate(names):
        (root / str(number) / f"x{name}").mkdir(parents=True)
        (root / str(number) / f"x{name}" / f"y{name}").write_text("nothing that is known")
    async with Client(build_server(tmp_path / "t.db", [root])) as client:
        for number, name in enumerate(names):
            inside = f"{number}/x{name}"
            for asked in (str(number), inside, f"{inside}/y{name}", f"{number}/*", f"{number}/none{name}"):
                if asked.encode("utf-8", "replace").decode() == asked:
                    result = await client.call_tool("import_trace", {"paths": [asked]})
                    assert result.is_error
                    check_refusal(text_of(result))


async def test_prompts_take_a_value_on_one_line_and_refuse_in_words_of_their_own(world: World) -> None:
    async with Client(world.server()) as client:
        for prompt in load_prompts(prompt_folder()):
            usual = await filled(client, prompt.name, dict.fromkeys(prompt.descriptions, "42"))
            for text in SAID:
                said = await filled(client, prompt.name, dict.fromkeys(prompt.descriptions, text))
                assert said.count("\n") == usual.count("\n")
                assert said.replace("\n", " ").isprintable()
                assert len(said) <= len(usual) + 200 * said.count(MARK)
                with pytest.raises(MCPError) as caught:
                    await client.get_prompt(prompt.name, {text: "1"})
                check_refusal(str(caught.value))
        for text in SAID:
            with pytest.raises(MCPError) as caught:
                await client.get_prompt(text, {})
            check_refusal(str(caught.value))


def kinds(schema: dict[str, Any]) -> dict[str, set[str]]:
    """The types that each argument of a tool may have."""
    told = {key: field.get("type", []) for key, field in schema["properties"].items()}
    return {key: {kind} if isinstance(kind, str) else set(kind) for key, kind in told.items()}


async def filled(client: Client, prompt: str, values: dict[str, str]) -> str:
    block = (await client.get_prompt(prompt, values)).messages[0].content
    assert isinstance(block, TextContent)
    return block.text


async def test_what_describes_the_server_has_nothing_of_what_was_read(world: World) -> None:
    async with Client(world.server()) as client:
        described = [
            *(await client.list_tools()).tools,
            *(await client.list_prompts()).prompts,
            *(await client.list_resources()).resources,
            *(await client.list_resource_templates()).resource_templates,
        ]
    assert described
    assert not any(MARK in each.model_dump_json() for each in described)


async def test_an_audit_line_is_one_line_of_ours_whatever_is_called(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "teller.audit")
    async with Client(world.server()) as client:
        for text in SAID:
            await client.call_tool("run_rca", {"request": text, text: text})
            await client.call_tool(text, {text: text})
            with pytest.raises(MCPError):
                await client.get_prompt(text, {text: text})
    lines = [record.getMessage() for record in caplog.records if record.name == "teller.audit"]
    assert len(lines) == 3 * len(SAID)
    assert not any(MARK in line or not line.isprintable() for line in lines)


PAGES = [
    ["captures"],
    ["fleet"],
    ["slow"],
    ["slow", "--view", "horizontal"],
    *(["why", str(request)] for request in REQUESTS),
    ["slice", "request 4"],
    ["slice", "step 17", "--raw"],
    ["explain-op", "nccl:all_reduce"],
    ["compare", "1", "4"],
    ["what-if", "4", "step 17=10ms"],
    ["learn", "--list"],
    ["search", MARK],
]


@pytest.mark.parametrize("call", PAGES, ids=" ".join)
def test_a_terminal_is_shown_text_and_nothing_that_drives_it(
    world: World, call: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ([], ["--json"]):
        code = main([*call, "--db", str(world.store), *form])
        out, err = capsys.readouterr()
        assert code in (0, 2), err
        assert all(letter.isprintable() or letter == "\n" for letter in out + err)
        for _, text in texts_of(json.loads(out) if form else out.split("\n")):
            assert MARK not in text or len(text) <= LONGEST


def test_a_page_of_html_has_text_of_traces_as_text_alone(world: World, tmp_path: Path) -> None:
    for request in REQUESTS:
        to = tmp_path / f"{request}.html"
        assert main(["report", str(request), "-o", str(to), "--db", str(world.store)]) == 0
        page = to.read_text("utf-8")
        parsed = Parsed(page)
        assert not ACTIVE & {tag for tag, _ in parsed.seen}
        assert not any(name.startswith("on") for _, attributes in parsed.seen for name in attributes)
        links = [value for _, told in parsed.seen for name, value in told.items() if name in ("href", "src", "style")]
        assert not any(value and MARK in value for value in links)
        assert MARK in parsed.text("body") and MARK not in parsed.text("style")
        assert all(letter.isprintable() or letter == "\n" for letter in page)


def test_a_picture_has_words_that_show(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL", reason="Pillow is not installed: no picture is drawn here")
    from PIL import ImageDraw

    words: list[str] = []
    write = ImageDraw.ImageDraw.text

    def noted(self: Any, at: Any, text: str, *given: Any, **named: Any) -> Any:
        words.append(text)
        return write(self, at, text, *given, **named)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", noted)
    for request in REQUESTS:
        to = tmp_path / f"{request}.png"
        assert main(["report", str(request), "-o", str(to), "--db", str(world.store)]) == 0
        assert to.read_bytes().startswith(b"\x89PNG")
    assert any(MARK in text for text in words)
    assert all(text.isprintable() and len(text) <= LONGEST for text in words)
    assert drawn.LONGEST_LINE <= LONGEST


def test_a_trace_for_a_viewer_has_text_that_shows(world: World, tmp_path: Path) -> None:
    to = tmp_path / "slice.json"
    assert main(["slice", "step 17", "--chrome", str(to), "--db", str(world.store)]) == 0
    texts = [text for _, text in texts_of(json.loads(to.read_text("utf-8")))]
    assert any(MARK in text for text in texts)
    assert all(text.isprintable() and len(text) <= chrome.LONGEST for text in texts)
