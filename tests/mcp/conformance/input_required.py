"""What the conformance suite calls to see that a server can ask its client for more (revision 2026-07-28).

Each answers once it has what it asked for, and asks again as long as it has not. That a state comes back as it was sent is
seen to by the SDK.
"""

from collections.abc import Mapping
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import (
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequest,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)

Said = Context[None, Any]
Answer = str | InputRequiredResult


def _question(message: str, name: str, kind: str = "string") -> ElicitRequest:
    schema: dict[str, Any] = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str, max_tokens: int) -> CreateMessageRequest:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=text))
    return CreateMessageRequest(params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens))


NAME = _question("What is your name?", "name")
CAPITAL = _sample("What is the capital of France?", 100)


def _answered(ctx: Said, key: str, name: str) -> Any:
    """What the user said to the question ``key`` of ``name``; None where it was not answered."""
    answer = (ctx.input_responses or {}).get(key)
    if not isinstance(answer, ElicitResult) or answer.action != "accept":
        return None
    return (answer.content or {}).get(name)


def _ask(asked: Mapping[str, InputRequest], state: str | None = None) -> InputRequiredResult:
    return InputRequiredResult(input_requests=dict(asked), request_state=state)


async def test_input_required_result_elicitation(ctx: Said) -> Answer:
    """Greets the user by name."""
    name = _answered(ctx, "user_name", "name")
    return _ask({"user_name": NAME}) if name is None else f"Hello, {name}!"


async def test_input_required_result_sampling(ctx: Said) -> Answer:
    """What the client's model says."""
    answer = (ctx.input_responses or {}).get("capital_question")
    if not isinstance(answer, CreateMessageResult) or not isinstance(answer.content, TextContent):
        return _ask({"capital_question": CAPITAL})
    return answer.content.text


async def test_input_required_result_list_roots(ctx: Said) -> Answer:
    """The client's roots."""
    answer = (ctx.input_responses or {}).get("client_roots")
    if not isinstance(answer, ListRootsResult):
        return _ask({"client_roots": ListRootsRequest()})
    return "Roots: " + ", ".join(str(root.uri) for root in answer.roots)


async def test_input_required_result_request_state(ctx: Said) -> Answer:
    """Whether the state comes back."""
    confirmed = _answered(ctx, "confirm", "ok")
    if confirmed is None or ctx.request_state != "asked":
        return _ask({"confirm": _question("Please confirm", "ok", "boolean")}, "asked")
    return "state-ok"


async def test_input_required_result_tampered_state(ctx: Said) -> Answer:
    """As the one before, for a client that changes the state."""
    return await test_input_required_result_request_state(ctx)


async def test_input_required_result_multiple_inputs(ctx: Said) -> Answer:
    """Asks three things at once."""
    asked: Mapping[str, InputRequest] = {
        "user_name": NAME,
        "greeting": _sample("Generate a greeting", 50),
        "client_roots": ListRootsRequest(),
    }
    missing = asked.keys() - (ctx.input_responses or {}).keys()
    return _ask(asked, "asked") if missing else "All is there."


async def test_input_required_result_multi_round(ctx: Said) -> Answer:
    """Asks one thing after the other."""
    if ctx.request_state == "named" and (color := _answered(ctx, "step2", "color")) is not None:
        return f"You like {color}."
    if ctx.request_state == "asked" and _answered(ctx, "step1", "name") is not None:
        return _ask({"step2": _question("Step 2: What is your favorite color?", "color")}, "named")
    return _ask({"step1": _question("Step 1: What is your name?", "name")}, "asked")


async def test_input_required_result_capabilities(ctx: Said) -> Answer:
    """Asks only what the client says that it can answer."""
    capabilities = ctx.client_capabilities
    asked: dict[str, InputRequest] = {}
    if capabilities is not None and capabilities.sampling is not None:
        asked["capital_question"] = CAPITAL
    if capabilities is not None and capabilities.elicitation is not None:
        asked["user_name"] = NAME
    missing = asked.keys() - (ctx.input_responses or {}).keys()
    return _ask(asked) if missing else "All that could be asked is there."


async def test_streaming_elicitation(ctx: Said) -> Answer:
    """Tells how far it is, then asks."""
    await ctx.report_progress(1, 2, "about to ask")
    return await test_input_required_result_elicitation(ctx)


TOOLS = (
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_streaming_elicitation,
)


def add_prompts(server: MCPServer[None]) -> None:
    """The prompt that asks."""

    @server.prompt(description="A prompt that asks")
    async def test_input_required_result_prompt(ctx: Said) -> Answer:
        context = _answered(ctx, "user_context", "context")
        asked = _question("What context should the prompt use?", "context")
        return _ask({"user_context": asked}) if context is None else f"Context: {context}"

    assert test_input_required_result_prompt
