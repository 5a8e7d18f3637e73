"""Where a text stands: ids of requests, names of spans, lines of logs, in one capture or all, with what to look at next."""

import re
from collections.abc import Sequence
from zlib import crc32

from teller_core.data.dates import date_of
from teller_core.data.report import Cell
from teller_core.data.report_search import SearchKind, SearchReport
from teller_core.data.request_ids import id_forms
from teller_core.errors import InputError
from teller_core.store.search import KINDS, LINE, REQUEST, Found, Hit, Place, Wanted
from teller_core.store.search import search as found_in
from teller_core.store.store import Store
from teller_core.tell.names import shorten
from teller_core.tell.visible import visible

ALL = "all"
"""In place of a capture's id, which has no such letters."""
LONGEST_TEXT, MOST_WORDS = 200, 8
LONGEST = 300
"""Characters of a line that are shown."""
COLUMNS = (
    "kind",
    "handle",
    "untrusted_text",
    "capture",
    "request",
    "step",
    "time",
    "took_ms",
    "calls",
    "total_ms",
    "where",
)
FIRST = 3
"""Columns that are always there."""
_CURSOR = re.compile(r"(?P<of>[0-9a-f]{8})\.(?P<key>\d{1,18})\.(?P<part>[0-2])\.(?P<row>\d{1,18})")


def search(
    store: Store,
    text: str,
    *,
    capture: str | None = None,
    kind: SearchKind = "any",
    limit: int = 20,
    cursor: str | None = None,
) -> SearchReport:
    """What holds all words of ``text``, whichever case, in the newest capture, the one named, or ALL, the newest first.

    Raises InputError for a text without words or of too many, and for a cursor of another search.
    """
    text = visible(text)  # as names and lines are shown
    meant = id_forms(text)[0]
    words = [meant] if meant != text.strip() else text.split()
    if not words or len(words) > MOST_WORDS or len(text) > LONGEST_TEXT:
        why = f"it has to have 1 to {MOST_WORDS} words and at most {LONGEST_TEXT} characters"
        raise InputError("the text to search for", why, "Give a part of a name, an id or a line")
    spans = [one for one in KINDS if one not in (REQUEST, LINE)]
    wanted = Wanted(words, KINDS if kind == "any" else spans if kind == "span" else [kind])
    one = None if capture == ALL else store.resolve(capture)
    of = f"{crc32(repr((words, kind, one)).encode('utf-8', 'replace')):08x}"
    begin = None if cursor is None else _begin(cursor, of)
    found = store.ask(found_in, wanted, one, begin, limit)
    following = found.following
    columns, rows = _table([_row(hit, one is None) for hit in found.hits])
    return SearchReport(
        capture=one,
        columns=columns,
        rows=rows,
        counts=found.counts if begin is None else {},
        next_cursor=None if following is None else f"{of}.{following.key}.{following.part}.{following.row}",
        note=_note(found, one, begin is None),
    )


def _begin(cursor: str, of: str) -> Place:
    given = _CURSOR.fullmatch(cursor)
    if given is None or given["of"] != of:
        raise InputError("the cursor", "it does not come from this search", "Begin again without a cursor")
    return Place(int(given["key"]), int(given["part"]), int(given["row"]))


def _table(rows: Sequence[Sequence[Cell]]) -> tuple[list[str], list[list[Cell]]]:
    """The columns that have a value, and what the rows have in them."""
    shown = [at for at in range(len(COLUMNS)) if at < FIRST or any(row[at] is not None for row in rows)]
    return [COLUMNS[at] for at in shown], [[row[at] for at in shown] for row in rows]


def _row(hit: Hit, several: bool) -> list[Cell]:
    return [
        hit.kind,
        _handle(hit),
        visible(hit.text)[:LONGEST] if hit.kind in (REQUEST, LINE) else shorten(hit.text),
        hit.capture[:12] if several else None,
        hit.request,
        hit.step,
        date_of(hit.time),
        _ms(hit.took),
        hit.calls,
        _ms(hit.total),
        visible(hit.where) or None,
    ]


def _handle(hit: Hit) -> str | None:
    """What a slice is to be taken of: the span, else the step or the request that a line is about."""
    if hit.row is not None:
        return f"{hit.rank}:{hit.row}"
    if hit.step is not None:
        return f"step {hit.step}"
    return None if hit.request is None else f"request {hit.request}"


def _ms(ns: int | None) -> float | None:
    return None if ns is None else round(ns / 1e6, 3)


def _note(found: Found, one: str | None, first: bool) -> str:
    if not found.whole and first:
        return "Not all was looked through: counts are of what was, and the next page goes on."
    if found.hits or not first:
        return ""
    return "Nothing here holds it. Try a shorter part of it" + (
        ", or all captures: --capture all, in a tool capture=all." if one is not None else "."
    )
