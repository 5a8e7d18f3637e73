"""The one way into every tool: strict arguments, a deadline, a size cap, an audit line, and errors that teach.

The SDK ignores arguments it does not know, has no deadline, and cannot stop a worker thread; hosts cut long results and
replay calls. All of that is handled here once, so that a tool is a plain function.
"""

import asyncio
import difflib
import functools
import inspect
import json
import logging
import re
import secrets
import sys
import time
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, redirect_stdout
from typing import Annotated, Any

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, ElicitationResult, Resolve
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    TextContent,
    ToolAnnotations,
)
from pydantic import ValidationError

from teller_core.errors import TellerError
from teller_mcp.answers import Answer, content_of, to_text
from teller_mcp.consent import Consent
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.schemas import compact_input, outline

MAX_CHARACTERS = 20_000
MAX_RUNNING = 32
"""Calls that run or wait. More than that is a client gone wrong."""
WORKERS = 4
PROGRESS_S = 1.0

TOOL_OF = {
    "import": "import_trace",
    "captures": "list_slow_requests",
    "slow": "list_slow_requests",
    "why": "run_rca",
    "slice": "get_causal_slice",
    "explain-op": "explain_operator",
    "compare": "compare",
    "capture": "capture_trace",
}
"""The tool for each verb of the command line. Refusals of the core name verbs in backquotes."""

audit = logging.getLogger("teller.audit")
log = logging.getLogger("teller")


class Gate(MCPServer[None]):
    """An MCP server whose every tool call passes the same checks."""

    def __init__(
        self,
        name: str,
        *,
        desk: Desk,
        specs: Sequence[ToolSpec],
        prompts: Iterable[Prompt],
        version: str,
        instructions: str,
        max_characters: int = MAX_CHARACTERS,
    ) -> None:
        self._desk = desk
        self._specs = {spec.name: spec for spec in specs}
        self._tools = {spec.name: self._tool(spec, desk) for spec in specs}
        self._max_characters = max_characters
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="teller")
        self._running: dict[str, Future[Answer]] = {}
        super().__init__(
            name,
            version=version,
            instructions=instructions,
            tools=list(self._tools.values()),
            lifespan=_quiet_stdout,
        )
        for prompt in prompts:
            self.add_prompt(prompt)

    def close(self) -> None:
        """Leave no thread of the model's behind. Nothing is asked afterwards."""
        self._desk.loader.close()

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The answer of tool ``name``. Raises ToolError, one line, for everything that goes wrong."""
        began = time.monotonic()
        outcome, size = "refused", 0
        reporter: asyncio.Task[None] | None = None
        try:
            self._check_arguments(self._known(name), arguments)
            reporter = self._report_progress(self._specs[name], arguments, context)
            with anyio.fail_after(self._specs[name].deadline_s):
                result = await super().call_tool(name, arguments, context)
            if isinstance(result, InputRequiredResult):
                outcome = "asked"
                return result
            size = self._check_size(name, result, arguments.get("max_chars"))
            outcome = "ok"
            return result
        except TimeoutError:
            outcome = "deadline"
            raise ToolError(_late(self._specs[name])) from None
        except ToolError as error:
            if not _anticipated(error):
                outcome = "bug"
            raise ToolError(_words(name, error)) from None
        finally:
            if reporter is not None:
                reporter.cancel()
            known = self._tools[name].parameters["properties"] if name in self._tools else None
            _note("tool", name, known, arguments, outcome=outcome, began=began, size=size)

    def _report_progress(
        self, spec: ToolSpec, arguments: Mapping[str, Any], context: Context[None, Any] | None
    ) -> "asyncio.Task[None] | None":
        """Tell the client once a second how far ``spec`` is. A client that did not ask hears nothing: the SDK sees to that."""
        progress = spec.progress
        if progress is None or context is None:
            return None

        async def report() -> None:
            told = -1.0
            while True:
                try:
                    done, total, words = progress(self._desk, **arguments)
                except TellerError:  # the call itself says so
                    return
                if done > told:  # the protocol wants it to rise
                    await context.report_progress(done, total, words)
                    told = done
                await asyncio.sleep(PROGRESS_S)

        return asyncio.create_task(report())

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[None, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """The prompt ``name`` with its variables filled in. Raises MCPError for an unknown name or variable."""
        began = time.monotonic()
        outcome, size = "refused", 0
        known = {prompt.name: prompt for prompt in await self.list_prompts()}
        declared = {each.name: each for each in known[name].arguments or []} if name in known else None
        given = arguments or {}
        try:
            if declared is None:
                raise MCPError(code=INVALID_PARAMS, message=f"No such prompt{_hint(name, known)}")
            for key in given:
                if key not in declared:
                    hint = _hint(key, declared)
                    raise MCPError(code=INVALID_PARAMS, message=f"Prompt {name} has no such argument{hint}")
            for argument in declared.values():
                if argument.required and not given.get(argument.name):
                    raise MCPError(code=INVALID_PARAMS, message=f"Prompt {name} needs the argument {argument.name}")
            result = await super().get_prompt(name, arguments, context)
            if isinstance(result, GetPromptResult):
                size = sum(len(each.content.text) for each in result.messages if isinstance(each.content, TextContent))
            outcome = "ok"
            return result
        finally:
            _note("prompt", name, declared, given, outcome=outcome, began=began, size=size)

    def _tool(self, spec: ToolSpec, desk: Desk) -> Tool:
        """``spec`` as the SDK wants it: an asynchronous function of the tool's own arguments."""

        async def call(**arguments: Any) -> CallToolResult:
            key = json.dumps([spec.name, arguments], sort_keys=True, default=str)
            answer = await self._work(key, functools.partial(spec.run, desk, **arguments))
            content = content_of(answer)
            return CallToolResult(content=[TextContent(type="text", text=to_text(content))], structured_content=content)

        _, *own = inspect.signature(spec.run).parameters.values()
        if spec.asks is not None:
            asking = Annotated[ElicitationResult[Consent], Resolve(spec.asks(desk))]
            own = [each.replace(annotation=asking) if each.name == "consent" else each for each in own]
            call.__annotations__ = {each.name: each.annotation for each in own}  # where the SDK looks for who asks
        signature = inspect.Signature(own, return_annotation=Annotated[CallToolResult, spec.answer])
        call.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]  # inspect documents the attribute
        tool = Tool.from_function(
            call,
            name=spec.name,
            title=spec.title,
            description=inspect.cleandoc(spec.run.__doc__ or ""),
            annotations=ToolAnnotations(
                read_only_hint=spec.read_only,
                destructive_hint=False,
                idempotent_hint=spec.idempotent,
                open_world_hint=spec.open_world,
            ),
        )
        tool.parameters = compact_input(tool.parameters)
        tool.fn_metadata.output_schema = outline(spec.answer)
        return tool

    async def _work(self, key: str, job: "functools.partial[Answer]") -> Answer:
        """The answer of ``job``, run in a worker thread. A call that is already running is joined, not run twice: clients
        replay calls that took long, and a thread cannot be stopped.
        """
        future = self._running.get(key)
        if future is None:
            if len(self._running) >= MAX_RUNNING:
                raise ToolError(f"Busy: {MAX_RUNNING} calls are running. Try again in a few seconds.")
            future = self._running[key] = self._workers.submit(job)
            future.add_done_callback(lambda _: self._running.pop(key, None))
        return await asyncio.shield(asyncio.wrap_future(future))

    def _known(self, name: str) -> Tool:
        if name not in self._tools:
            raise ToolError(f"No such tool{_hint(name, self._tools)} There are: {', '.join(self._tools)}.")
        return self._tools[name]

    def _check_arguments(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        known = tool.parameters["properties"]
        for key in arguments:
            if key not in known:
                raise ToolError(f"{tool.name} has no such argument{_hint(key, known)} It takes: {', '.join(known)}.")

    def _check_size(self, name: str, result: CallToolResult, most: int | None) -> int:
        """The characters of ``result``. Raises ToolError over the cap, and over the ``most`` that was asked for."""
        size = sum(len(block.text) for block in result.content if isinstance(block, TextContent))
        if size > self._max_characters:
            raise ToolError(
                f"{name}: the answer has {size} characters, over the cap of {self._max_characters}. "
                "Ask for less: detail='concise', a smaller limit, or one request."
            )
        if most is not None and size > most:
            raise ToolError(
                f"{name}: what cannot be left out has {size} characters. Ask with max_chars={size} or more."
            )
        return size


def _note(
    kind: str,
    name: str,
    known: Iterable[str] | None,
    given: Mapping[str, Any],
    *,
    outcome: str,
    began: float,
    size: int,
) -> None:
    """One line about a call: its name and those of its arguments as far as they are ``known``, never what they hold."""
    keys = ",".join(key for key in given if key in (known or ()))
    shown = "(unknown)" if known is None else name
    took = (time.monotonic() - began) * 1e3
    audit.info("%s=%s arguments=%s outcome=%s ms=%.1f characters=%d", kind, shown, keys or "-", outcome, took, size)


@asynccontextmanager
async def _quiet_stdout(_: MCPServer[None]) -> AsyncGenerator[None]:
    """While serving, whatever a library prints goes to stderr: stdout is the protocol's, and a late flush corrupts it."""
    with redirect_stdout(sys.stderr):
        yield


def _late(spec: ToolSpec) -> str:
    if spec.asks is not None:
        return f"{spec.name}: nobody agreed within {spec.deadline_s:g} s. Nothing was started; ask the user and call it again."
    if spec.read_only:
        return f"{spec.name}: not done after {spec.deadline_s:g} s. Ask for less: one request, one step, one span."
    return (
        f"{spec.name}: not done after {spec.deadline_s:g} s; it goes on. Call it again with the same arguments to wait for "
        "its answer: nothing is done twice."
    )


def _anticipated(error: ToolError) -> bool:
    return not isinstance(error, UnexpectedToolError) or isinstance(error.__cause__, TellerError)


def _words(tool: str, error: ToolError) -> str:
    """What the model is told: the text of a refusal, or a reference to the log. Never the text of a crash."""
    cause = error.__cause__
    if isinstance(cause, TellerError):
        return re.sub(r"`([a-z-]+)`", lambda verb: TOOL_OF.get(verb[1], verb[1]), str(cause))
    if isinstance(cause, ValidationError):
        wrong = {_place(item["loc"]): item["msg"] for item in cause.errors(include_input=False, include_url=False)}
        return f"{tool}: " + "; ".join(f"{place}: {why}" for place, why in wrong.items()) + "."
    if isinstance(error, UnexpectedToolError):
        reference = secrets.token_hex(4)
        log.error("%s failed, reference %s", tool, reference, exc_info=cause)
        return (
            f"{tool}: this is a fault of TELLER, not of the call. Its log has the details under reference {reference}."
        )
    return str(cause) if isinstance(cause, ToolError) else str(error)


def _place(location: Sequence[str | int]) -> str:
    """The argument that is wrong. The branches of a union follow it in a location; they say nothing to a caller."""
    return str(location[0]) if location else "arguments"


def _hint(name: str, known: Iterable[str]) -> str:
    """``; did you mean X?`` where one is near, else a full stop. The wrong name itself is not repeated."""
    near = difflib.get_close_matches(name, list(known), 1, cutoff=0.5)
    return f"; did you mean {near[0]}?" if near else "."
