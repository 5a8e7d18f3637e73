"""Questions that SQL answers from rows, without reading a table whole: the slow list, operators, steps."""

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import Baselines
from teller_core.data.steps import Lines
from teller_core.data.table import UNKNOWN, Int64
from teller_core.errors import InputError, UnknownName
from teller_core.store.columns import ColumnSet, read_values
from teller_core.store.spans import KIND as SPANS
from teller_core.store.tables import bound, read_rows, text

METRICS = ("e2e", "ttft", "tpot", "itl_max")
LARGEST = 2**63 - 1
"""What SQLite keeps in an integer; Python's own have no end."""


class SlowRow(NamedTuple):
    """One request of the slow list. Durations are int ns; None is what nobody recorded."""

    request: int
    engine_id: str | None
    value: int | None
    """Of the metric that was asked for."""
    e2e: int | None
    ttft: int | None
    tpot: int | None
    itl_max: int | None
    queue: int | None
    """As ``Requests.queue`` says."""
    over_work: float | None
    """How many times what its work predicts, for the metric asked for."""
    over_load: float | None
    verdict: str | None
    """Of the stored answer about this metric, None where there is none; the cause is that of its first finding."""
    cause: str | None
    began: int | None
    """Its earliest time, Unix ns where the capture's clock is."""


class SlowPage(NamedTuple):
    """A page of the slow list. ``total`` counts the requests that have a row for the metric."""

    rows: list[SlowRow]
    total: int
    next_cursor: str | None


class OperatorNames(NamedTuple):
    """``names`` of operators, those with most time first; ``totals``: ns of self time by layer."""

    names: list[str]
    totals: dict[int, float]


BEGAN = "coalesce(r.client_start, r.received, r.queued, r.scheduled, r.first_token)"
"""When a request ``r`` began: its earliest time."""
_SLOW = """
    SELECT r.number, r.engine_id, x.value, {other},
        CASE WHEN r.scheduled >= r.queued AND r.queued % 1000000000 AND r.scheduled % 1000000000
            THEN r.scheduled - r.queued ELSE r.queue_ns END,
        1.0 * x.value / nullif(x.by_work, 0), 1.0 * x.value / nullif(x.by_load, 0), a.verdict,
        (SELECT f.cause FROM findings f WHERE f.capture = x.capture AND f.request = r.number AND f.metric = x.metric
            AND f.position = 0),
        {began},
        x.request
    FROM request_expectations x
    JOIN requests r ON r.capture = x.capture AND r.position = x.request
    LEFT JOIN answers a ON a.capture = x.capture AND a.request = r.number AND a.metric = x.metric
    WHERE x.capture = ? AND x.metric = ? {behind}
    ORDER BY x.value DESC, x.request LIMIT ?
""".replace("{began}", BEGAN).replace(
    "{other}",
    ", ".join(
        f"(SELECT value FROM request_expectations WHERE capture = x.capture AND request = x.request AND metric = '{m}')"
        for m in METRICS
    ),
)


def slow_rows(con: sqlite3.Connection, key: int, metric: str, limit: int, cursor: str | None) -> SlowPage:
    """The requests of a capture, the slowest by ``metric`` first, those without a value last, ``limit`` from ``cursor`` on.

    Raises InputError for a metric that is not kept and a cursor that is not from here.
    """
    if metric not in METRICS:
        raise InputError(f"metric {metric!r}", "no such value is kept", f"Use one of {', '.join(METRICS)}")
    behind, given = _behind(cursor, metric)
    limit = min(limit, LARGEST - 1)
    found = con.execute(_SLOW.replace("{behind}", behind), (key, metric, *given, limit + 1)).fetchall()
    page = found[:limit]
    rows = [SlowRow(row[0], text(row[1]) or None, *row[2:13]) for row in page]
    sql = "SELECT count(*) FROM request_expectations WHERE capture = ? AND metric = ?"
    (total,) = con.execute(sql, (key, metric)).fetchone()
    more = len(found) > limit and len(page) > 0
    return SlowPage(rows, total, _cursor(metric, page[-1][2], page[-1][13]) if more else None)


def values(con: sqlite3.Connection, key: int, metric: str) -> Int64:
    """int64 ns a request, in order: its value of ``metric``, UNKNOWN where it was not measured."""
    (count,) = con.execute("SELECT count(*) FROM requests WHERE capture = ?", (key,)).fetchone()
    column = np.full(count, UNKNOWN, dtype=np.int64)
    sql = "SELECT request, value FROM request_expectations WHERE capture = ? AND metric = ? AND value IS NOT NULL"
    for request, value in con.execute(f"{sql} AND request >= 0 AND request < ?", (key, metric, count)):
        column[request] = value
    return column


def operator_names(con: sqlite3.Connection, key: int) -> OperatorNames:
    """All operators that have a baseline."""
    sql = "SELECT name, layer, sum(total) FROM baselines WHERE capture = ? GROUP BY name, layer ORDER BY sum(total) DESC, name"
    totals: dict[int, float] = {}
    names: dict[str, None] = {}
    for name, layer, total in con.execute(sql, (key,)):
        totals[layer] = totals.get(layer, 0.0) + total
        names[text(name)] = None
    return OperatorNames(list(names), totals)


def operator_rows(con: sqlite3.Connection, key: int, names: Sequence[str]) -> Baselines:
    """The baselines of the operators called exactly one of ``names``, most time first."""
    where = f"AND name IN ({', '.join('?' * len(names))})"
    return read_rows(
        con, key, Baselines, where=where, given=[bound(name) for name in names], order="total DESC, position"
    )


def lines_of(con: sqlite3.Connection, key: int, rules: Sequence[str]) -> Lines:
    """The log lines of a capture that one of ``rules`` knows, by time."""
    marks = ", ".join("?" * len(rules))
    return read_rows(con, key, Lines, where=f"AND rule IN ({marks})", given=[bound(rule) for rule in rules])


def step_of(con: sqlite3.Connection, key: int, rank: int, row: int) -> int | None:
    """Position of the step whose rows of a rank's tree hold ``row``, None for none."""
    sql = 'SELECT step FROM step_work WHERE capture = ? AND rank = ? AND "row" BETWEEN 0 AND ? AND row_stop > ?'
    found = con.execute(sql, (key, rank, row, row)).fetchone()
    return None if found is None else int(found[0])


def traced(con: sqlite3.Connection, key: int) -> list[int]:
    """Positions of the ranks of which a trace was recorded."""
    sql = "SELECT rank FROM column_sets WHERE capture = ? AND kind = ? ORDER BY rank"
    return [int(rank) for (rank,) in con.execute(sql, (key, SPANS))]


def subtree_stop(con: sqlite3.Connection, stored: ColumnSet, row: int) -> int:
    """The row behind the last one below ``row``. Raises UnknownName for a row that is not there."""
    if not 0 <= row < stored.rows:
        raise UnknownName("the span", f"the rank has {stored.rows} spans", "Take a handle from an answer or a slice")
    return row + int(read_values(con, stored.key, ["size"], row, row + 1)["size"][0])


def _cursor(metric: str, value: int | None, request: int) -> str:
    return f"{metric}.{'' if value is None else value}.{request}"


def _behind(cursor: str | None, metric: str) -> tuple[str, Sequence[int]]:
    """The condition that continues a page, and its values."""
    if cursor is None:
        return "", ()
    parts = cursor.split(".")
    if len(parts) != 3 or parts[0] != metric or not parts[2].isdigit():
        raise InputError("the cursor", "it does not come from this list", "Begin again without a cursor")
    try:
        value, request = int(parts[1] or 0), int(parts[2])
    except ValueError as error:
        raise InputError("the cursor", "it does not come from this list", "Begin again without a cursor") from error
    if max(abs(value), request) > LARGEST:
        raise InputError("the cursor", "it does not come from this list", "Begin again without a cursor")
    if not parts[1]:
        return "AND x.value IS NULL AND x.request > ?", (request,)
    return "AND (x.value < ? OR (x.value = ? AND x.request > ?) OR x.value IS NULL)", (value, value, request)
