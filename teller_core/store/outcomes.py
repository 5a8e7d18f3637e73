"""How each request went, beside its answer: rows over which SQL can ask about many captures at once."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import zstandard

from teller_core.data.outcomes import Outcomes
from teller_core.data.parts import PHASES
from teller_core.data.report import WhyReport
from teller_core.data.service import SHOWN_AT_START, facts_of
from teller_core.errors import StoreError
from teller_core.store.chunks import LARGEST_REPORT, unpacked
from teller_core.store.questions import BEGAN
from teller_core.store.tables import bound, text

SPOOLED = ("request", "metric", "value", "verdict", "cause", "rank", *PHASES)
"""What an answer tells of them: the rest stands in the table of requests."""
_OF_REQUEST = ("engine", "prompt_tokens", "output_tokens", "cached_tokens", "failed", "finish_reason")


def spooled_row(said: WhyReport) -> tuple[Any, ...]:
    """What SPOOLED names, of an answer."""
    first = said.findings[0] if said.findings and said.verdict == "cause" else None
    named = ("", None) if first is None else (first.cause, first.rank)
    return _row(said.request, said.metric, said.verdict, named, {part.part: part.ns for part in said.phases})


def keep_spooled(con: sqlite3.Connection, key: int, spooled: str) -> None:
    """Make outcomes of the capture with this key from the rows in the table ``spooled``, and say from when to when it is."""
    named = ", ".join(f'"{field.name}"' for field in fields(Outcomes))
    same = "x.capture = ?1 AND x.request = s.request - 1 AND x.metric = s.metric"
    value = f"coalesce(s.value, (SELECT x.value FROM request_expectations x WHERE {same}))"
    phases = [f's."{phase}"' for phase in PHASES[:-1]]
    own = [f"r.{column}" for column in _OF_REQUEST]
    columns = ["s.request", "s.metric", BEGAN, value, "s.verdict", "s.cause", "s.rank", *own, *phases]
    con.execute(
        f"INSERT INTO main.outcomes (capture, position, {named}) "
        f"SELECT ?1, row_number() OVER (ORDER BY s.rowid) - 1, {', '.join(columns)}, coalesce(s.unexplained, {value}) "
        f"FROM {spooled} s JOIN main.requests r ON r.capture = ?1 AND r.position = s.request - 1",
        (key,),
    )
    con.execute(
        "UPDATE captures SET began = (SELECT min(began) FROM outcomes WHERE capture = ?1), "
        "ended = (SELECT max(began) FROM outcomes WHERE capture = ?1) WHERE key = ?1",
        (key,),
    )


def fill(con: sqlite3.Connection) -> None:
    """Make the outcomes of captures that were stored before there were any, from their answers, and say of which service they
    are. An answer that is damaged has none.
    """
    con.execute(f"CREATE TEMP TABLE told ({', '.join(SPOOLED)})")
    try:
        for key, engine in con.execute("SELECT key, engine FROM captures").fetchall():
            con.executemany(f"INSERT INTO temp.told VALUES ({', '.join('?' * len(SPOOLED))})", _answered(con, key))
            keep_spooled(con, key, "temp.told")
            con.execute("DELETE FROM temp.told")
            con.execute("UPDATE captures SET service = ? WHERE key = ?", (_service(con, key, text(engine or "")), key))
    finally:
        con.execute("DROP TABLE temp.told")


def service_cell(service: Mapping[str, str]) -> str | bytes:
    """The facts of a service as the store holds them."""
    return bound(json.dumps(dict(service)))


def _service(con: sqlite3.Connection, key: int, engine: str) -> str | bytes:
    marks = ", ".join("?" * len(SHOWN_AT_START))
    sql = f"SELECT rule, fields FROM lines WHERE capture = ? AND rule IN ({marks}) ORDER BY position"
    said = ((text(rule), text(told)) for rule, told in con.execute(sql, (key, *SHOWN_AT_START)))
    ranks = con.execute("SELECT rank, role FROM ranks WHERE capture = ?", (key,)).fetchall()
    return service_cell(facts_of(engine, said, ((rank, text(role)) for rank, role in ranks)))


def _answered(con: sqlite3.Connection, key: int) -> Iterator[tuple[Any, ...]]:
    """What SPOOLED names, of each stored answer about a capture that can be read."""
    unpack = zstandard.ZstdDecompressor()
    sql = "SELECT request, metric, verdict, report FROM answers WHERE capture = ? ORDER BY request, metric"
    for request, metric, verdict, report in con.execute(sql, (key,)):
        try:
            said = json.loads(unpacked(report, LARGEST_REPORT, unpack))
            first: Mapping[str, Any] | None = said["findings"][0] if said["findings"] and verdict == "cause" else None
            named = ("", None) if first is None else (first["cause"], first["rank"])
            phases = {part["part"]: part["ns"] for part in said["phases"]}
        except (zstandard.ZstdError, StoreError, ValueError, KeyError, TypeError):
            continue
        yield _row(request, metric, verdict, named, phases)


def _row(
    request: int, metric: str, verdict: str, named: tuple[str, int | None], phases: Mapping[str, int | None]
) -> tuple[Any, ...]:
    cause, rank = named
    value = sum(ns or 0 for ns in phases.values()) if phases else None
    spent: Sequence[int | None] = [phases.get(phase) for phase in PHASES]
    return (request, metric, value, verdict, cause, -1 if rank is None else rank, *spent)
