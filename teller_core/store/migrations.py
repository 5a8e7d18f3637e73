"""The schema, as numbered steps. Append a step to change it; never edit one that has been released.

A step gets the database of the version before it, with people's captures inside. A column that it adds says what those
have in it, ``add_column(name, int, not_null_default=-1)``: NULL means an unknown time or NaN and nothing else. All missing
steps run in one transaction, and ``PRAGMA user_version`` counts those that have run.
"""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from teller_core.errors import StoreError
from teller_core.store import outcomes, span_names
from teller_core.store.connect import check, connect

if TYPE_CHECKING:
    from sqlite_utils import Database

ROW_TABLES = {
    "steps": """engine int, number int, scheduled int, launched int, finished int, delivered int, context_requests int,
        context_tokens int, generation_requests int, generation_tokens int, kv_tokens int, kv_usage float,
        preempted int, mapping int, confidence float""",
    "step_work": "step int, rank int, start int, stop int, row int, row_stop int",
    "requests": """number int, engine_id str, client_id str, trace_id str, client_start int, received int, queued int,
        scheduled int, first_token int, last_token int, finished int, client_first int, client_end int, itl_max int,
        itl_max_at int, queue_ns int, prompt_tokens int, output_tokens int, cached_tokens int, preemptions int,
        engine int, failed int""",
    "lines": """time int, before int, after int, level str, rule str, fields str, untrusted_text str, process str,
        file int, number int, step int, request int""",
    "pauses": "start int, dur int, thread int, process str, role str, kind str",
    "collectives": "group int, sequence int, step int, rank int, row int, start int, dur int, wait int, late int",
    "baselines": """name str, place str, phase str, layer int, count int, median int, spread float, total int,
        calls float, slope float, pivot float""",
    "step_expectations": "took int, expected int, residual float, excess int",
    "candidates": """step int, rank int, row int, name str, layer int, value int, normal int, residual float, excess int,
        baseline int, method str""",
    "request_expectations": "request int, metric str, value int, by_work int, by_load int, residual float",
}
"""Tables with one row a row of a capture's small tables: ``name type``, as they were at the first release."""


def m001_captures(db: "Database") -> None:
    """Captures, their files and ranks, and the small tables of what was rebuilt and judged."""
    from sqlite_utils.db import DescIndex

    columns = "key int, id str, name str, engine str, problems str, metrics str, redactions int, tier int"
    _create(db, "captures", columns + ", reference str, imported_at str, report str", ["key"])
    db.table("captures").create_index(["id"], unique=True)
    columns = "name str, format str, bytes int, clock str, events_in_file int, events_kept int"
    _create_part(db, "files", columns + ", events_other str, problems str")
    columns = "rank int, host str, pid int, role str, file int, shift int, clock_error int, kernels int"
    _create_part(db, "ranks", columns + ", kernel_time int, problems str")
    for name, columns in ROW_TABLES.items():
        _create_part(db, name, columns)
    db.table("baselines").create_index(["capture", "name"])
    db.table("request_expectations").create_index(["capture", "metric", DescIndex("value"), "request"])
    db.table("request_expectations").create_index(["capture", "request", "metric"])


def m002_columns(db: "Database") -> None:
    """Spans and the tables that are too long for rows: columns in compressed chunks."""
    _create(db, "column_sets", "key int, capture int, kind str, rank int, rows int, about str", ["key"])
    db.table("column_sets").create_index(["capture", "kind", "rank"], unique=True)
    # WITHOUT ROWID, which sqlite-utils does not offer: a column's chunks lie side by side under their own key.
    db.conn.execute(
        """CREATE TABLE chunks (
            columns INTEGER NOT NULL REFERENCES column_sets(key), field TEXT NOT NULL, chunk INTEGER NOT NULL,
            data BLOB NOT NULL, PRIMARY KEY (columns, field, chunk)
        ) WITHOUT ROWID"""
    )


def m003_answers(db: "Database") -> None:
    """Answers about requests: the report as compressed JSON, its findings as rows."""
    _create(db, "answers", "capture int, request int, metric str, verdict str, confidence float, report bytes", ANSWER)
    columns = (
        "capture int, request int, metric str, position int, cause str, step int, rank int, view str, operator str"
    )
    columns += ", layer str, confidence float, saving_ms float"
    _create(db, "findings", columns, [*ANSWER, "position"])
    db.table("findings").create_index(["capture", "cause"])


def m004_absences(db: "Database") -> None:
    """Ranks that did not come to a collective, and calls that do not fit together."""
    columns = (
        "group str, description str, sequence int, name str, elements int, dtype str, rank int, since int, waiting int"
    )
    _create_part(db, "absences", columns + ", waiters str, last_seen int, point_to_point int, certain int")
    columns = (
        "kind str, group str, description str, sequence int, rank int, name str, elements int, dtype str, time int"
    )
    columns += ", other_name str, other_elements int, other_dtype str, others int, until int, caller str"
    _create_part(db, "disagreements", columns)


def m005_readings(db: "Database") -> None:
    """What services measure of themselves all the time, and transfers of KV between engines."""
    _create_part(db, "transfers", "request int, start int, stop int")
    _create_part(db, "readings", "name str, source str, start int, stop int, value float")
    _create_part(db, "buckets", "name str, start int, stop int, low float, high float, count int")


def m006_meetings(db: "Database") -> None:
    """Collectives in which ranks met: who came last, and what kept it."""
    columns = (
        "group str, kind str, how str, came int, size int, arrived int, late int, by int, waited int, transfer int"
    )
    _create_part(db, "meetings", columns + ", kept int")


def m007_elapsed(db: "Database") -> None:
    """How long a line says that its step took."""
    db.table("steps").add_column("elapsed", int)


def m008_front_end(db: "Database") -> None:
    """When a request's prompt was tokens, and why its answer ended."""
    db.table("requests").add_column("tokenized", int)
    db.table("requests").add_column("finish_reason", str, not_null_default="")


def m009_learned(db: "Database") -> None:
    """What was learned of services: baselines by name."""
    _create(db, "learned", "name str, service str, learned_at str, format int, body bytes", ["name"])


def m010_refined(db: "Database") -> None:
    """Answers that a model had a part in, by the model."""
    _create(db, "refined", "capture int, request int, metric str, model str, report bytes", ANSWER)


def m011_roots(db: "Database") -> None:
    """The rank from which all others of a collective get, or to which all give."""
    db.table("meetings").add_column("root", int, not_null_default=-1)


def m012_outcomes(db: "Database") -> None:
    """How each request went, for questions about many captures: of which service each is, and from when to when."""
    db.table("captures").add_column("service", str, not_null_default="")
    db.table("captures").add_column("began", int)
    db.table("captures").add_column("ended", int)
    # WITHOUT ROWID: such a question reads whole captures, whose rows lie side by side.
    db.conn.execute(
        """CREATE TABLE outcomes (
            capture INTEGER NOT NULL REFERENCES captures(key), position INTEGER NOT NULL, request INTEGER, metric TEXT,
            began INTEGER, value INTEGER, verdict TEXT, cause TEXT, rank INTEGER, engine INTEGER, prompt_tokens INTEGER,
            output_tokens INTEGER, cached_tokens INTEGER, failed INTEGER, finish_reason TEXT, before_server INTEGER,
            front_end INTEGER, queue INTEGER, remote_kv_wait INTEGER, own_prefill INTEGER, between_own_chunks INTEGER,
            decode INTEGER, preempted INTEGER, recompute INTEGER, delivery INTEGER, capture_stall INTEGER,
            unexplained INTEGER, PRIMARY KEY (capture, position)
        ) WITHOUT ROWID"""
    )
    outcomes.fill(db.conn)


def m013_span_names(db: "Database") -> None:
    """What spans are called, how often, and where each longest one is."""
    span_names.fill(db.conn)


ANSWER = ["capture", "request", "metric"]
MIGRATIONS: tuple[Callable[["Database"], None], ...] = (
    m001_captures,
    m002_columns,
    m003_answers,
    m004_absences,
    m005_readings,
    m006_meetings,
    m007_elapsed,
    m008_front_end,
    m009_learned,
    m010_refined,
    m011_roots,
    m012_outcomes,
    m013_span_names,
)


def migrate(con: sqlite3.Connection, migrations: tuple[Callable[["Database"], None], ...] = MIGRATIONS) -> int:
    """Run the ``migrations`` that ``con`` lacks, all or none. Returns how many ran."""
    # Loading sqlite-utils costs 0.1 s, as much as numpy, and those who only read do not need it.
    from sqlite_utils import Database

    con.execute("BEGIN IMMEDIATE")
    try:
        done = version(con)
        db = Database(con, recursive_triggers=False, execute_plugins=False)
        for number, step in enumerate(migrations[done:], start=done + 1):
            step(db)
            con.execute(f"PRAGMA user_version={number}")
        con.execute("COMMIT")
    finally:
        if con.in_transaction:
            con.execute("ROLLBACK")
    return max(0, len(migrations) - done)


def upgrade(path: Path, con: sqlite3.Connection, *, read_only: bool) -> None:
    """Bring the schema of the store at ``path``, which is open as ``con``, up to date.

    Raises StoreError for a newer one, and for one that nobody of ours made.
    """
    check(con, path)
    seen = version(con)
    if seen > len(MIGRATIONS):
        raise StoreError(
            f"the store {path.name!r}", "a newer TELLER has written it", "Update TELLER, or name another with --db"
        )
    if seen < len(MIGRATIONS):
        writer = connect(path, read_only=False) if read_only else con
        try:
            check(writer, path)
            migrate(writer)
        finally:
            if writer is not con:
                writer.close()


def version(con: sqlite3.Connection) -> int:
    """How many migrations ``con`` has seen."""
    return int(con.execute("PRAGMA user_version").fetchone()[0])


def _create_part(db: "Database", name: str, columns: str) -> None:
    """A table of rows that belong to a capture, in order."""
    _create(db, name, f"capture int, position int, {columns}", ["capture", "position"])


def _create(db: "Database", name: str, columns: str, key: list[str]) -> None:
    """A table from ``name type`` pairs."""
    kinds = {"int": int, "str": str, "float": float, "bytes": bytes}
    pairs = [pair.split() for pair in columns.split(",")]
    parts = [("capture", "captures", "key")] if pairs[0][0] == "capture" else []
    db.table(name).create(
        {column: kinds[kind] for column, kind in pairs},
        pk=key[0] if len(key) == 1 else key,
        foreign_keys=parts,
    )
