"""Where a text stands in captures: in ids of requests, in names of spans, in log lines. The newest capture first.

Names are looked up among the interned ones (see span_names.py), ids and lines by LIKE: a capture is a few milliseconds. One
call looks through MOST rows; where that is not all, it says so, and the next begins where this one ended.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import zstandard

from teller_core.data.request_ids import id_forms
from teller_core.data.table import Int64
from teller_core.data.trace import Layer
from teller_core.store.questions import BEGAN, traced
from teller_core.store.span_names import read_names
from teller_core.store.spans import find_tree
from teller_core.store.strings import PIECE, matching
from teller_core.store.tables import containing, text

MOST = 500_000
"""Ids, names and lines that one call looks through: some 0.2 s."""
A_PART = 300
"""What beginning with ids, names or lines of a capture costs, in such rows."""
LONGEST = 4096
"""Characters of a line or a name that are handed on."""
ANNOTATION = "annotation"
SPAN_KINDS: Sequence[str] = [
    ANNOTATION if layer in (Layer.REQUEST, Layer.ENGINE, Layer.LOG) else layer.name.lower() for layer in Layer
]
"""What the spans of a layer are called as something to find, by the layer's number."""
IDS, LINES = ("requests.engine_id", "requests.client_id", "requests.trace_id"), ("lines.untrusted_text",)
REQUEST, LINE = "request", "log_line"
KINDS = (REQUEST, *dict.fromkeys(SPAN_KINDS), LINE)


class Wanted(NamedTuple):
    """What is looked for: all of ``words`` (without case; beyond ASCII, in ids and lines, as written) in things of ``kinds``."""

    words: Sequence[str]
    kinds: Sequence[str]


class Place(NamedTuple):
    """Where to go on: the capture's key, what of it (a position in PARTS), and the first row of that."""

    key: int
    part: int
    row: int


class Hit(NamedTuple):
    """Something that holds the text. None is what it has not, or nobody recorded. Times int ns, by the capture's clock.

    Of a name of spans: how many there are, ns of all, and when and where the longest was. ``rank``: a position.
    """

    place: Place
    capture: str
    kind: str
    text: str
    time: int | None = None
    took: int | None = None
    request: int | None = None
    step: int | None = None
    rank: int | None = None
    row: int | None = None
    calls: int | None = None
    total: int | None = None
    where: str = ""


class Found(NamedTuple):
    """A page of hits, and where the next one begins. ``counts``: what holds the text, by kind, in what was looked through."""

    hits: list[Hit]
    counts: dict[str, int]
    following: Place | None
    whole: bool
    """Whether all was looked through."""


class _Looked(NamedTuple):
    """One part of a capture: the rows that match, in order, and how many of which kind; how much was looked through, and, where
    that was not all, the first row that was not.
    """

    rows: list[int]
    counts: dict[str, int]
    looked: int
    stopped: int | None
    tell: Callable[[list[int]], Iterator[Hit]]
    """The hits of some of ``rows``."""


class _Capture(NamedTuple):
    con: sqlite3.Connection
    key: int
    id: str


def search(con: sqlite3.Connection, wanted: Wanted, capture: str | None, begin: Place | None, limit: int) -> Found:
    """The first ``limit`` hits from ``begin`` on, in one capture (an id), or in all of them. The first page counts all, others
    end when they are full.
    """
    hits: list[Hit] = []
    counts: Counter[str] = Counter()
    room = MOST
    following: Place | None = None
    for one, part, low in _parts(con, wanted, capture, begin):
        here = Place(one.key, part, low)
        if room <= 0 or (begin is not None and len(hits) > limit):
            following = here
            break
        found = PARTS[part].look(one, wanted, low, room)
        counts.update(found.counts)
        hits += found.tell(found.rows[: limit + 1 - len(hits)])
        room -= A_PART + found.looked
        if found.stopped is not None:
            following = here._replace(row=found.stopped)
            break
    return Found(hits[:limit], dict(counts), hits[limit].place if len(hits) > limit else following, following is None)


def _parts(
    con: sqlite3.Connection, wanted: Wanted, capture: str | None, begin: Place | None
) -> Iterator[tuple[_Capture, int, int]]:
    """Each part of each capture in which something is looked for, and its first row, from ``begin`` on."""
    sql = "SELECT key, id FROM captures WHERE key <= ?1 AND (?2 IS NULL OR id = ?2) ORDER BY key DESC"
    newest = 2**63 - 1 if begin is None else begin.key
    for key, identity in con.execute(sql, (newest, capture)):
        for part, (kinds, _) in enumerate(PARTS):
            here = begin if begin is not None and begin.key == key else Place(key, 0, 0)
            if part >= here.part and kinds & set(wanted.kinds):
                yield _Capture(con, key, identity), part, here.row if part == here.part else 0


def _requests(one: _Capture, wanted: Wanted, low: int, room: int) -> _Looked:
    rows, looked, stopped = _like(one, IDS, wanted.words, low, room)

    def tell(some: list[int]) -> Iterator[Hit]:
        sql = f"""SELECT r.number, r.engine_id, r.client_id, r.trace_id, {BEGAN},
            (SELECT value FROM request_expectations WHERE capture = r.capture AND request = r.position AND metric = 'e2e')
            FROM requests r WHERE r.capture = ? AND r.position = ?"""
        for row in some:
            number, engine, client, trace, began, took = one.con.execute(sql, (one.key, row)).fetchone()
            ids = " ".join(dict.fromkeys(text(called) for called in (engine, client, trace) if called))
            yield Hit(Place(one.key, 0, row), one.id, REQUEST, ids[:LONGEST], began, took, number)

    return _Looked(rows, {REQUEST: len(rows)} if rows else {}, looked, stopped, tell)


def _lines(one: _Capture, wanted: Wanted, low: int, room: int) -> _Looked:
    rows, looked, stopped = _like(one, LINES, wanted.words, low, room)

    def tell(some: list[int]) -> Iterator[Hit]:
        sql = f"""SELECT substr(l.untrusted_text, 1, {LONGEST}), l.time, l.step, l.request, l.number, f.name FROM lines l
            LEFT JOIN files f ON f.capture = l.capture AND f.position = l.file WHERE l.capture = ? AND l.position = ?"""
        for row in some:
            said, time, step, request, number, file = one.con.execute(sql, (one.key, row)).fetchone()
            where = f"{text(file or '')}:{number}"
            whose = None if request < 0 else request + 1
            hit = Hit(Place(one.key, 2, row), one.id, LINE, text(said), time, None, whose, where=where)
            yield hit._replace(step=None if step < 0 else step)

    return _Looked(rows, {LINE: len(rows)} if rows else {}, looked, stopped, tell)


def _like(
    one: _Capture, columns: tuple[str, ...], words: Sequence[str], low: int, room: int
) -> tuple[list[int], int, int | None]:
    """The rows from ``low`` on, among ``room``, of which one of ``columns`` (of one table) holds each word; how many were
    looked at; and the first one that was not, None where that was all.
    """
    table = columns[0].partition(".")[0]
    asked = [[(column, containing(form)) for form in id_forms(word) for column in columns] for word in words]
    either = (" OR ".join(f"{column} LIKE ? ESCAPE '\\'" for column, _ in word) for word in asked)
    given = [pattern for word in asked for _, pattern in word]
    sql = f"SELECT position FROM {table} WHERE capture = ? AND position >= ? AND position < ?"
    sql += "".join(f" AND ({condition})" for condition in either)
    found = one.con.execute(f"{sql} ORDER BY position", (one.key, low, low + room, *given)).fetchall()
    (last,) = one.con.execute(f"SELECT max(position) FROM {table} WHERE capture = ?", (one.key,)).fetchone()
    left = 0 if last is None else max(last + 1 - low, 0)
    return [int(row) for (row,) in found], min(left, room), low + room if left > room else None


def _spans(one: _Capture, wanted: Wanted, low: int, room: int) -> _Looked:
    """Names, of all ranks together, most time first. There is no stopping on the way: their order is known at the end."""
    merged: dict[tuple[str, str], _Calls] = {}
    looked = sum([_add_names(one, wanted, rank, merged) for rank in traced(one.con, one.key)])
    ordered = sorted(merged, key=lambda named: (-merged[named].total, named))
    counts = Counter(kind for kind, _ in ordered)

    def tell(some: list[int]) -> Iterator[Hit]:
        found = [merged[ordered[row]] for row in some]
        for row, mine, step in zip(some, found, _steps(one, found), strict=True):
            kind, name = ordered[row]
            yield Hit(
                place=Place(one.key, 1, row),
                capture=one.id,
                kind=kind,
                text=name[:LONGEST],
                time=mine.start,
                took=mine.took,
                step=step,
                rank=mine.rank,
                row=mine.row,
                calls=mine.calls,
                total=mine.total,
            )

    return _Looked(list(range(low, len(ordered))), dict(counts), looked, None, tell)


class _Calls(NamedTuple):
    """The spans of one name: how many, ns of all, and the longest of them."""

    calls: int
    total: int
    took: int
    rank: int
    row: int
    start: int


def _add_names(one: _Capture, wanted: Wanted, rank: int, merged: dict[tuple[str, str], _Calls]) -> int:
    """Add the names of one rank that match to ``merged``, by kind and name. Returns how many names it has."""
    spans = find_tree(one.con, one.key, rank)
    called = _matching(one.con, spans.key, wanted.words)
    if called:
        names = read_names(one.con, one.key, rank)
        sql = "SELECT shift FROM ranks WHERE capture = ? AND position = ?"
        (shift,) = one.con.execute(sql, (one.key, rank)).fetchone()
        mine = np.isin(names.name, list(called))
        columns: list[list[int]] = [column[mine].tolist() for column in names]
        for name, layer, calls, total, row, start, took in zip(*columns, strict=True):
            key = SPAN_KINDS[int(layer)], called[name]
            if key[0] in wanted.kinds:
                new = _Calls(calls, total, took, rank, row, start + shift)
                merged[key] = _both(merged[key], new) if key in merged else new
    return int(spans.about["tables"]["name"])


def _both(one: _Calls, other: _Calls) -> _Calls:
    """Both together, with the longer span: the first of two that are as long."""
    longest = other if other.took > one.took else one
    return longest._replace(calls=one.calls + other.calls, total=one.total + other.total)


def _matching(con: sqlite3.Connection, key: int, words: Sequence[str]) -> dict[int, str]:
    """The names of a rank that hold all words, by their number."""
    folded, unpress = [word.casefold() for word in words], zstandard.ZstdDecompressor()
    pieces = con.execute("SELECT chunk, data FROM chunks WHERE columns = ? AND field = 'names' ORDER BY chunk", (key,))
    return {chunk * PIECE + at: name for chunk, data in pieces for at, name in matching(data, folded, unpress)}


def _steps(one: _Capture, found: Sequence[_Calls]) -> list[int | None]:
    """The step of the longest span of each name, None for none."""
    sql = 'SELECT rank, "row", row_stop, step FROM step_work WHERE capture = ? AND "row" >= 0'
    work: Int64 = np.array(one.con.execute(sql, (one.key,)).fetchall() if found else [], dtype=np.int64).reshape(-1, 4)
    steps: list[int | None] = []
    for mine in found:
        inside = work[(work[:, 0] == mine.rank) & (work[:, 1] <= mine.row) & (work[:, 2] > mine.row)]
        steps.append(int(inside[0, 3]) if len(inside) else None)
    return steps


class _Part(NamedTuple):
    kinds: frozenset[str]
    look: Callable[[_Capture, Wanted, int, int], _Looked]


PARTS = (
    _Part(frozenset({REQUEST}), _requests),
    _Part(frozenset(SPAN_KINDS), _spans),
    _Part(frozenset({LINE}), _lines),
)
"""What of a capture is looked through, in this order."""
