"""What is kept: captures, what was judged of them, and the answers, in one SQLite file.

Writing goes through sqlite-utils where a table has few rows (the schema, captures, files, ranks). Everything else uses
its connection directly, as measured: inserting rows is five times as fast, and a process that only reads does not load
sqlite-utils, which would cost it 0.1 s, as much as numpy.
"""

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

from teller_core.data.assessment import Assessment, Baselines, Candidates
from teller_core.data.capture import Capture, Rank
from teller_core.data.learned import Learned
from teller_core.data.report import CaptureReport, WhyReport
from teller_core.data.steps import Lines, Participation, Requests, Steps, StepWork
from teller_core.data.table import Int32, Int64
from teller_core.data.tree import Tree
from teller_core.errors import StoreError, UnknownName
from teller_core.store import called, captures, learned, questions
from teller_core.store.calls import NamedCalls, read_calls
from teller_core.store.chunks import LEVEL
from teller_core.store.columns import read_long, rows_of_steps
from teller_core.store.connect import connect, create, recognize, refusing
from teller_core.store.learned import LearnedRow
from teller_core.store.migrations import migrate, upgrade
from teller_core.store.questions import OperatorNames, SlowPage
from teller_core.store.spans import find_tree, read_arguments, read_tree
from teller_core.store.tables import read_window

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Row = TypeVar("Row", bound=DataclassInstance)
else:
    Row = TypeVar("Row")
Told = TypeVar("Told")

MOST_CAPTURES = 20_000
"""Captures that are told of at once, in some 100 MB of memory."""


class Store:
    """One database file, open. For one thread at a time; opening costs under a millisecond, so open one where needed.

    Every method raises StoreError where the file cannot be read or written. ``capture`` arguments are whole ids, as
    :meth:`resolve` returns them; an id that is not there raises UnknownName.
    """

    def __init__(self, path: Path, con: sqlite3.Connection) -> None:
        self.path = path
        self._con = con

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, deadline_s: float | None = None) -> Self:
        """The store at ``path``; made when it is not there, unless ``read_only``. A store of an older schema is upgraded.

        What SQLite still does ``deadline_s`` seconds from now is refused: a thread cannot be stopped from outside.
        Raises StoreError for a file that is not ours, that is newer than this program, or that cannot be used.
        """
        path = Path(path)
        if not recognize(path):
            if read_only:
                raise StoreError(
                    f"the store {path.name!r}", "there is none yet", "Import something first, with `import`"
                )
            create(path, migrate)
        store = cls(path, connect(path, read_only=read_only, deadline_s=deadline_s))
        try:
            store._upgrade(read_only)
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Let go of the file."""
        self._con.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @refusing
    def save(
        self,
        capture: Capture,
        assessment: Assessment,
        answers: Iterable[WhyReport],
        report: CaptureReport,
        *,
        level: int = LEVEL,
    ) -> bool:
        """Keep a capture with all that was made of it: all or nothing. False, and no change, where its id is known.

        ``answers`` may be made while they are asked for: they are put aside on disk first, and others may write meanwhile.
        ``level``: of zstd, LOOSE where the whole file is packed later. Waits up to 30 s for another process that is saving.
        """
        from sqlite_utils import Database  # see the module: only writing loads it

        con = self._con
        try:
            con.execute("BEGIN")
            captures.spool_answers(con, answers)
            con.execute("COMMIT")
            con.execute("BEGIN IMMEDIATE")
            if self.knows(capture.id):
                return False
            key = captures.write_capture(
                Database(con, recursive_triggers=False, execute_plugins=False), capture, assessment, report, level
            )
            captures.keep_spooled(con, key)
            con.execute("COMMIT")
            return True
        finally:
            if con.in_transaction:
                con.execute("ROLLBACK")
            captures.drop_spooled(con)

    @refusing
    def knows(self, capture: str) -> bool:
        """Whether the capture with this id is here."""
        return self._con.execute("SELECT 1 FROM captures WHERE id = ?", (capture,)).fetchone() is not None

    @refusing
    def captures(self) -> list[CaptureReport]:
        """What each capture holds, the newest first."""
        sql = "SELECT report, reference FROM captures ORDER BY key DESC LIMIT ?"
        rows = self._con.execute(sql, (MOST_CAPTURES + 1,)).fetchall()
        if len(rows) > MOST_CAPTURES:
            raise StoreError(
                f"the store {self.path.name!r}", f"it holds over {MOST_CAPTURES} captures", "Name another with --db"
            )
        return [captures.read_report(*row) for row in rows]

    @refusing
    def resolve(self, prefix: str | None = None) -> str:
        """The id that begins with ``prefix``; the newest without one. Raises UnknownName where that is none or several."""
        return called.capture_called(self._con, prefix)

    @refusing
    def report(self, capture: str) -> CaptureReport:
        """What the capture holds, as it was said when it was imported."""
        sql = "SELECT report, reference FROM captures WHERE key = ?"
        return captures.read_report(*self._con.execute(sql, (self._key(capture),)).fetchone())

    @refusing
    def capture(self, capture: str) -> Capture:
        """The capture with all its small tables. Spans are not read: every ``tree`` is None (see :meth:`tree_rows`)."""
        return captures.read_capture(self._con, self._key(capture))

    @refusing
    def assessment(self, capture: str) -> Assessment:
        """What judging found by numbers."""
        return captures.read_assessment(self._con, self._key(capture))

    @refusing
    def answer(self, capture: str, request: int, metric: str = "e2e") -> WhyReport | None:
        """The stored answer about the request with this number; None where there is none for this metric."""
        return captures.read_answer(self._con, self._key(capture), request, metric)

    @refusing
    def claimed(self, capture: str) -> dict[int, str]:
        """The cause that the stored answer names first, by the request's number; those of which none is named are left out."""
        return captures.read_claimed(self._con, self._key(capture))

    @refusing
    def learned_rows(self) -> list[LearnedRow]:
        """What was learned, by name, without its numbers."""
        return learned.read_rows(self._con)

    @refusing
    def learned_chosen(
        self, choose: Callable[[Sequence[LearnedRow]], str | None]
    ) -> tuple[list[LearnedRow], Learned | None]:
        """What was learned, and of that the baseline whose name ``choose`` gives: of one moment, whatever others do meanwhile.
        Raises what :meth:`learned` and ``choose`` raise.
        """
        self._con.execute("BEGIN")
        try:
            rows = learned.read_rows(self._con)
            name = choose(rows)
            return rows, None if name is None else learned.read(self._con, name)
        finally:
            if self._con.in_transaction:
                self._con.execute("ROLLBACK")

    @refusing
    def learned(self, name: str) -> Learned:
        """The baseline of this name. Raises UnknownName for none, StoreError for one of another format or a damaged one."""
        return learned.read(self._con, name)

    @refusing
    def keep_learned(self, *given: Learned, unless: Callable[[Sequence[LearnedRow]], object] | None = None) -> None:
        """Keep baselines, in place of those of their names: all of them whole, or none. ``unless`` raises where what was learned
        by then forbids it. Waits as :meth:`save` does.
        """
        self._con.execute("BEGIN IMMEDIATE")
        try:
            if unless is not None:
                unless(learned.read_rows(self._con))
            for each in given:
                learned.write(self._con, each)
            self._con.execute("COMMIT")
        finally:
            if self._con.in_transaction:
                self._con.execute("ROLLBACK")

    @refusing
    def forget_learned(self, name: str) -> None:
        """Remove a baseline. Raises UnknownName where there is none of this name."""
        learned.remove(self._con, name)

    @refusing
    def refined(self, capture: str, request: int, metric: str, model: str) -> WhyReport | None:
        """The stored answer that ``model`` (an id) had a part in; None where there is none."""
        return captures.read_refined(self._con, self._key(capture), request, metric, model)

    @refusing
    def keep_refined(self, answer: WhyReport, model: str) -> None:
        """Keep an answer that ``model`` had a part in. It can be made again, so nobody who is writing is waited for."""
        self._con.execute("PRAGMA busy_timeout=0")
        captures.write_refined(self._con, self._key(answer.capture), answer, model)

    @refusing
    def held(self, capture: str, reference: str) -> tuple[Baselines, Candidates] | None:
        """What :meth:`keep_held` kept of this ``reference``, None for nothing."""
        return captures.read_held(self._con, self._key(capture), reference)

    @refusing
    def keep_held(self, capture: str, assessment: Assessment) -> None:
        """Keep what a profile says held against another reference than at import: the last one alone. It can be made again, so
        nobody who is writing is waited for.
        """
        self._con.execute("PRAGMA busy_timeout=0")
        self._con.execute("BEGIN IMMEDIATE")
        try:
            captures.write_held(self._con, self._key(capture), assessment)
            self._con.execute("COMMIT")
        finally:
            if self._con.in_transaction:
                self._con.execute("ROLLBACK")

    @refusing
    def tree_rows(
        self,
        capture: str,
        rank: int,
        low: int = 0,
        high: int | None = None,
        columns: Sequence[str] | None = None,
    ) -> Tree:
        """Rows ``low`` to ``high`` of a rank's tree, all by default; ``rank`` is a position in ``Capture.ranks``.

        A part is a tree of its own: row 0 is ``low``, parents outside are ROOT, and ``names`` and ``args`` hold those in use
        alone. ``columns`` names the trace's columns to read (``start``, ``dur``, ``name`` ...); the others come back empty,
        so that using one fails. Raises UnknownName for rows that are not there.
        """
        stored = find_tree(self._con, self._key(capture), rank)
        high = stored.rows if high is None else high
        if not 0 <= low <= high <= stored.rows:
            has = f"rank {rank} has the rows 0 to {stored.rows - 1}" if stored.rows else f"rank {rank} has no spans"
            raise UnknownName("the span", has, "Take a handle from an answer or a slice")
        return read_tree(self._con, stored, low, high, columns)

    @refusing
    def arguments(self, capture: str, rank: int, codes: Int32) -> list[str]:
        """The arguments of a rank's tree by their codes, as JSON object text; empty for -1, which is none."""
        return read_arguments(self._con, find_tree(self._con, self._key(capture), rank), codes)

    @refusing
    def subtree(self, capture: str, rank: int, row: int) -> Tree:
        """The span at ``row`` of a rank's tree and all below it. Raises UnknownName for a span that is not there."""
        stop = questions.subtree_stop(self._con, find_tree(self._con, self._key(capture), rank), row)
        return self.tree_rows(capture, rank, row, stop)

    @refusing
    def step_of(self, capture: str, rank: int, row: int) -> int | None:
        """Position of the step that the span at ``row`` of a rank's tree belongs to, None for none."""
        return questions.step_of(self._con, self._key(capture), rank, row)

    @refusing
    def traced(self, capture: str) -> list[int]:
        """Positions of the ranks of which a trace was recorded."""
        return questions.traced(self._con, self._key(capture))

    @refusing
    def rows(
        self, capture: str, table: type[Row], column: str = "position", low: int = 0, high: int | None = None
    ) -> Row:
        """The rows of a small table whose ``column`` lies in ``low`` to before ``high``; all of them by default."""
        return read_window(self._con, self._key(capture), table, column, low=low, high=high)

    @refusing
    def steps(self, capture: str, low: int = 0, high: int | None = None) -> Steps:
        """The steps at positions ``low`` to ``high``."""
        return read_window(self._con, self._key(capture), Steps, "position", low=low, high=high)

    @refusing
    def lines_of(self, capture: str, rules: Iterable[str]) -> Lines:
        """The log lines that one of ``rules`` knows, by time."""
        return questions.lines_of(self._con, self._key(capture), list(rules))

    @refusing
    def ranks(self, capture: str) -> list[Rank]:
        """The ranks of the capture, without their trees."""
        return captures.read_ranks(self._con, self._key(capture))

    @refusing
    def work(self, capture: str, low: int = 0, high: int | None = None) -> StepWork:
        """Where the steps at positions ``low`` to ``high`` ran. ``step`` counts from the capture's first."""
        return read_window(self._con, self._key(capture), StepWork, "step", low=low, high=high)

    @refusing
    def requests(self, capture: str, low: int = 0, high: int | None = None) -> Requests:
        """The requests at positions ``low`` to ``high``."""
        return read_window(self._con, self._key(capture), Requests, "position", low=low, high=high)

    @refusing
    def participation(self, capture: str, low: int = 0, high: int | None = None) -> Participation:
        """Who took part in the steps at positions ``low`` to ``high``. ``step`` counts from the capture's first."""
        key = self._key(capture)
        if low == 0 and high is None:
            return read_long(self._con, key, Participation)
        return read_long(
            self._con, key, Participation, *rows_of_steps(self._con, key, low, 2**31 - 1 if high is None else high)
        )

    @refusing
    def slow_rows(self, capture: str, metric: str = "e2e", limit: int = 20, cursor: str | None = None) -> SlowPage:
        """A page of the slow list, slowest first. Captures never change, so a cursor stays good."""
        return questions.slow_rows(self._con, self._key(capture), metric, limit, cursor)

    @refusing
    def metrics(self, capture: str) -> dict[str, float]:
        """What was counted of the service or by its callers, by name, as far as it stands for the whole capture."""
        return captures.read_metrics(self._con, self._key(capture))

    @refusing
    def values(self, capture: str, metric: str = "e2e") -> Int64:
        """int64 ns a request, in order: its value of ``metric``, UNKNOWN where it was not measured."""
        return questions.values(self._con, self._key(capture), metric)

    @refusing
    def operator_names(self, capture: str) -> OperatorNames:
        """The names of all operators that have a baseline, and the self time of their layers."""
        return questions.operator_names(self._con, self._key(capture))

    @refusing
    def operator_rows(self, capture: str, names: Sequence[str]) -> Baselines:
        """The baselines of the operators called exactly one of ``names``, most time first."""
        return questions.operator_rows(self._con, self._key(capture), names)

    @refusing
    def calls(self, capture: str, rank: int, wanted: Callable[[Sequence[str]], list[int]]) -> NamedCalls | None:
        """The calls of some names on a rank, ``wanted`` of its table of names; None for a capture that was stored without."""
        return read_calls(self._con, self._key(capture), rank, wanted)

    @refusing
    def request_number(self, capture: str, name: str) -> int:
        """The number of the request with this number or engine, client or trace id. Raises UnknownName."""
        return called.request_number(self._con, self._key(capture), name)

    @refusing
    def request_of(self, capture: str | None, name: str) -> tuple[str, int]:
        """The capture (its id, from any prefix) and the number of a request in it. Without a capture the newest is meant and, for
        an id that it has not, the newest that has it. Raises UnknownName.
        """
        found = self.resolve(capture)
        if capture is None and called.request_is_elsewhere(self._con, self._key(found), name):
            return called.request_anywhere(self._con, name)
        return found, self.request_number(found, name)

    @refusing
    def ask(self, question: Callable[..., Told], *args: object) -> Told:
        """What ``question`` answers: a function of this room that is given the connection before ``args``."""
        return question(self._con, *args)

    def _key(self, capture: str) -> int:
        found = self._con.execute("SELECT key FROM captures WHERE id = ?", (capture,)).fetchone()
        if found is None:
            raise UnknownName("the capture", "no capture here has this id", "List their ids with `captures`")
        return int(found[0])

    @refusing
    def _upgrade(self, read_only: bool) -> None:
        upgrade(self.path, self._con, read_only=read_only)
