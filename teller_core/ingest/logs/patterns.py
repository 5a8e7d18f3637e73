"""The log lines that are known, as ``patterns.toml`` lists them."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast

MAX_FRONT = 4096
"""Characters in which a message shows what it is. Only single fields are looked for behind them."""


class Pattern(NamedTuple):
    """One known kind of line. See ``patterns.toml`` for what each field means."""

    id: str
    key: str
    regex: re.Pattern[str]
    find: Mapping[str, re.Pattern[str]]
    usual: re.Pattern[str] | None
    covers: bool
    versions: str
    sample: str
    fields: Mapping[str, str]


class Known(NamedTuple):
    """What a pattern read from a message."""

    pattern: Pattern
    fields: dict[str, str]


@cache
def patterns() -> tuple[Pattern, ...]:
    """All patterns, in the order in which they are tried."""
    listed = tomllib.loads(Path(__file__).with_name("patterns.toml").read_text("utf-8"))["pattern"]
    return tuple(_pattern(cast("dict[str, Any]", entry)) for entry in listed)


def recognize(message: str) -> Known | None:
    """The first pattern that reads ``message``, with its fields; None where none does.

    ``message`` must hold no prompts: what a user wrote could look like fields.
    """
    for key, pattern in _by_key():
        if key in message and (known := _read(pattern, message)) is not None:
            return known
    return None


def recognize_numbers(message: str) -> Known | None:
    """As :func:`recognize`, of those patterns alone that leave no room for prompts and secrets."""
    for key, pattern in _of_numbers():
        if key in message and (known := _read(pattern, message)) is not None:
            return known
    return None


def _read(pattern: Pattern, message: str) -> Known | None:
    if pattern.usual is not None and (match := pattern.usual.fullmatch(message)) is not None:
        return Known(pattern, {name: value for name, value in match.groupdict().items() if value is not None})
    front = message[:MAX_FRONT]
    match = pattern.regex.match(front) if pattern.covers else pattern.regex.search(front)
    if match is None:
        return None
    fields = {name: value for name, value in match.groupdict().items() if value is not None}
    for name, regex in pattern.find.items():
        if (found := regex.search(message)) is not None:
            fields[name] = found[1]
    return Known(pattern, fields)


@cache
def _by_key() -> tuple[tuple[str, Pattern], ...]:
    return tuple((pattern.key, pattern) for pattern in patterns())


@cache
def _of_numbers() -> tuple[tuple[str, Pattern], ...]:
    return tuple((key, pattern) for key, pattern in _by_key() if pattern.covers)


def _pattern(entry: Mapping[str, Any]) -> Pattern:
    return Pattern(
        entry["id"],
        entry["key"],
        re.compile(entry["regex"]),
        {name: re.compile(regex) for name, regex in entry.get("find", {}).items()},
        re.compile(entry["usual"]) if "usual" in entry else None,
        entry.get("covers", False),
        entry["versions"],
        entry["sample"],
        entry["fields"],
    )
