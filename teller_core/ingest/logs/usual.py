"""Lines that services write all the time: head and message read by one expression, without a look at anything else.

A line that does not match to the last character goes the long way, which knows all forms. What is read here holds numbers
and names of the engine's own only, so there is nothing to take out of it.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from teller_core.data.log_lines import as_json
from teller_core.ingest.logs.patterns import patterns

_HEAD = (
    r"(?:\((?P<tag_>\w{1,64}) pid=(?P<pid_>\d{1,9})\) )?"
    r"(?:(?P<level_>INFO|DEBUG) (?P<stamp_>\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3,6})?) \[?[\w/.-]{1,64}:\d{1,6}\] "
    r"|\[(?P<date_>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{3,6})?)(?P<ranks_>(?: [A-Z_]{1,8}\d{1,6}){0,5})\] )"
)
_ACCESS = re.compile(
    r"(?:\((?P<tag_>\w{1,64}) pid=(?P<pid_>\d{1,9})\) )?(?P<level_>INFO): {5}(?P<message_>(?P<client>[\d.]{7,15}:\d{1,5}) - "
    r'"(?P<method>GET|POST) (?P<path>(?:/(?:v\d|[a-z]{1,32})){1,8}) HTTP/1\.1" (?P<status>\d{3}) ?[A-Za-z ]{0,32})'
)
"""Of uvicorn; a path with anything but plain words in it may hold what is nobody's business."""


class Usual(NamedTuple):
    """One kind of line, of ``rule``: ``key`` is in every one."""

    rule: str
    key: str
    read: Callable[[str], "re.Match[str] | None"]
    names: tuple[str, ...]
    json: str
    """The fields as a JSON object, for their values to be filled in."""
    stamped: bool

    def fields(self, match: "re.Match[str]") -> tuple[str, dict[str, str]]:
        """The fields of a line as a JSON object, and as they are."""
        values = match.group("message_", *self.names)[1:]
        some = dict(zip(self.names, values, strict=True))
        if None not in values:
            return self.json % values, some
        some = {name: value for name, value in some.items() if value is not None}
        return as_json(some), some


def find(line: str) -> "tuple[Usual, re.Match[str]] | None":
    """The kind of a usual line, and its parts; None for any other line."""
    for usual in usuals():
        if usual.key in line:
            match = usual.read(line)
            return None if match is None else (usual, match)
    return None


@cache
def usuals() -> tuple[Usual, ...]:
    """The kinds, in the order in which they are asked."""
    whole = [(each.id, each.key, each.usual.pattern) for each in patterns() if each.usual is not None]
    made = [_usual(rule, key, re.compile(_HEAD + f"(?P<message_>{message})")) for rule, key, message in whole]
    return (*made, _usual("uvicorn.access", ' HTTP/1.1" ', _ACCESS))


def _usual(rule: str, key: str, regex: "re.Pattern[str]") -> Usual:
    names = tuple(name for name in regex.groupindex if not name.endswith("_"))
    json = "{" + ",".join(f'"{name}":"%s"' for name in names) + "}"
    return Usual(rule, key, regex.fullmatch, names, json, "stamp_" in regex.groupindex)
