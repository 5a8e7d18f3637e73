"""``teller-mcp``: the server over stdio. stdout belongs to the protocol; everything else goes to stderr."""

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from teller_core.cli import VERSION, store_path
from teller_core.errors import InputError, TellerError
from teller_mcp.paths import default_roots


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until the client closes the connection. Returns 0, or 2 for a call that cannot be served."""
    given = _parser().parse_args(arguments)
    # Before the SDK does it: its handler wraps lines at 80 columns, and an audit line is one line.
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(name)s %(levelname)s %(message)s")
    logging.getLogger("mcp").setLevel(logging.WARNING)
    try:
        from teller_mcp.server import build_server

        server = build_server(
            store_path(given.db, os.environ),
            _roots(given.root),
            allow_capture=given.allow_capture,
            weights=given.weights,
        )
        try:
            _serve(lambda: server.run("stdio"))
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


def _roots(named: Sequence[Path]) -> Sequence[Path]:
    for root in named:
        if not root.is_dir():
            raise InputError(f"--root {root}", "it is no folder", "Name a folder that holds traces")
    return named or default_roots(Path.cwd(), Path.home())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="teller-mcp", description="Why was this LLM request slow? Over MCP, on stdio."
    )
    parser.add_argument("--version", action="version", version=f"teller-mcp {VERSION}")
    parser.add_argument(
        "--root",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder whose traces may be imported; can be given again. Default: the current folder, unless that is the "
        "home folder or above it: then none",
    )
    parser.add_argument(
        "--db",
        type=Path,
        metavar="FILE",
        help="where captures are kept (default: TELLER_DB, else a file in the user's data folder)",
    )
    parser.add_argument(
        "--allow-capture",
        type=Path,
        metavar="PROFILES",
        help="a TOML file that says what may be recorded: it adds the tools capture_trace and job (default: nothing may)",
    )
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="of the model of root causes (default: those that ship)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
