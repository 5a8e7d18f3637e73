"""Questions about the requests of many captures, by SQL over their outcomes: sums of groups, never requests one by one."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from teller_core.data.parts import PHASES
from teller_core.data.tails import SIZES, Bounds, Measured, Sort, Sums
from teller_core.errors import LimitError
from teller_core.store.tables import text

MOST_REQUESTS = 1 << 24
"""That are looked at together: 16 bytes each while their quantiles are found."""
_REPLICA = np.dtype([("value", np.int64), ("capture", np.int32), ("engine", np.int32)])


class Held(NamedTuple):
    """A capture with outcomes. ``began`` and ``ended`` ns: of its first and its last request's begin, None where unknown."""

    key: int
    id: str
    name: str
    service: dict[str, str]
    began: int | None
    ended: int | None


class Chosen(NamedTuple):
    """Captures by their keys, and of these the requests that began from ``low`` to before ``high`` (ns), None for all."""

    metric: str
    captures: Sequence[int]
    low: int | None
    high: int | None


def held(con: sqlite3.Connection) -> list[Held]:
    """All captures that have requests with an answer, in the order in which they were stored."""
    sql = "SELECT key, id, name, service, began, ended FROM captures WHERE key IN (SELECT capture FROM outcomes) ORDER BY key"
    return [
        Held(key, identity, text(name), json.loads(text(service) or "{}"), began, ended)
        for key, identity, name, service, began, ended in con.execute(sql)
    ]


def hosts(con: sqlite3.Connection, captures: Sequence[int]) -> dict[int, set[str]]:
    """The machines that each capture is of."""
    found: dict[int, set[str]] = {key: set() for key in captures}
    sql = f"SELECT DISTINCT capture, host FROM ranks WHERE capture IN ({_marks(captures)})"
    for key, host in con.execute(sql, captures):
        found[key].add(text(host))
    return found


def measured(con: sqlite3.Connection, chosen: Chosen) -> Measured:
    """How long each request took, and on which replica. Raises LimitError for more than MOST_REQUESTS."""
    where, given = _where(chosen)
    sql = f"SELECT value, capture, ifnull(engine, -1) FROM outcomes WHERE {where} LIMIT {MOST_REQUESTS + 1}"
    rows = np.fromiter(con.execute(sql, given), _REPLICA)
    if len(rows) > MOST_REQUESTS:
        why = f"more than {MOST_REQUESTS:,} requests began in that time"
        raise LimitError("fleet", why, "Ask for a shorter one (since, until), or for one service")
    both = rows["capture"].astype(np.int64) << 32 | (rows["engine"].astype(np.int64) & 0xFFFFFFFF)
    codes, replica = np.unique(both, return_inverse=True)
    named = [(int(code >> 32), int(np.int64(code).astype(np.int32))) for code in codes]
    return Measured(rows["value"], replica.astype(np.int32), named)


def sums(con: sqlite3.Connection, chosen: Chosen, bounds: Bounds) -> list[Sums]:
    """The cohorts by replica, with their phases."""
    where, given = _cohorts(chosen, bounds)
    each = [f'"{phase}"' for phase in PHASES]
    asked = ", ".join(
        [f"sum(coalesce({phase}, 0))" for phase in each]
        + [f"count({phase})" for phase in each]
        + [f"sum(1.0 * coalesce({phase}, 0) * coalesce({phase}, 0))" for phase in each]
    )
    sql = (
        f"SELECT value >= ? AS tail, capture, ifnull(engine, -1) AS engine_, count(*), sum(value), {asked} FROM outcomes "
        f"WHERE {where} GROUP BY capture, tail, engine_"
    )
    size = len(PHASES)
    return [
        Sums(
            bool(tail),
            row[0],
            row[1],
            row[2],
            row[3],
            row[4 : 4 + size],
            row[4 + size : 4 + 2 * size],
            row[4 + 2 * size :],
        )
        for tail, *row in con.execute(sql, (bounds.tail, *given))
    ]


def sorts(con: sqlite3.Connection, chosen: Chosen, bounds: Bounds) -> list[Sort]:
    """The cohorts by cause, rank, sizes of prompt and answer, and why they ended."""
    where, given = _cohorts(chosen, bounds)
    columns = {
        "cause": "cause",
        "rank": "rank",
        "prompt": _size("prompt_tokens"),
        "output": _size("output_tokens"),
        "ended by": "finish_reason",
    }
    asked = ", ".join(f"{column} AS c{at}" for at, column in enumerate(columns.values()))
    grouped = ", ".join(f"c{at}" for at in range(len(columns)))
    sql = (
        f"SELECT value >= ? AS tail, count(*), sum(value), {asked} FROM outcomes WHERE {where} GROUP BY tail, {grouped}"
    )
    found: dict[tuple[str, str | int, bool], tuple[int, int]] = {}
    for tail, count, value, *sorts in con.execute(sql, (bounds.tail, *given)):
        for of, what in zip(columns, sorts, strict=True):
            one = (of, what if isinstance(what, int) else text(what or ""), bool(tail))
            before = found.get(one, (0, 0))
            found[one] = (before[0] + count, before[1] + value)
    return [Sort(*one, *told) for one, told in found.items()]


def slowest(con: sqlite3.Connection, chosen: Chosen, least: int, most: int) -> list[tuple[int, int, int]]:
    """(key of the capture, number of the request, ns) of the ``most`` slowest ones that took at least ``least`` ns."""
    where, given = _where(chosen)
    sql = f"SELECT capture, request, value FROM outcomes WHERE {where} AND value >= ?"
    rows = con.execute(f"{sql} ORDER BY value DESC, capture, request LIMIT ?", (*given, least, most)).fetchall()
    return [(int(key), int(request), int(value)) for key, request, value in rows]


def _size(column: str) -> str:
    """SQL of the place of a number of tokens among SIZES."""
    steps = " ".join(f"WHEN {column} < {most} THEN {at}" for at, most in enumerate(SIZES))
    return f"CASE WHEN ifnull({column}, -1) < 0 THEN -1 {steps} ELSE {len(SIZES)} END"


def _cohorts(chosen: Chosen, bounds: Bounds) -> tuple[str, list[Any]]:
    where, given = _where(chosen)
    return f"{where} AND (value >= ? OR value BETWEEN ? AND ?)", [*given, bounds.tail, bounds.low, bounds.high]


def _where(chosen: Chosen) -> tuple[str, list[Any]]:
    where, given = f"capture IN ({_marks(chosen.captures)})", list(chosen.captures)
    where, given = f"{where} AND metric = ? AND value IS NOT NULL", [*given, chosen.metric]
    for sign, bound in ((">=", chosen.low), ("<", chosen.high)):
        if bound is not None:
            where, given = f"{where} AND began {sign} ?", [*given, bound]
    return where, given


def _marks(values: Iterable[Any]) -> str:
    return ", ".join("?" for _ in values)
