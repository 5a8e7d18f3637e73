"""The server as it is, with what the conformance suite calls besides: ``python -m tests.mcp.conformance.server``.

The suite cannot show a token, so that it is shown here for it; all other checks of requests hold.
"""

import argparse
import logging
import sys
from pathlib import Path
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult, InputRequiredResult
from starlette.types import ASGIApp, Receive, Scope, Send

from teller_mcp.gate import Gate
from teller_mcp.http import http_app, listen, own_names, serve
from teller_mcp.server import build_server
from teller_mcp.token_file import read_or_make
from tests.mcp.conformance import contents, input_required

TOOLS = (*contents.TOOLS, *input_required.TOOLS)
NAMES = {tool.__name__ for tool in TOOLS}


class Extended(Gate):
    """The server under test. What it has besides for the suite is not TELLER's and does not pass its checks of answers."""

    def extend(self) -> None:
        """Take up what the suite calls, reads and asks for."""
        for tool in TOOLS:
            self.add_tool(tool, structured_output=False)
        contents.add_resources(self)
        contents.add_prompts(self)
        input_required.add_prompts(self)
        contents.add_handlers(self, self._lowlevel_server)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[None, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """The answer of tool ``name``."""
        if name in NAMES:
            return await MCPServer.call_tool(self, name, arguments, context)
        return await super().call_tool(name, arguments, context)


def showing(app: ASGIApp, token: str) -> ASGIApp:
    """``app`` for clients that show no token."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {token}".encode())]
        await app(scope, receive, send)

    return answer


def main() -> int:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--http", type=int, required=True)
    parser.add_argument("--token-file", type=Path, required=True)
    parser.add_argument("--db", type=Path, required=True)
    given = parser.parse_args()
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("mcp").setLevel(logging.WARNING)
    server = build_server(given.db, [], gate=Extended)
    assert isinstance(server, Extended)
    server.extend()
    token = read_or_make(given.token_file)
    with listen("127.0.0.1", given.http, []) as listener:
        try:
            serve(showing(http_app(server, own_names(listener), token), token), listener)
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
