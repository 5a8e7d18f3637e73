"""From a capture to sheets: what the root-cause model is shown of its steps and requests.

``judge`` and ``context`` each write their parts; here they are put together. A sheet holds what was recorded, and not what
somebody called the capture or its files.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from teller_core.context.linking import clear
from teller_core.context.sheet_lines import said_between
from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.learned import Learned
from teller_core.data.linked import StepSpans
from teller_core.data.report import Metric
from teller_core.data.sheet_parts import PARTS, Facts, Pieces, Said, Suspects, Together, joined_rows, no_rows
from teller_core.data.sheets import CLUE, AnyPart, Kind, Sheets, View, cause_ids, no_sheets, place_of, with_rows
from teller_core.data.table import UNKNOWN, Float32, Int64, rows
from teller_core.errors import StoreError
from teller_core.judge.clues import clues_of
from teller_core.judge.evidence import SAMPLED
from teller_core.judge.learned import held_against
from teller_core.judge.life import Life
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.questions import ask
from teller_core.judge.scene import scene
from teller_core.judge.sheet_facts import CHARGED, facts_of, step_clues, suspects_of
from teller_core.judge.sheet_numbers import held_of_steps, request_row, step_rows
from teller_core.judge.sheet_ranks import met_pieces, together
from teller_core.judge.step_numbers import window
from teller_core.judge.windows import Keyed, keyed
from teller_core.store.store import Store
from teller_core.tell.visible import visible

if TYPE_CHECKING:
    from teller_core.context.tpe.codings import Coding

CODING = "coding of steps"
"""The name under which a case knows its own."""
LONGEST = 200
"""Characters of a name."""
MOST_ROWS = 4_000_000
"""Spans of a rank that are read back from a store: with more, what profiles say is left out."""

MOST_HELD = 4_000_000
"""Spans of a capture, of all its ranks, that are read to hold its operators against something else than at import: seconds."""


@dataclass(frozen=True)
class _Sheet:
    """One sheet before it is a row of many."""

    kind: Kind
    view: View
    position: int
    step: int
    span: int
    numbers: Float32
    clues: Float32
    pieces: Pieces
    suspects: Suspects
    said: Said
    facts: Facts
    together: Together


def stored_case(store: Store, capture: str) -> Case:
    """A capture of a store made ready for many sheets, with the trees of the ranks of which a profile was kept: without them,
    sheets lack what profiles say.
    """
    tables = store.capture(capture)
    # The model learned from captures held against themselves.
    return prepare(with_profiles(store, tables), held(store, tables, None))


def held(store: Store, capture: Capture, learned: Learned | None) -> Assessment:
    """The numbers of a capture of ``store`` held against what was ``learned``, or, for None, against itself alone. Spans are read
    where its operators were held against something else, and are not too many; what they say is kept in the store.
    """
    numbers = store.assessment(capture.id)
    if learned is None and not numbers.reference:
        return numbers
    called = "" if learned is None else learned.called
    spans = sum(rank.spans for rank in store.report(capture.id).ranks)
    if numbers.reference == called or not 0 < spans <= MOST_HELD:
        return held_against(capture, numbers, learned)
    if (known := store.held(capture.id, called)) is not None:
        numbers = replace(numbers, baselines=known[0], candidates=known[1], reference=called)
        return held_against(capture, numbers, learned)
    made = held_against(with_profiles(store, capture), numbers, learned)
    if not made.left_out:
        # A store that is being written to, or cannot be: the numbers are as good, and are made again when somebody asks again.
        with suppress(StoreError), Store.open(store.path) as writable:
            writable.keep_held(capture.id, made)
    return made


def with_profiles(store: Store, capture: Capture) -> Capture:
    """A capture of a store with the trees of the ranks of which a profile was kept, but for those too long to read back."""
    most = np.zeros(len(capture.ranks), np.int64)
    np.maximum.at(most, capture.work.rank, capture.work.row_stop)
    read = [at for at in store.traced(capture.id) if 0 < int(most[at]) <= MOST_ROWS]
    ranks = [
        replace(rank, tree=store.tree_rows(capture.id, at)) if at in read else rank
        for at, rank in enumerate(capture.ranks)
    ]
    return replace(capture, ranks=ranks)


def request_sheets(case: Case, requests: Int64, metric: Metric = "e2e") -> Sheets:
    """One sheet for each of ``requests`` (positions), by ``metric``."""
    return _put_together(case, [_request(case, request, metric) for request in requests.tolist()])


def step_sheets(case: Case, steps: Int64) -> Sheets:
    """For each of ``steps`` (positions) a vertical sheet, and where several ranks worked on it a horizontal one."""
    numbers = step_rows(case, steps) if len(steps) else np.empty((0, len(place_of())), np.float32)
    stretch = window(case, steps)
    made: list[_Sheet] = []
    for at, step in enumerate(steps.tolist()):
        low, high = (int(edge[at]) if stretch.known[at] else UNKNOWN for edge in (stretch.low, stretch.high))
        made += _step(case, step, numbers[at], low, high)
    return _put_together(case, made)


def _request(case: Case, request: int, metric: Metric) -> _Sheet:
    view = scene(case, request, metric)
    clues = clues_of(view, ask(case, request, metric, None))
    step = _most_suspicious(case, view.life)
    ranks = together(case, view.life.step.astype(np.int64))
    numbers = request_row(view)
    _between(numbers, ranks)
    pieces, suspects = _profile(case, step)
    return _Sheet(
        kind=Kind.REQUEST,
        view=View.VERTICAL,
        position=request,
        step=step,
        span=view.span or UNKNOWN,
        numbers=numbers,
        clues=clues.number,
        pieces=pieces,
        suspects=suspects,
        said=_said(case, view.low, view.high, _naming(case, "request", request)),
        facts=facts_of(case, clues.found, view.span),
        together=ranks,
    )


def _step(case: Case, step: int, numbers: Float32, low: int, high: int) -> Iterable[_Sheet]:
    span = high - low if UNKNOWN not in (low, high) else UNKNOWN
    held = held_of_steps(case)
    said = step_clues(case, step, held)
    clues = np.full((len(cause_ids()), len(CLUE)), np.nan, np.float32)
    if case.expected[step] != UNKNOWN and span > 0:
        cost = {clue.cause: min(clue.ns / span, 1.0) for clue in said}
        for key, _ in CHARGED.values():
            clues[cause_ids().index(key)] = cost.get(key, 0.0), SAMPLED if key in cost else 0.0, 0.0
    ranks = together(case, np.array([step], np.int64))
    _between(numbers, ranks)
    pieces, suspects = _profile(case, step)
    one = _Sheet(
        kind=Kind.STEP,
        view=View.VERTICAL,
        position=step,
        step=step,
        span=span,
        numbers=numbers,
        clues=clues,
        pieces=pieces,
        suspects=suspects,
        said=_said(case, low, high, _naming(case, "step", step)),
        facts=facts_of(case, said, max(span, 1)),
        together=ranks,
    )
    yield one
    if len(ranks.rank) > 1:
        met = met_pieces(case, step)
        yield replace(one, view=View.HORIZONTAL, pieces=met, suspects=_placed(suspects, met))


def _most_suspicious(case: Case, life: Life) -> int:
    """Of its steps, or of those with a profile, the one that took most beyond what its work asks for; -1 for none."""
    own = life.step.astype(np.int64)
    profiled = own[case.profiled[own]]
    own = profiled if len(profiled) else own
    if not len(own):
        return -1
    excess = case.assessment.steps.excess[own]
    took = np.where(case.took[own] == UNKNOWN, 0, case.took[own])
    return int(own[np.argmax(np.where(excess != UNKNOWN, excess, took - np.iinfo(np.int64).max // 2))])


def _between(numbers: Float32, ranks: Together) -> None:
    """Fill in what a sheet says of its ranks as a whole."""
    if not len(ranks.rank):
        return
    place = place_of()
    numbers[place["ranks.ranks"]] = np.log1p(len(ranks.rank))
    for name, column in (("late_share", ranks.late), ("transfer", ranks.transfer)):
        if not np.isnan(column).all():
            numbers[place[f"ranks.{name}"]] = np.nanmax(column)


def _profile(case: Case, step: int) -> tuple[Pieces, Suspects]:
    if step < 0:
        return no_rows(Pieces), no_rows(Suspects)
    return case.once(f"pieces of step {step}", lambda case: _of_profile(case, step))


def _of_profile(case: Case, step: int) -> tuple[Pieces, Suspects]:
    suspects = suspects_of(case, step)
    parts = _spans(case, step)
    if not parts:
        return no_rows(Pieces), suspects
    # Compiled code: sheets of captures without a profile do without.
    from teller_core.context.sheet_pieces import pieces_of, usual_of

    usual = case.once("usual spans", lambda case: usual_of(case.assessment.baselines))
    begin = int(case.begin[step]) if case.begin[step] != UNKNOWN else int(parts[0].tree.trace.start[0]) + parts[0].shift
    took = int(case.took[step]) if case.took[step] > 0 else max(part.tree.trace.lasted for part in parts)
    kept = {part.rank: suspects.row[suspects.rank == part.rank] for part in parts}
    pieces = pieces_of(parts, kept, usual, _coding(case), begin=begin, took=took)
    return pieces, _placed(suspects, pieces)


def _spans(case: Case, step: int) -> list[StepSpans]:
    """The rows of a step on every rank with a profile of it; of two recorders of one process those of the one that saw more."""
    work, ranks = case.capture.work, case.capture.ranks
    parts: list[StepSpans] = []
    low, high = np.searchsorted(work.step, [step, step + 1]).tolist()
    for at in range(low, high):
        tree = ranks[int(work.rank[at])].tree
        if tree is not None and case.detailed[at] and work.row_stop[at] > work.row[at]:
            rank, begin, end = int(work.rank[at]), int(work.row[at]), int(work.row_stop[at])
            parts.append(StepSpans(rank, begin, tree.part(begin, end), ranks[rank].shift))
    return clear(parts, ranks) if len(parts) > 1 else parts


def _placed(suspects: Suspects, pieces: Pieces) -> Suspects:
    """``suspects`` with the piece that each lies in: that of its span, else the one of its name that took most."""
    place = np.full(len(suspects.row), -1, np.int32)
    for at, (name, rank, row) in enumerate(zip(suspects.name, suspects.rank, suspects.row, strict=True)):
        mine = np.flatnonzero((pieces.rank == rank) & (pieces.row == row)) if row >= 0 else np.empty(0, np.int64)
        if not len(mine):
            mine = np.array([number for number, other in enumerate(pieces.name) if other == name], np.int64)
        if len(mine):
            place[at] = mine[np.argmax(pieces.own[mine])]
    return replace(suspects, piece=place)


def _said(case: Case, low: int, high: int, own: Int64) -> Said:
    if UNKNOWN in (low, high):
        return no_rows(Said)
    return said_between(case.capture.lines, low, high, own)


def _naming(case: Case, what: str, position: int) -> Int64:
    """The rows of the log lines that name a request, or a step."""
    by = case.once(f"lines by {what}", lambda case: _by(case, what))
    return by.of(np.array([position], np.int64))


def _by(case: Case, what: str) -> Keyed:
    return keyed(getattr(case.capture.lines, what).astype(np.int64))


def _put_together(case: Case, made: Sequence[_Sheet]) -> Sheets:
    if not made:
        return no_sheets()
    parts: dict[str, Any] = {part: _cleaned(joined_rows([getattr(one, part) for one in made])) for part in PARTS}
    parts |= {f"{part}_at": with_rows([rows(getattr(one, part)) for one in made]) for part in PARTS}
    has_tokens = any((one.pieces.symbol >= 0).any() for one in made)
    return Sheets(
        kind=np.array([one.kind for one in made], np.uint8),
        view=np.array([one.view for one in made], np.uint8),
        tier=np.full(len(made), case.capture.tier, np.uint8),
        position=np.array([one.position for one in made], np.int32),
        step=np.array([one.step for one in made], np.int32),
        span=np.array([one.span for one in made], np.int64),
        numbers=np.nan_to_num(np.stack([one.numbers for one in made]), nan=np.nan, posinf=np.nan, neginf=np.nan),
        clues=np.stack([one.clues for one in made]),
        **parts,
        vocabulary=_coding(case).hash if has_tokens else "",
    )


def coded_by(case: Case, coding: "Coding") -> Case:
    """``case`` whose steps are made tokens of in another way than by the vocabulary that comes with the project."""
    return replace(case, measured={**case.measured, CODING: coding})


def _coding(case: Case) -> "Coding":
    return case.once(CODING, lambda case: _default())


def _default() -> "Coding":
    from teller_core.context.tpe.codings import guarded
    from teller_core.context.tpe.default import default

    return guarded(default())


def _cleaned(part: AnyPart) -> AnyPart:
    """``part`` with names that are safe to show, and short."""
    names = {
        name: [visible(cell)[:LONGEST] for cell in getattr(part, name)]
        for name in ("name", "operator")
        if hasattr(part, name)
    }
    return replace(part, **names)
