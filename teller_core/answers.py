"""What people ask of a store: which requests were slow, why, what bears on a step, what an operator does, what differs.

Each question reads the rows and spans that its answer needs and leaves the rest where it is. All raise TellerError.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from teller_core.baselines import at_import, not_used, rows_and_usual, stored_service
from teller_core.data import losses
from teller_core.data.assessment import Assessment, StepExpectations
from teller_core.data.capture import Absences, Capture, Collectives, Meetings
from teller_core.data.learned import Learned
from teller_core.data.outcomes import Outcomes
from teller_core.data.readings import Buckets, Readings
from teller_core.data.report import (
    CapturesReport,
    CompareReport,
    Metric,
    SlowReport,
    View,
    WhyReport,
)
from teller_core.data.report_operators import OperatorReport
from teller_core.data.steps import Requests, StepWork
from teller_core.data.table import take
from teller_core.data.trace import Layer
from teller_core.errors import InputError, UnknownName
from teller_core.slices import SPAN_COLUMNS, problems_of, with_losses
from teller_core.store.calls import NamedCalls
from teller_core.store.learned import LearnedRow
from teller_core.store.store import Store
from teller_core.store.told_lines import told_lines
from teller_core.tell.callers import callers_say
from teller_core.tell.coarse import coarse_note
from teller_core.tell.cohort_features import Known
from teller_core.tell.cohorts import Told, what_differs
from teller_core.tell.compare import CaptureView, RequestView, compare_captures, compare_requests
from teller_core.tell.compare_windows import Window, window
from teller_core.tell.explain import explain
from teller_core.tell.horizontal import Sides, horizontal_report
from teller_core.tell.instead import instead, no_requests
from teller_core.tell.log_levels import GAUGES as LOGGED
from teller_core.tell.log_levels import log_readings
from teller_core.tell.names import shorten
from teller_core.tell.operator import calls_in, codes_of
from teller_core.tell.operator import explain_operator as operator_report
from teller_core.tell.operator_calls import RankCalls
from teller_core.tell.operator_waits import waits
from teller_core.tell.service import with_service
from teller_core.tell.slow import slow_report

SINCE = (
    "Requests were judged when their capture was imported, held against the baseline that is named with it, else against the "
    "capture itself. Baselines were learned or forgotten since: `why` holds a request against what is learned now."
)
SHORTEST_SLO_MS, LONGEST_SLO_MS = 1e-6, 1e12
"""From the nanosecond in which times are kept to thirty years, which still are int64 ns."""
WINDOW_COLUMNS = (*SPAN_COLUMNS, "category", "arg")
"""What comparing what devices did needs."""
MOST_WINDOWS, MOST_SPANS = 16, 4_000_000
"""Ranks of a capture, and spans of a rank, that are looked through to compare two captures: a second or two."""


def list_captures(store: Store) -> CapturesReport:
    """What was imported, the newest first; and whether baselines were learned or forgotten since."""
    captures, rows = store.captures(), store.learned_rows()
    known = {row.called for row in rows}
    later = max((row.learned_at for row in rows), default="")
    asked = [one for one in captures if one.requests]
    old = any((one.reference and one.reference not in known) or one.imported_at < later for one in asked)
    return CapturesReport(captures=captures, note=SINCE if old else "")


def slow(
    store: Store,
    *,
    capture: str | None = None,
    metric: Metric = "e2e",
    slo_ms: float | None = None,
    limit: int = 20,
    cursor: str | None = None,
    view: View = "vertical",
) -> SlowReport:
    """The requests of a capture, slowest first by ``metric``, and what the slow have in common; or, in the horizontal view, its
    ranks, those first that others waited for most, and the collectives in which they did.
    """
    _check_promise(metric, slo_ms)
    found = store.resolve(capture)
    if view == "horizontal":
        return _horizontal(store, found, limit, cursor)
    kept = "e2e" if metric == "slo" else metric
    page = store.slow_rows(found, kept, limit, cursor)
    requests, values = store.requests(found), store.values(found, kept)
    note = callers_say(requests, values, store.metrics(found))
    told = what_differs(_known(store, found, requests), values) if page.total and not note else Told(note, None)
    note = " ".join(filter(None, [told.sentence, coarse_note(requests)]))
    report = slow_report(
        found, metric, page.rows, total=page.total, next_cursor=page.next_cursor, slo_ms=slo_ms, note=note
    )
    if not cursor:
        report = report.model_copy(update={"contrast": told.contrast})
        report = _with_date(with_service(report, store.rows(found, Buckets), _readings(store, found)), store, found)
    report = _with_reference(report, store, found)
    if not page.total:
        report = _without_requests(report, store, found)
    return with_losses(report, losses.REQUESTS, problems_of(store, found))


def _known(store: Store, capture: str, requests: Requests) -> Known:
    """What was recorded of the requests of a capture."""
    return Known(
        requests,
        store.participation(capture),
        store.rows(capture, Outcomes),
        store.ask(told_lines, capture),
    )


def _with_date(report: SlowReport, store: Store, capture: str) -> SlowReport:
    """``report`` with a word on times that the date of a file tells and no page: whoever copied the file has changed it."""
    dated = {file.format for file in store.report(capture).files if file.clock == "date"}
    if not dated or not (report.service or report.levels):
        return report
    said = "When its metrics were fetched is told by the dates of their files alone, which copying may have changed."
    return report.model_copy(update={"note": " ".join(filter(None, [report.note, said]))})


def _with_reference(report: SlowReport, store: Store, capture: str) -> SlowReport:
    """``report`` with what its verdicts were held against at import, and what stands for the capture now."""
    said = at_import(store, capture) if report.rows else ""
    return report.model_copy(update={"note": " ".join(filter(None, [report.note, said]))})


def _readings(store: Store, capture: str) -> Readings:
    """What the service counted of all its requests: by its /metrics, else as its log says from time to time."""
    told = store.rows(capture, Readings)
    return told if told.name else log_readings(store.lines_of(capture, LOGGED))


def _without_requests(report: SlowReport, store: Store, capture: str) -> SlowReport:
    """``report`` with why it is empty and what has an answer."""
    mine = store.report(capture)
    took = store.rows(capture, StepExpectations).took
    longest = int(np.argmax(took)) if len(took) and int(took.max()) > 0 else None
    note = " ".join(filter(None, [no_requests(mine), report.note]))
    return report.model_copy(update={"note": note, "instead": instead(mine, store.captures(), longest)})


def _horizontal(store: Store, capture: str, limit: int, cursor: str | None) -> SlowReport:
    def name_of(rank: int, row: int) -> str:
        trace = store.tree_rows(capture, rank, row, row + 1, ("name",)).trace
        return shorten(trace.names[int(trace.name[0])])

    report = horizontal_report(
        capture,
        Sides(
            store.ranks(capture),
            store.rows(capture, Collectives),
            store.rows(capture, Meetings),
            store.rows(capture, Absences),
        ),
        name_of,
        limit=limit,
        cursor=cursor,
    )
    return with_losses(report, losses.CLOCKS, problems_of(store, capture))


def why(
    store: Store,
    request: str,
    *,
    capture: str | None = None,
    metric: Metric = "e2e",
    slo_ms: float | None = None,
    against: str | None = None,
) -> WhyReport:
    """Why ``request`` (its number, or an id of the engine, the caller or a trace) took what it took. ``against``: the name of a
    baseline that was learned, by default that of the capture's service, where there is one.

    The answer by end-to-end time was made at import. Another metric, a promise to keep, or what was learned since is judged now.
    """
    _check_promise(metric, slo_ms)
    found, number = store.request_of(capture, request)
    rows, learned, service = store.learned_rows(), None, {}
    if rows or against:
        service = stored_service(store, found)
        rows, learned = rows_and_usual(store, service, against)
    stored = store.answer(found, number)
    reference = "" if learned is None else learned.called
    if stored is not None and metric == "e2e" and slo_ms is None and stored.reference == reference:
        return _with_unused(stored, rows, service)
    from teller_core.context.linking import step_linked
    from teller_core.judge.diagnose import diagnose

    slo_ns = None if slo_ms is None else round(slo_ms * 1e6)
    tables = store.capture(found)
    numbers = _held(store, tables, learned)
    link = partial(step_linked, tables, rows=partial(store.tree_rows, found))
    said = explain(diagnose(tables, numbers, number - 1, metric, slo_ns, earlier=stored, link=link))
    return _with_unused(said, rows, service)


def _with_unused(said: WhyReport, rows: Sequence[LearnedRow], service: Mapping[str, str]) -> WhyReport:
    """``said`` with why baselines that may be of its service were not used, where none was."""
    if said.reference or not rows:
        return said
    return said.model_copy(update={"not_seen": [*said.not_seen, *not_used(rows, service)]})


def _held(store: Store, tables: Capture, learned: Learned | None) -> Assessment:
    """The numbers of a capture held against what was ``learned``, None: against itself, as most were at import."""
    if learned is None and not store.report(tables.id).reference:
        return store.assessment(tables.id)
    from teller_core.sheets import held

    return held(store, tables, learned)


def _check_promise(metric: Metric, slo_ms: float | None) -> None:
    if metric == "slo" and slo_ms is None:
        raise InputError("the metric slo", "nobody says which latency was promised", "Add --slo-ms, in a tool slo_ms")
    if slo_ms is not None and not SHORTEST_SLO_MS <= slo_ms <= LONGEST_SLO_MS:
        raise InputError(
            "the latency that was promised", "it is no time that a request can take", "Give it in milliseconds"
        )


def explain_operator(store: Store, name: str, *, capture: str | None = None) -> OperatorReport:
    """What the operator ``name`` is and how it does in the capture."""
    found = store.resolve(capture)
    names, totals = store.operator_names(found)
    meant = [names[i] for i in codes_of(name, names)]
    near = 0 if meant else sum(name.lower() in other.lower() for other in names)
    # What it takes here is asked, not what is usual elsewhere.
    own = _held(store, store.capture(found), None) if meant and store.report(found).reference else None
    if own is None or own.left_out:
        baselines = store.operator_rows(found, meant)
    else:
        baselines = own.baselines
        totals = {int(layer): float(baselines.total[baselines.layer == layer].sum()) for layer in Layer}
    work = store.work(found)
    ranks = [_rank_calls(store, found, rank, work, name) for rank in store.traced(found)] if meant else []
    report = operator_report(name, baselines, ranks, capture=found, totals=totals, near=near)
    if report.layer == Layer.COMMUNICATION.name.lower():
        report = report.model_copy(update={"waits": waits(ranks, store.rows(found, Collectives))})
    if own is not None and own.left_out:
        said = "its calls and medians are those of what it was held against at import: its profile is too large to be read again"
        report = report.model_copy(update={"note": "; ".join(filter(None, [report.note, said]))})
    return with_losses(report, losses.SPANS, problems_of(store, found))


def compare(store: Store, before: str, after: str, *, capture: str | None = None) -> CompareReport:
    """What differs between two captures (ids), or two requests (``12``, or ``CAPTURE/REQUEST``)."""
    one, other = _side(store, before, capture), _side(store, after, capture)
    if (one[1] is None) != (other[1] is None):
        raise InputError("compare", "one side is a capture, the other a request", "Name two of a kind")
    whole = one[1] is None or other[1] is None
    looked = {key: _windows(store, key) if whole else _Looked([], 0) for key in {one[0], other[0]}}
    views: dict[str, CaptureView] = {}
    for key, windows in looked.items():  # each against itself: what is usual elsewhere is no difference between them
        tables = store.capture(key)
        views[key] = CaptureView(tables, _held(store, tables, None), windows.found)
    if one[1] is None or other[1] is None:
        report = compare_captures(views[one[0]], views[other[0]])
        sides = {"before": looked[one[0]], "after": looked[other[0]]}
        return _with_both_losses(_with_left_out(report, sides), store, one[0], other[0])
    sides = [RequestView(views[key], number - 1, store.answer(key, number)) for key, number in (one, other) if number]
    return _with_both_losses(compare_requests(sides[0], sides[1]), store, one[0], other[0])


def _with_both_losses(report: CompareReport, store: Store, before: str, after: str) -> CompareReport:
    """A comparison with what was lost in reading on each side: unequal losses make differences that there were not."""
    bears = {losses.SPANS, losses.REQUESTS, losses.STEPS}
    sides = {"before": losses.note(problems_of(store, before), bears)}
    sides |= {"after": losses.note(problems_of(store, after), bears)} if after != before else {}
    said = [f"{side}, {lost}" for side, lost in sides.items() if lost]
    return report.model_copy(update={"note": "; ".join([*filter(None, [report.note]), *said])})


class _Looked(NamedTuple):
    """What the devices of some ranks did all the time, and how many ranks were left out."""

    found: list[Window]
    left_out: int


def _windows(store: Store, capture: str) -> _Looked:
    """The first ranks that fit."""
    spans = {at: rank.spans for at, rank in enumerate(store.report(capture).ranks)}
    traced = store.traced(capture)
    fit = [rank for rank in traced[:MOST_WINDOWS] if spans[rank] <= MOST_SPANS]
    looked = (window(store.tree_rows(capture, rank, columns=WINDOW_COLUMNS)) for rank in fit)
    return _Looked([one for one in looked if one is not None], len(traced) - len(fit))


def _with_left_out(report: CompareReport, sides: Mapping[str, _Looked]) -> CompareReport:
    """A comparison with a word on the ranks whose devices were not looked at."""
    said = [
        f"{side}, of {looked.left_out} rank{'s' if looked.left_out > 1 else ''}"
        for side, looked in sides.items()
        if looked.left_out
    ]
    if not said:
        return report
    why = f"looked at are {MOST_WINDOWS} ranks at most, and none of over {MOST_SPANS:,} spans"
    return report.model_copy(update={"note": f"{report.note}; devices not compared: {', '.join(said)} ({why})"})


def _side(store: Store, named: str, capture: str | None) -> tuple[str, int | None]:
    """The capture and, for a request, its number. A name that is both a request and a capture's prefix is a request."""
    head, slash, request = named.rpartition("/")
    if slash:
        found = store.resolve(head)
        return found, store.request_number(found, request)
    try:
        return store.request_of(capture, named)
    except UnknownName:
        pass
    try:
        return store.resolve(named), None
    except UnknownName as error:
        why = f"one side names no request, and no single capture ({error.why})"
        raise UnknownName("compare", why, "List the requests with `slow`, the captures with `captures`") from None


def _rank_calls(store: Store, capture: str, rank: int, work: StepWork, name: str) -> RankCalls:
    mine = take(work, (work.rank == rank) & (work.row >= 0))
    order = np.argsort(mine.row, kind="stable")
    steps = [(int(mine.row[i]), int(mine.row_stop[i]), int(mine.start[i])) for i in order]
    kept = store.calls(capture, rank, partial(codes_of, name))
    if kept is None:  # stored before calls were kept by name
        tree = store.tree_rows(capture, rank, columns=(*SPAN_COLUMNS, "arg"))
        kept = NamedCalls(tree.trace.names, *calls_in(tree, name), tree.trace.origin.devices)

    def when(row: int) -> tuple[int, int]:
        trace = store.tree_rows(capture, rank, row, row + 1, ("start", "dur")).trace
        return int(trace.start[0]), int(trace.dur[0])

    return RankCalls(rank, *kept, when, steps, partial(store.arguments, capture, rank))
