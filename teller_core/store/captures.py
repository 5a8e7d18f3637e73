"""A capture, what was judged of it and the answers: from memory into rows and back."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

import zstandard

from teller_core.data.assessment import Assessment, Baselines, Candidates, RequestExpectations, StepExpectations
from teller_core.data.capture import Absences, Capture, Collectives, Disagreements, Meetings, Pauses, Rank, Samples
from teller_core.data.readings import Buckets, Readings
from teller_core.data.records import FileRead
from teller_core.data.report import CaptureReport, Finding, WhyReport
from teller_core.data.service import service_of
from teller_core.data.steps import Lines, Participation, Requests, Steps, StepWork, TokenTimes, Transfers
from teller_core.data.table import UNKNOWN
from teller_core.store import outcomes
from teller_core.store.calls import write_calls
from teller_core.store.chunks import LARGEST_REPORT, LEVEL, damaged, unpacked
from teller_core.store.columns import about_long, drop_long, read_long, write_long
from teller_core.store.span_names import names_of, write_names
from teller_core.store.spans import write_tree
from teller_core.store.tables import bound, read_rows, text, write_rows

if TYPE_CHECKING:
    from sqlite_utils import Database

_RANK = tuple(field.name for field in fields(Rank) if field.name != "tree")
SPOOLED = {
    "answers": "request, metric, verdict, confidence, report",
    "findings": "request, metric, position, cause, step, rank, view, operator, layer, confidence, saving_ms",
    "outcomes": ", ".join(outcomes.SPOOLED),
}
"""The columns of what is put aside until a capture is stored, by the table where it will be."""
BATCH = 256
"""Answers written at once: more saves nothing."""


def write_capture(db: "Database", capture: Capture, assessment: Assessment, report: CaptureReport, level: int) -> int:
    """Insert everything but the answers. Returns the key of the capture."""
    row = {
        "id": capture.id,
        "name": bound(capture.name),
        "engine": bound(capture.engine),
        "problems": _json(capture.problems),
        "metrics": _json(capture.metrics),
        "redactions": capture.redactions,
        "tier": capture.tier,
        "reference": bound(assessment.reference),
        "service": outcomes.service_cell(service_of(capture.engine, capture.lines, capture.ranks)),
        "imported_at": report.imported_at,
        "report": _body(report),
    }
    key = int(cast(int, db.table("captures").insert(row).last_pk))
    files = [file._asdict() for file in capture.files]
    db.table("files").insert_all({"capture": key, "position": i, **_cells(file)} for i, file in enumerate(files))
    ranks = [{name: getattr(rank, name) for name in _RANK} for rank in capture.ranks]
    db.table("ranks").insert_all({"capture": key, "position": i, **_cells(rank)} for i, rank in enumerate(ranks))
    con = db.conn
    for table in (capture.steps, capture.work, capture.requests, capture.lines, capture.pauses, capture.collectives):
        write_rows(con, key, table)
    for table in (
        capture.meetings,
        capture.absences,
        capture.disagreements,
        capture.transfers,
        capture.readings,
        capture.buckets,
    ):
        write_rows(con, key, table)
    for table in (assessment.baselines, assessment.steps, assessment.candidates, assessment.requests):
        write_rows(con, key, table)
    for table in (capture.participation, capture.tokens, capture.samples):
        write_long(con, key, table, level)
    for position, rank in enumerate(capture.ranks):
        if rank.tree is not None:
            trace = rank.tree.trace
            write_tree(con, key, position, rank.tree, level)
            write_names(con, key, position, names_of(trace.name, trace.layer, trace.start, trace.dur), level)
            write_calls(con, key, position, rank.tree, level)
    return key


def read_capture(con: sqlite3.Connection, key: int) -> Capture:
    """The capture with its small tables. The trees stay where they are: every rank's is None."""
    named = "id, name, engine, problems, metrics, redactions, tier"
    row = con.execute(f"SELECT {named} FROM captures WHERE key = ?", (key,)).fetchone()
    identity, name, engine, problems, metrics, redactions, tier = row
    return Capture(
        id=identity,
        name=text(name),
        engine=text(engine),
        files=[FileRead(**found) for found in _records(con, key, "files", FileRead._fields)],
        ranks=read_ranks(con, key),
        steps=read_rows(con, key, Steps),
        work=read_rows(con, key, StepWork),
        requests=read_rows(con, key, Requests),
        participation=read_long(con, key, Participation),
        tokens=read_long(con, key, TokenTimes),
        lines=read_rows(con, key, Lines),
        pauses=read_rows(con, key, Pauses),
        samples=read_long(con, key, Samples),
        collectives=read_rows(con, key, Collectives),
        absences=read_rows(con, key, Absences),
        meetings=read_rows(con, key, Meetings),
        disagreements=read_rows(con, key, Disagreements),
        transfers=read_rows(con, key, Transfers),
        readings=read_rows(con, key, Readings),
        buckets=read_rows(con, key, Buckets),
        problems=json.loads(problems),
        metrics=json.loads(metrics),
        redactions=redactions,
        tier=tier,
    )


def read_ranks(con: sqlite3.Connection, key: int) -> list[Rank]:
    """The ranks of a capture, in order, without their trees."""
    return [Rank(**found, tree=None) for found in _records(con, key, "ranks", _RANK)]


def read_metrics(con: sqlite3.Connection, key: int) -> dict[str, float]:
    """``Capture.metrics`` alone."""
    (stored,) = con.execute("SELECT metrics FROM captures WHERE key = ?", (key,)).fetchone()
    return json.loads(stored)


def read_assessment(con: sqlite3.Connection, key: int) -> Assessment:
    """What judging found by numbers."""
    (reference,) = con.execute("SELECT reference FROM captures WHERE key = ?", (key,)).fetchone()
    return Assessment(
        baselines=read_rows(con, key, Baselines),
        steps=read_rows(con, key, StepExpectations),
        candidates=read_rows(con, key, Candidates),
        requests=read_rows(con, key, RequestExpectations),
        reference=text(reference),
    )


def read_held(con: sqlite3.Connection, key: int, reference: str) -> tuple[Baselines, Candidates] | None:
    """What is usual for its operators, and suspicious, held against ``reference``; None where that is not kept."""
    about = about_long(con, key, Candidates)
    if about is None or about.get("reference") != reference:
        return None
    return read_long(con, key, Baselines), read_long(con, key, Candidates)


def write_held(con: sqlite3.Connection, key: int, assessment: Assessment) -> None:
    """Keep what :func:`read_held` finds, in place of what was held against something else."""
    for table in (assessment.baselines, assessment.candidates):
        drop_long(con, key, type(table))
        write_long(con, key, table, LEVEL, {"reference": assessment.reference})


def spool_answers(con: sqlite3.Connection, answers: Iterable[WhyReport]) -> None:
    """Put the answers, as they come, into temporary tables: the whole report compressed, and a row for each of its findings.

    SQLite keeps these on disk, out of the store's own file, which stays free for others while answers are still made.
    """
    press = zstandard.ZstdCompressor(level=LEVEL)
    for name, columns in SPOOLED.items():
        con.execute(f"CREATE TEMP TABLE {_spool(name)} ({columns})")
    remaining = iter(answers)
    while batch := list(islice(remaining, BATCH)):
        con.executemany(
            f"INSERT INTO {_spool('answers')} VALUES (?, ?, ?, ?, ?)",
            (
                (said.request, said.metric, said.verdict, said.confidence, press.compress(_body(said).encode()))
                for said in batch
            ),
        )
        con.executemany(
            f"INSERT INTO {_spool('findings')} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (said.request, said.metric, position, *_finding(found))
                for said in batch
                for position, found in enumerate(said.findings)
            ),
        )
        marks = ", ".join("?" * len(outcomes.SPOOLED))
        con.executemany(f"INSERT INTO {_spool('outcomes')} VALUES ({marks})", map(outcomes.spooled_row, batch))


def keep_spooled(con: sqlite3.Connection, key: int) -> None:
    """Insert what :func:`spool_answers` put aside as answers about the capture with this key."""
    for name in ("answers", "findings"):
        columns = SPOOLED[name]
        con.execute(
            f"INSERT INTO main.{name} (capture, {columns}) SELECT ?, {columns} FROM {_spool(name)} ORDER BY rowid",
            (key,),
        )
    outcomes.keep_spooled(con, key, _spool("outcomes"))


def drop_spooled(con: sqlite3.Connection) -> None:
    """Forget what was put aside."""
    for name in SPOOLED:
        con.execute(f"DROP TABLE IF EXISTS {_spool(name)}")


def _spool(name: str) -> str:
    return f"temp.spooled_{name}"


def read_answer(con: sqlite3.Connection, key: int, request: int, metric: str) -> WhyReport | None:
    """The stored answer about the request of this number, None where that was not asked yet. Raises StoreError."""
    sql = "SELECT report FROM answers WHERE capture = ? AND request = ? AND metric = ?"
    return _read_answer(con.execute(sql, (key, request, metric)).fetchone())


def read_refined(con: sqlite3.Connection, key: int, request: int, metric: str, model: str) -> WhyReport | None:
    """The same for the answer that this model had a part in."""
    sql = "SELECT report FROM refined WHERE capture = ? AND request = ? AND metric = ? AND model = ?"
    return _read_answer(con.execute(sql, (key, request, metric, model)).fetchone())


def write_refined(con: sqlite3.Connection, key: int, said: WhyReport, model: str) -> None:
    """Keep an answer that this model had a part in, in place of that of another model."""
    body = zstandard.ZstdCompressor(level=LEVEL).compress(_body(said).encode())
    row = (key, said.request, said.metric, model, body)
    con.execute("INSERT OR REPLACE INTO refined (capture, request, metric, model, report) VALUES (?, ?, ?, ?, ?)", row)


def _read_answer(row: tuple[bytes] | None) -> WhyReport | None:
    if row is None:
        return None
    try:
        body = unpacked(row[0], LARGEST_REPORT, zstandard.ZstdDecompressor())
        return WhyReport.model_validate(json.loads(body))
    except (zstandard.ZstdError, ValueError) as error:
        raise damaged() from error


def read_claimed(con: sqlite3.Connection, key: int) -> dict[int, str]:
    """The first cause of the stored answers from end to end that name one, by the request's number."""
    rows = con.execute(
        "SELECT request, cause FROM findings JOIN answers USING (capture, request, metric) "
        "WHERE capture = ? AND metric = 'e2e' AND verdict = 'cause' AND position = 0 ORDER BY request",
        (key,),
    )
    return {int(request): str(cause) for request, cause in rows}


def read_report(stored: str, reference: Any) -> CaptureReport:
    """The report of a capture from its stored JSON, with the baseline that it was held against. Raises StoreError."""
    try:
        return CaptureReport.model_validate({**json.loads(stored), "reference": text(reference)})
    except ValueError as error:
        raise damaged() from error


def _finding(found: Finding) -> tuple[Any, ...]:
    operator = None if found.operator is None else bound(found.operator)
    where = (found.step, found.rank, found.view, operator, found.layer)
    return (found.cause, *where, found.confidence, found.saving_ms)


def _body(said: CaptureReport | WhyReport) -> str:
    """JSON of a report. A name with half of a surrogate pair in it is no UTF-8, so such a report is escaped."""
    try:
        return said.model_dump_json()
    except ValueError:
        return json.dumps(said.model_dump())


def _cells(record: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a record as SQLite holds them."""
    return {name: _cell(value) for name, value in record.items()}


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return bound(value)
    if isinstance(value, Mapping):
        return _json(cast(Mapping[str, Any], value))
    return None if value == UNKNOWN else value


def _records(con: sqlite3.Connection, key: int, table: str, names: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of ``table`` that belong to a capture, as what :func:`_cells` was given."""
    sql = f"SELECT {', '.join(names)} FROM {table} WHERE capture = ? ORDER BY position"
    return [
        {name: _value(name, cell) for name, cell in zip(names, row, strict=True)} for row in con.execute(sql, (key,))
    ]


def _value(name: str, cell: Any) -> Any:
    if name in ("problems", "events_other"):
        return json.loads(cell)
    if cell is None:
        return UNKNOWN
    return text(cell) if isinstance(cell, str | bytes) else cell


def _json(said: Mapping[str, Any]) -> str:
    return json.dumps(dict(said), default=int)  # counts may be numpy's
