"""When lines of a log were written and what they have in common, without their texts."""

import sqlite3
from collections import Counter
from typing import NamedTuple

import numpy as np

from teller_core.data.log_templates import template
from teller_core.data.table import UNKNOWN, Int32, Int64
from teller_core.store.tables import text

MOST_LINES = 8_000
"""Of a capture: more take longer to look through than a list of requests may."""
MOST_TEMPLATES = 100
FEWEST = 2
"""Lines of a template that may tell something."""


class ToldLines(NamedTuple):
    """Lines with the templates that are most frequent; ``template`` is an index of ``templates``: (the rule that knows them, or
    what lines have in common that none knows: text of the log). ``request``: the position of the one it names, -1 for none.
    """

    time: Int64
    template: Int32
    request: Int32
    templates: list[tuple[str, str]]


def told_lines(con: sqlite3.Connection, capture: str) -> ToldLines | None:
    """Those of a capture; None where it has more than MOST_LINES."""
    (key,) = con.execute("SELECT key FROM captures WHERE id = ?", (capture,)).fetchone()
    (count,) = con.execute("SELECT count(*) FROM lines WHERE capture = ?", (key,)).fetchone()
    if count > MOST_LINES:
        return None
    said = "CASE WHEN rule = '' THEN untrusted_text ELSE '' END"
    sql = f"SELECT ifnull(time, {UNKNOWN}), rule, {said}, request FROM lines WHERE capture = ?"
    rows = con.execute(sql, (key,)).fetchall()
    called = [_called(text(rule), text(words)) for _, rule, words, _ in rows]
    counts = Counter(called)
    kept = sorted((one for one in counts if counts[one] >= FEWEST), key=lambda one: (-counts[one], one))[
        :MOST_TEMPLATES
    ]
    place = {one: at for at, one in enumerate(kept)}
    mine = [(row[0], place[one], row[3]) for row, one in zip(rows, called, strict=True) if one in place]
    time, code, request = zip(*mine, strict=True) if mine else ((), (), ())
    return ToldLines(np.array(time, np.int64), np.array(code, np.int32), np.array(request, np.int32), kept)


def _called(rule: str, words: str) -> tuple[str, str]:
    return (rule, "") if rule else ("", template("", words))
