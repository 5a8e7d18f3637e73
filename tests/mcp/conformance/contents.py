"""What the conformance suite calls and reads besides what a server has anyway: one tool, resource or prompt a kind of content.

Their names and what they answer are the suite's: it says of each scenario what a server has to offer for it.
"""

import base64
import json
from collections.abc import Sequence
from typing import Any

import anyio
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.shared.exceptions import MCPError
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    Completion,
    ContentBlock,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    TextResourceContents,
    UnsubscribeRequestParams,
)

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
"""A PNG of one red pixel."""
SILENCE = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAA"
"""A WAV of one sample."""
PAUSE_S = 0.05
"""Between what a client is told of a call: the suite wants to see that it comes bit by bit."""
Said = Context[None, Any]


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _image() -> ImageContent:
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


def _resource(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type=mime_type, text=text))


async def test_simple_text() -> str:
    """A text."""
    return "This is a simple text response for testing."


async def test_image_content() -> list[ContentBlock]:
    """A picture."""
    return [_image()]


async def test_audio_content() -> list[ContentBlock]:
    """A sound."""
    return [AudioContent(type="audio", data=SILENCE, mime_type="audio/wav")]


async def test_embedded_resource() -> list[ContentBlock]:
    """A resource."""
    return [_resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")]


async def test_multiple_content_types() -> list[ContentBlock]:
    """A text, a picture and a resource."""
    mixed = _resource("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')
    return [_text("Multiple content types test:"), _image(), mixed]


async def test_error_handling() -> str:
    """A refusal."""
    raise ToolError("This tool intentionally returns an error for testing")


async def test_tool_with_logging(ctx: Said) -> str:
    """A text, after three messages of the log."""
    for told in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(told)
        await anyio.sleep(PAUSE_S)
    return "It was logged."


async def test_logging_tool(ctx: Said) -> str:
    """A text, after one message of the log, for those who asked for such messages."""
    await ctx.info("Tool execution started")
    return "It was logged for who asked for it."


async def test_tool_with_progress(ctx: Said) -> str:
    """A text, after three reports of how far it is."""
    for done in (0, 50, 100):
        await ctx.report_progress(done, 100, f"{done} of 100")
        await anyio.sleep(PAUSE_S)
    return "It was told how far it is."


async def test_sampling(prompt: str, ctx: Said) -> str:
    """What the client's model says to a prompt."""
    message = SamplingMessage(role="user", content=_text(prompt))
    result = await ctx.session.create_message(messages=[message], max_tokens=100)
    assert isinstance(result.content, TextContent)
    return f"LLM response: {result.content.text}"


async def test_missing_capability(ctx: Said) -> str:
    """A text, for clients that say that they have a model."""
    capabilities = ctx.client_capabilities
    if capabilities is None or capabilities.sampling is None:
        needed = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This needs a client that samples", needed)
    return "The client has a model."


async def _ask(ctx: Said, message: str, properties: dict[str, Any], required: Sequence[str]) -> str:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    result = await ctx.session.elicit_form(message, schema, related_request_id=ctx.request_id)
    return f"action={result.action}, content={json.dumps(result.content)}"


async def test_elicitation(message: str, ctx: Said) -> str:
    """What the user answers."""
    properties = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    return f"User response: {await _ask(ctx, message, properties, list(properties))}"


async def test_elicitation_sep1034_defaults(ctx: Said) -> str:
    """What the user answers to questions with defaults."""
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": True},
    }
    return f"Elicitation completed: {await _ask(ctx, 'Who are you?', properties, ())}"


async def test_elicitation_sep1330_enums(ctx: Said) -> str:
    """What the user chooses."""
    options, titles = ["option1", "option2", "option3"], ["First", "Second", "Third"]
    titled = [{"const": value, "title": title} for value, title in zip(options, titles, strict=True)]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {"type": "string", "enum": options, "enumNames": titles},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return f"Elicitation completed: {await _ask(ctx, 'What do you choose?', properties, ())}"


async def test_trigger_tool_change(ctx: Said) -> str:
    """A text, after those who listen heard that there may be other tools."""
    await ctx.notify_tools_changed()
    return "It was told that there may be other tools."


async def test_trigger_prompt_change(ctx: Said) -> str:
    """A text, after those who listen heard that there may be other prompts."""
    await ctx.notify_prompts_changed()
    return "It was told that there may be other prompts."


TOOLS = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
    test_tool_with_logging,
    test_logging_tool,
    test_tool_with_progress,
    test_sampling,
    test_missing_capability,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_trigger_tool_change,
    test_trigger_prompt_change,
)


def add_resources(server: MCPServer[None]) -> None:
    """The resources that the suite reads."""

    @server.resource("test://static-text", description="A text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", description="A picture", mime_type="image/png")
    def static_binary() -> bytes:
        return base64.b64decode(PIXEL)

    @server.resource("test://template/{id}/data", description="What has an id", mime_type="application/json")
    def template(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})

    @server.resource("test://watched-resource", description="What can be watched", mime_type="text/plain")
    def watched() -> str:
        return "This is the content of the watched resource."

    assert static_text and static_binary and template and watched


def add_prompts(server: MCPServer[None]) -> None:
    """The prompts that the suite asks for."""

    @server.prompt(description="A prompt without arguments")
    def test_simple_prompt() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(description="A prompt with arguments")
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(description="A prompt with a resource")
    def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
        embedded = _resource(resourceUri, "text/plain", "Embedded resource content for testing.")
        return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]

    @server.prompt(description="A prompt with a picture")
    def test_prompt_with_image() -> list[UserMessage]:
        return [UserMessage(_image()), UserMessage("Please analyze the image above.")]

    assert test_simple_prompt and test_prompt_with_arguments
    assert test_prompt_with_embedded_resource and test_prompt_with_image


def add_handlers(server: MCPServer[None], protocol: Server[Any]) -> None:
    """What the suite asks of ``server``, whose inner server is ``protocol``, that is neither a tool, a resource nor a prompt."""

    async def done(*_: Any) -> EmptyResult:
        return EmptyResult()

    protocol.add_request_handler("resources/subscribe", SubscribeRequestParams, done)
    protocol.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, done)
    protocol.add_request_handler("logging/setLevel", SetLevelRequestParams, done)

    @server.completion()
    async def complete(*_: Any) -> Completion:
        return Completion(values=["paris", "park", "party"], total=3, has_more=False)

    assert complete
