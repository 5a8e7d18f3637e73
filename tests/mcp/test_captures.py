"""Recording through the server: only what its operator allowed, with a person's consent, and never past the server's end."""

import json
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, ElicitResult, TextContent

from teller_core.cli import Verbs
from teller_core.errors import InputError
from teller_mcp.captures import BUSY
from teller_mcp.server import build_server
from tests.waiting import alive, until

pytestmark = pytest.mark.anyio
Make = Callable[..., Client]
MODES = ["auto", "legacy"]


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def profiles(folder: Path) -> Path:
    sleep = json.dumps([sys.executable, "-c", "import time; time.sleep(600)"])
    quick = json.dumps([sys.executable, "-c", "print('served')"])
    path = folder / "profiles.toml"
    path.write_text(
        f'[profiles.quick]\ncommand = {quick}\nconsent = "given"\nabout = "a quick one"\n'
        f'[profiles.long]\ncommand = {sleep}\nconsent = "given"\nseconds = 600\nwindow_s = 2\n'
        f"[profiles.asked]\ncommand = {quick}\n"
    )
    return path


@pytest.fixture
def recording(tmp_path: Path, verbs: Callable[..., Verbs]) -> Make:
    """A client of a server that may record: ``recording(answer=...)`` answers its questions, without it cannot be asked."""

    def make(
        *, mode: str = "auto", answer: ElicitResult | None = None, asked: list[str] | None = None, **changes: Any
    ) -> Client:
        given = verbs(**changes)

        async def reply(context: Any, params: Any) -> ElicitResult:
            if asked is not None:
                asked.append(params.message)
            assert answer is not None
            return answer

        server = build_server(tmp_path / "t.db", [tmp_path], verbs=lambda: given, allow_capture=profiles(tmp_path))
        return Client(server, mode=mode, elicitation_callback=reply if answer else None)

    return make


async def called(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text_of(result)
    assert result.structured_content is not None
    assert json.loads(text_of(result)) == result.structured_content
    return result.structured_content


async def outcome(client: Client, **arguments: Any) -> dict[str, Any]:
    """The job once it is over, importing included: a call waits 20 s at most."""
    while True:
        job = (await called(client, "job", wait_s=20, **arguments))["job"]
        if job["state"] not in BUSY:
            return job


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text_of(result)


async def test_nothing_can_be_recorded_where_nothing_was_allowed(connect: Make) -> None:
    async with connect() as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "capture_trace" not in names and "job" not in names
        assert (await refused(client, "capture_trace")).startswith("No such tool")


async def test_wrong_profiles_are_refused_before_the_server_starts(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text("[profiles.a]\ncomand = ['x']")
    with pytest.raises(InputError, match="did you mean command"):
        build_server(tmp_path / "t.db", [tmp_path], allow_capture=tmp_path / "p.toml")


@pytest.mark.parametrize("mode", MODES)
async def test_the_definitions_of_all_tools_together_stay_small(recording: Make, mode: str) -> None:
    async with recording(mode=mode) as client:
        tools = (await client.list_tools()).tools
    wire = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert len(json.dumps(wire, separators=(",", ":"))) <= 10_000
    assert len(tools) <= 10
    shown = {tool.name: tool for tool in tools}
    assert list(shown["capture_trace"].input_schema["properties"]) == ["profile", "seconds", "window_s"]
    assert list(shown["job"].input_schema["properties"]) == ["id", "wait_s", "action"]
    for name in ("capture_trace", "job"):
        tool = shown[name]
        assert tool.annotations is not None and tool.annotations.read_only_hint is False
        assert tool.input_schema["additionalProperties"] is False


async def test_without_a_profile_it_lists_what_may_be_recorded(recording: Make) -> None:
    async with recording() as client:
        answer = await called(client, "capture_trace")
    assert answer["job"] is None
    assert [line["name"] for line in answer["profiles"]] == ["quick", "long", "asked"]
    assert answer["profiles"][0] == {
        "name": "quick", "about": "a quick one", "kind": "command", "seconds": 60.0, "megabytes": 512, "window_s": 0.0,
        "consent": "given",
    }  # fmt: skip
    assert sys.executable not in json.dumps(answer)


@pytest.mark.parametrize("mode", MODES)
async def test_a_recording_is_imported_when_it_ends_and_its_answer_leads_on(
    recording: Make, mode: str, samples: Any
) -> None:
    read: list[Path] = []

    def import_paths(paths: list[Path], store: object, **_: object) -> Any:
        from teller_core.data.report import ImportReport

        read.extend(paths)
        return ImportReport(captures=[samples.capture()])

    told: list[tuple[float, float | None, str | None]] = []

    async def heard(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with recording(mode=mode, import_paths=import_paths) as client:
        started = await called(client, "capture_trace", profile="quick")
        assert started["job"]["state"] in ("starting", "recording", "ending", "importing", "done")
        [call] = started["next"]
        assert (call["tool"], call["arguments"]["wait_s"]) == ("job", 20)
        done: dict[str, Any] = {"job": {"state": "recording"}}
        while done["job"]["state"] in BUSY:
            result = await client.call_tool("job", call["arguments"], progress_callback=heard)
            assert result.structured_content is not None
            done = result.structured_content
        assert (done["job"]["state"], done["job"]["ended_by"], done["job"]["exit"]) == ("done", "itself", 0)
        assert done["job"]["capture"] == samples.capture().id
        [follow] = done["next"]
        assert not (await client.call_tool(follow["tool"], follow["arguments"])).is_error
        assert (await called(client, "job"))["job"] == done["job"]
    [folder] = read
    assert folder.name == done["job"]["recording"]
    assert (folder / "server.log").read_text() == "served\n"
    assert told and told[0][1] == 60.0
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)


async def test_one_recording_runs_at_a_time_and_a_replayed_call_joins_it(recording: Make) -> None:
    async with recording() as client:
        first = await called(client, "capture_trace", profile="long", seconds=500)
        again = await called(client, "capture_trace", profile="long", seconds=500)
        assert again["job"]["id"] == first["job"]["id"]
        assert "is still running" in await refused(client, "capture_trace", profile="quick")
        ended = await called(client, "job", action="cancel")
        assert (ended["job"]["state"], ended["job"]["capture"]) == ("canceled", None)
        assert (await called(client, "capture_trace", profile="quick"))["job"]["id"] != first["job"]["id"]
        await outcome(client)


async def test_a_recording_ended_early_is_kept(recording: Make) -> None:
    async with recording() as client:
        await called(client, "capture_trace", profile="long")
        await called(client, "job", action="finish")
        done = await outcome(client)
    assert (done["state"], done["ended_by"]) == ("done", "asked")
    assert done["capture"] is not None


@pytest.mark.parametrize("mode", MODES)
async def test_a_person_who_agrees_is_asked_what_exactly_will_run(recording: Make, mode: str) -> None:
    asked: list[str] = []
    yes = ElicitResult(action="accept", content={"agreed": True})
    async with recording(mode=mode, answer=yes, asked=asked) as client:
        await called(client, "capture_trace", profile="asked", seconds=9)
        await outcome(client)
    assert asked == [
        f"Record with the profile asked: run {sys.executable} -c print('served'), for at most 9 s and 512 MB?"
    ]


NO = {
    "declined": ElicitResult(action="decline"),
    "canceled": ElicitResult(action="cancel"),
    "unticked": ElicitResult(action="accept", content={"agreed": False}),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("how", NO)
async def test_nothing_starts_when_a_person_does_not_agree(
    recording: Make, mode: str, how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "teller.audit")
    async with recording(mode=mode, answer=NO[how]) as client:
        said = await refused(client, "capture_trace", profile="asked")
        assert (await called(client, "job"))["job"] is None
    assert said.startswith("The user did not agree. Nothing was started")
    assert not (tmp_path / "recordings").exists()
    assert "capture profile=asked consent=declined" in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("mode", MODES)
async def test_a_client_that_cannot_ask_gets_only_what_was_agreed_to_before(recording: Make, mode: str) -> None:
    async with recording(mode=mode) as client:
        said = await refused(client, "capture_trace", profile="asked")
    assert said.startswith("The profile asked: a person has to agree each time, and this client cannot ask one.")


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("capture_trace", {"profile": "quik"}, "profile: there is none of this name; did you mean quick?"),
    ("capture_trace", {"profile": "x; rm -rf"}, "profile: there is none of this name; there are quick, long, asked."),
    ("capture_trace", {"profile": "long", "seconds": 601}, "seconds: 601 is over the profile's 600. Ask for less."),
    ("capture_trace", {"profile": "long", "window_s": 2.5}, "window_s: 2.5 is over the profile's 2. Ask for less."),
    ("capture_trace", {"profile": "long", "seconds": 0}, "capture_trace: seconds: Input should be greater than 0."),
    ("capture_trace", {"profile": "long", "argv": ["x"]}, "capture_trace has no such argument. It takes: profile,"),
    ("capture_trace", {"profile": "long", "consent": True}, "capture_trace has no such argument"),
    ("job", {"id": "none"}, "job: there is none of this id; the last are none."),
    ("job", {"action": "kill"}, "job: action: Input should be 'status', 'finish' or 'cancel'."),
    ("job", {"wait_s": 21}, "job: wait_s: Input should be less than or equal to 20."),
    ("job", {"action": "cancel"}, "job: none was started. Start one with capture_trace."),
]


@pytest.mark.parametrize(("tool", "arguments", "words"), WRONG)
async def test_what_goes_beyond_the_profiles_is_refused(
    recording: Make, tool: str, arguments: dict[str, Any], words: str
) -> None:
    async with recording() as client:
        assert (await refused(client, tool, **arguments)).startswith(words)


async def test_what_cannot_be_imported_is_said_with_the_folder_that_is_kept(recording: Make, tmp_path: Path) -> None:
    def import_paths(*_: object, **__: object) -> Any:
        raise InputError("bundle", "it holds nothing", "Record again")

    async with recording(import_paths=import_paths) as client:
        await called(client, "capture_trace", profile="quick")
        job = await outcome(client)
    assert job["state"] == "failed"
    assert job["error"] == "it was recorded and cannot be imported: bundle: it holds nothing. Record again."
    assert (tmp_path / "recordings" / job["recording"] / "bundle.json").exists()


async def test_every_recording_leaves_audit_lines(recording: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "teller.audit")
    async with recording() as client:
        job = (await called(client, "capture_trace", profile="quick"))["job"]["id"]
        await outcome(client)
    lines = [record.getMessage() for record in caplog.records if "capture job=" in record.getMessage()]
    assert lines[0] == f"capture job={job} profile=quick consent=given state=started"
    assert lines[1].startswith(f"capture job={job} profile=quick state=done capture=")


def test_a_server_that_is_killed_leaves_no_service_behind(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"import os, time; open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    command = json.dumps([sys.executable, "-c", code])
    (tmp_path / "p.toml").write_text(f'[profiles.a]\ncommand = {command}\nconsent = "given"')
    calls = [
        {"method": "initialize", "id": 1, "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "0"}}},
        {"method": "notifications/initialized"},
        {"method": "tools/call", "id": 2, "params": {"name": "capture_trace", "arguments": {"profile": "a"}}},
    ]  # fmt: skip
    words = ["--root", str(tmp_path), "--db", str(tmp_path / "t.db"), "--allow-capture", str(tmp_path / "p.toml")]
    with subprocess.Popen(
        [sys.executable, "-m", "teller_mcp", *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **call}) + "\n" for call in calls))
        server.stdin.flush()
        until(lambda: pid.exists() and pid.read_text() != "")
        server.kill()
    until(lambda: not alive(int(pid.read_text())))
