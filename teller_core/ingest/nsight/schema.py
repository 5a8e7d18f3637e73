"""The tables of a SQLite database and where their columns stand in a row, from the text of CREATE TABLE."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from teller_core.errors import LimitError
from teller_core.ingest.nsight.cells import INTEGER, TEXT
from teller_core.ingest.nsight.pages import Pages
from teller_core.ingest.nsight.rows import Reading, Wanted

MAX_TABLES = 2000
"""An export has about a hundred."""
_TOKEN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?(?:\*/|$))|"(?P<double>(?:[^"]|"")*)"|\[(?P<square>[^\]]*)\]|`(?P<tick>(?:[^`]|``)*)`"""
    r"""|'(?P<single>(?:[^']|'')*)'|(?P<word>[^\s"'`\[\],()]+)|(?P<mark>[(),])""",
    re.DOTALL,
)
_CONSTRAINTS = frozenset({"CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN"})


class Table(NamedTuple):
    """A table: the page its rows hang under, and the place of each column in a row. ``row_id``: the columns that are the
    row's number and therefore stand in no row."""

    name: str
    root: int
    columns: Mapping[str, int]
    row_id: frozenset[str] = frozenset()


def tables(pages: Pages) -> dict[str, Table]:
    """The tables of a database by name. Views, triggers, indexes and virtual tables hold no rows and are left out."""
    found: dict[str, Table] = {}
    reading = Reading(pages, cut_at=1 << 17)
    wanted = (Wanted(0, TEXT), Wanted(1, TEXT), Wanted(3, INTEGER), Wanted(4, TEXT))
    for block in reading.blocks(1, wanted):
        for kind, name, root, text in zip(*block.tolist(), strict=True):
            if reading.text(kind) == "table" and root > 0:
                columns, row_id = columns_of(reading.text(text))
                found[reading.text(name)] = Table(reading.text(name), root, columns, row_id)
        if len(found) > MAX_TABLES:
            raise LimitError(pages.name, f"it has over {MAX_TABLES} tables", "Name an export of Nsight Systems")
    return found


def columns_of(text: str) -> tuple[dict[str, int], frozenset[str]]:
    """(place in a row by name, the names that stand for the row's number) of the table that ``text`` creates."""
    columns: dict[str, int] = {}
    integers: set[str] = set()
    keys: set[str] = set()
    for item in _items(text):
        (first, quoted), words = item[0], [word.upper() for word, _ in item]
        if not quoted and words[0] in _CONSTRAINTS:
            if words[:3] == ["PRIMARY", "KEY", "("] and len(item) == 5:
                keys.add(item[3][0])
        elif "AS" not in words[1:] or "STORED" in words:  # a column computed when it is read stands in no row
            columns[first] = len(columns)
            integers |= {first} if words[1:2] == ["INTEGER"] else set()
            keys |= {first} if _is_key(words) else set()
    return columns, frozenset(integers & keys)


def _is_key(words: Sequence[str]) -> bool:
    """Whether a column's definition makes it the key. One that descends is kept in the rows: the engine has it so."""
    places = [k for k, pair in enumerate(pairwise(words)) if pair == ("PRIMARY", "KEY")]
    return any(list(words[k + 2 : k + 3]) != ["DESC"] for k in places)


def _items(text: str) -> Iterator[list[tuple[str, bool]]]:
    """The definitions between the outermost brackets, each as (word, whether it was quoted)."""
    depth, item = 0, list[tuple[str, bool]]()
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        mark = match["mark"]
        if kind == "comment":
            continue
        depth += (mark == "(") - (mark == ")")
        if depth == 0 and mark == ")":
            break
        if depth == 1 and mark == ",":
            if item:
                yield item
            item = []
        elif depth and not (depth == 1 and mark == "(" and not item):
            quoted = kind in ("double", "square", "tick", "single")
            item.append((match[kind or "word"], quoted))
    if item:
        yield item
