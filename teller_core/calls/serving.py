"""How the MCP server is called: `teller serve` and `teller-mcp` take the same, and the one hands it on to the other."""

import argparse
from pathlib import Path
from typing import cast

from teller_core.calls.arguments import path

PORT = 8377
TOKEN_NAME = "http-token"
"""The file with the token of HTTP, in TELLER's folder of the user's data folder."""
OPTIONS = ("root", "allow_capture", "weights", "http", "token_file", "host", "allow_host")


def serving(parser: argparse.ArgumentParser) -> None:
    """Add what the server takes, save for the database."""
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
        "--allow-capture",
        type=path,
        metavar="PROFILES",
        help="a TOML file that says what may be recorded (default: nothing may)",
    )
    parser.add_argument(
        "--weights", type=path, metavar="FILE", help="of the model of root causes (default: those that ship)"
    )
    http = parser.add_argument_group("over HTTP")
    http.add_argument(
        "--http",
        type=_port,
        nargs="?",
        const=PORT,
        metavar="PORT",
        help=f"serve http://127.0.0.1:PORT/mcp instead of stdio (default: {PORT}; 0: any that is free)",
    )
    http.add_argument(
        "--token-file",
        type=path,
        metavar="FILE",
        help=f"holds the token that clients show, made where it is missing (default: {TOKEN_NAME} in the user's data folder)",
    )
    http.add_argument(
        "--host", metavar="ADDRESS", help="listen there, where other machines can come; it needs --allow-host"
    )
    http.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="what clients call the server, besides 127.0.0.1:PORT and localhost:PORT; can be given again",
    )


def named(option: str) -> str:
    """One of OPTIONS as it is written."""
    return f"--{option.replace('_', '-')}"


def again(given: argparse.Namespace) -> list[str]:
    """The words that say what ``given`` says of OPTIONS."""
    words: list[str] = []
    for option in OPTIONS:
        value = getattr(given, option)
        for one in cast("list[object]", value) if isinstance(value, list) else [value]:
            words += [] if one is None else [f"{named(option)}={one}"]
    return words


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)
