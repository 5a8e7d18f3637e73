"""What people look at: a request and its worst step beside usual ones, as rows of marks to draw, and a step as a trace to open.

Each question reads the rows and spans that its answer needs and leaves the rest where it is. All raise TellerError.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.context.linking import clear
from teller_core.context.moments import blamed_step
from teller_core.data.assessment import RequestExpectations, StepExpectations
from teller_core.data.capture import Capture
from teller_core.data.linked import StepSpans
from teller_core.data.report import SliceReport, WhyReport
from teller_core.data.report_findings import Finding
from teller_core.data.report_timeline import TimelinePanel, TimelineReport
from teller_core.data.steps import StepWork
from teller_core.data.table import UNKNOWN, Int64, take
from teller_core.errors import UnknownName
from teller_core.slices import SPAN_COLUMNS, causal_slice, uncut
from teller_core.store.store import Store
from teller_core.tell.chrome import chrome_trace, events_in
from teller_core.tell.timeline.beside import beside_request, beside_step
from teller_core.tell.timeline.marks import Lane, rows_of
from teller_core.tell.timeline.request import request_lanes
from teller_core.tell.timeline.step import step_lanes

MARKS = 3000
"""Marks of a picture at most, over all its panels: more cannot be told apart, and a page with them stays under a megabyte."""
SPANS = 400_000
"""Spans of a step that are looked at: a second of work. A step with more is drawn without its spans, and that is said."""
ALIKE = 0.25
"""The step beside has at least this part of the spans of the one to look at, or there would be nothing to compare."""
CUT = 6000
"""Tokens of the slice beside a picture: some 80 lines, which fold."""


class Illustrated(NamedTuple):
    """What stands beside an answer: its timeline, the slice of what it blames, None for the reason in ``why_no_cut``."""

    timeline: TimelineReport
    cut: SliceReport | None
    why_no_cut: str


def illustrated(store: Store, answer: WhyReport) -> Illustrated:
    """``answer`` with what people look at beside it."""
    step = _blamed(answer)
    target = f"request {answer.request}" if step is None else f"step {step}"
    drawn = timeline(store, answer)
    try:
        return Illustrated(drawn, causal_slice(store, target, capture=answer.capture, budget=CUT), "")
    except UnknownName as error:  # a request of which no step is known is an answer like any other
        return Illustrated(drawn, None, f"There are none: {error.why}.")


def timeline(store: Store, answer: WhyReport) -> TimelineReport:
    """The request of ``answer`` beside a usual one, and the step that is blamed beside a usual one of like work, layer by layer
    and rank by rank, with what the findings blame marked.
    """
    found = answer.capture
    tables = store.capture(found)
    expected = store.rows(found, StepExpectations)
    at = answer.request - 1
    beside = beside_request(at, answer.metric, tables.requests, store.rows(found, RequestExpectations))
    panels = [_request(tables, at, answer.findings, expected, "asked")]
    untimed = (
        ""
        if panels[0] is not None
        else f"when request {answer.request} began or ended is not known, so it is not drawn"
    )
    if beside.at is not None:
        panels.append(_request(tables, beside.at, (), expected, "beside"))
    drawn, note = _steps(store, tables, answer, expected, beside.at)
    return TimelineReport(
        capture=found,
        request=answer.request,
        metric=answer.metric,
        beside=None if beside.at is None else beside.at + 1,
        beside_why=beside.why,
        panels=[*(one for one in panels if one is not None), *drawn],
        note="; ".join(filter(None, [untimed, note])),
    )


def _blamed(answer: WhyReport) -> int | None:
    """The step of the first finding that blames one, None for none."""
    return next((one.step for one in answer.findings if one.step is not None), None)


def _request(
    tables: Capture, at: int, findings: Sequence[Finding], expected: StepExpectations, side: str
) -> TimelinePanel | None:
    drawn = request_lanes(tables, at, findings, expected.took)
    if drawn.length == UNKNOWN:
        return None
    name = f"Request {at + 1}"
    panel = _panel(
        drawn.lanes, drawn.begin, drawn.length, shows="request", side=side, request=at + 1, step=None, title=name
    )
    return panel.model_copy(update={"note": drawn.left_out})


def _steps(
    store: Store, tables: Capture, answer: WhyReport, expected: StepExpectations, beside: int | None
) -> tuple[list[TimelinePanel], str]:
    """The panels of the blamed step and of a usual one, and why there are none."""
    at = answer.request - 1
    blamed = _blamed(answer)
    if blamed is None:
        chosen = blamed_step(at, tables.requests, tables.participation, tables.steps, expected)
        if chosen is None:
            return [], "no step of a known time is known to have served it, so none is drawn"
        blamed = chosen[0]
    rows = _profiled_rows(tables)
    if not rows[blamed]:
        return [], f"no profile overlaps step {blamed}, so what happened inside it is not drawn"
    liked = tables.participation.step[tables.participation.request == (-1 if beside is None else beside)]
    seen = rows >= ALIKE * rows[blamed]
    other = beside_step(blamed, tables.steps, expected, seen, np.unique(liked).astype(np.int64))
    own = tables.participation.step[tables.participation.request == at]
    apart = f"it did not serve request {answer.request}: it is where the cause shows" if len(own) else ""
    panels = [_step(store, tables, blamed, answer.findings, "asked", note="" if blamed in own else apart)]
    if other.at is not None:
        panels.append(_step(store, tables, other.at, (), "beside"))
    return [one for one in panels if one is not None], f"beside step {blamed}: {other.why}"


def _profiled_rows(tables: Capture) -> Int64:
    """int64 a step: how many spans the profiles that overlap it have of it, on all ranks."""
    work = take(tables.work, tables.work.row >= 0)
    rows = np.zeros(len(tables.steps.number), dtype=np.int64)
    np.add.at(rows, work.step, (work.row_stop - work.row).astype(np.int64))
    return rows


def _step(
    store: Store, tables: Capture, step: int, findings: Sequence[Finding], side: str, *, note: str = ""
) -> TimelinePanel | None:
    work = take(tables.work, (tables.work.step == step) & (tables.work.row >= 0))
    spans, unread = _spans(store, tables, work)
    only = take(tables.steps, np.array([step]))
    drawn = step_lanes(step, only, spans, pauses=tables.pauses, ranks=tables.ranks, findings=findings)
    if drawn.length == UNKNOWN:
        return None
    said = [note, f"{unread:,} spans were too many to draw" if unread else "", drawn.note]
    panel = _panel(
        drawn.lanes, drawn.begin, drawn.length, shows="step", side=side, request=None, step=step, title=f"Step {step}"
    )
    return panel.model_copy(update={"left_out": drawn.left_out, "note": "; ".join(filter(None, said))})


def _spans(store: Store, tables: Capture, work: StepWork) -> tuple[list[StepSpans], int]:
    """The spans of a step, of ranks with few before those with more, as far as they are not too many, and how many were left.
    Of a process that two recorders saw, those of one.
    """
    spans: list[StepSpans] = []
    room, left = SPANS, 0
    for at in np.argsort(work.row_stop - work.row, kind="stable").tolist():
        rank, low, high = int(work.rank[at]), int(work.row[at]), int(work.row_stop[at])
        if high - low > room:
            left += high - low
            continue
        room -= high - low
        tree = store.tree_rows(tables.id, rank, low, high, SPAN_COLUMNS)
        spans.append(StepSpans(rank, low, tree, tables.ranks[rank].shift))
    return clear(spans, tables.ranks), left


def _panel(lanes: Sequence[Lane], begin: int, length: int, **named: object) -> TimelinePanel:
    rows, merged = rows_of(lanes, begin, length, MARKS // 4)
    return TimelinePanel.model_validate(
        {**named, "length_ms": round(length / 1e6, 4), "rows": rows, "merged": merged, "left_out": 0, "note": ""}
    )


def as_chrome(
    store: Store, target: str, *, capture: str | None = None, rank: int | None = None
) -> tuple[Iterator[str], int]:
    """The spans that ``target`` names, as for a slice, as the pieces of a Chrome trace, and how many they are."""
    made = uncut(store, target, capture=capture, rank=rank)
    about = f"{made.about} of capture {made.capture[:12]}, by TELLER"
    return chrome_trace(made.spans, store.ranks(made.capture), about), events_in(made.spans)
