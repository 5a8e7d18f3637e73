"""``teller-mcp``: the server over stdio or HTTP. stdout belongs to the protocol; everything else goes to stderr."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.calls.serving import TOKEN_NAME, named, serving
from teller_core.cli import VERSION, data_folder, store_path
from teller_core.errors import InputError, TellerError
from teller_mcp.log_lines import log_to_stderr
from teller_mcp.paths import default_roots

if TYPE_CHECKING:
    from teller_mcp.gate import Gate


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the client closes the connection, or over HTTP until told to end. Returns 0, 2 for a call that cannot be
    served, 130 when interrupted.
    """
    given = _parser().parse_args(arguments)
    log_to_stderr()
    try:
        _check(given)
        from teller_mcp.server import build_server

        server = build_server(
            store_path(given.db, os.environ),
            _roots(given.root),
            allow_capture=given.allow_capture,
            weights=given.weights,
        )
        try:
            if given.http is None:
                _serve(lambda: server.run("stdio"))
            else:
                _serve_http(server, given)
        finally:
            server.close()
    except TellerError as error:
        print(f"teller-mcp: {error}", file=sys.stderr)  # noqa: T201  # stderr, before the protocol starts
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _serve(run: Callable[[], None]) -> None:
    """``run`` until the client closes the connection, or is gone: an answer that nobody reads is no fault of ours."""
    try:
        run()
    except* BrokenPipeError:
        # The interpreter flushes once more at exit: let it go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        logging.getLogger("teller").info("the client is gone")


def _check(given: argparse.Namespace) -> None:
    """Raise InputError for an option that says something of HTTP where nothing is served over it."""
    for option in ("host", "allow_host", "token_file"):
        if getattr(given, option) and given.http is None:
            raise InputError(named(option), "it says something of HTTP, and the server speaks over stdio", "Add --http")


def _serve_http(server: "Gate", given: argparse.Namespace) -> None:
    from teller_mcp.http import http_app, listen, own_names, serve  # over stdio nobody waits for an HTTP server to load
    from teller_mcp.token_file import read_or_make

    path = given.token_file or data_folder(os.environ) / TOKEN_NAME
    with listen(given.host or "127.0.0.1", given.http, given.allow_host) as listener:
        names = [*own_names(listener), *given.allow_host]
        serve(http_app(server, names, read_or_make(path)), listener)


def _roots(given: Sequence[Path]) -> Sequence[Path]:
    for root in given:
        if not root.is_dir():
            raise InputError(f"--root {root}", "it is no folder", "Name a folder that holds traces")
    return given or default_roots(Path.cwd(), Path.home())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="teller-mcp", description="Why was this LLM request slow? Over MCP, on stdio or HTTP."
    )
    parser.add_argument("--version", action="version", version=f"teller-mcp {VERSION}")
    parser.add_argument(
        "--db",
        type=Path,
        metavar="FILE",
        help="where captures are kept (default: TELLER_DB, else a file in the user's data folder)",
    )
    serving(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
