"""``list_slow_requests``: which requests were slow, and what they have in common."""

from typing import Annotated, Literal

from pydantic import Field

from teller_core.data.report import Ask, CaptureReport, SlowReport
from teller_core.data.report_fleet import FleetReport
from teller_core.errors import InputError
from teller_mcp.answers import CaptureLine, NextCall, SlowAnswer, fit, is_plain, room, short, then, to_text
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.tools.arguments import Capture, Detail, MaxChars, Metric, SloMs, When

MOST = 2
"""Calls that are suggested."""
LESS = (("levels", 0), ("contrast.rows", 3))
"""What goes first where an answer is too long."""


def list_slow_requests(
    desk: Desk,
    *,
    metric: Metric = "e2e",
    slo_ms: SloMs = None,
    limit: Annotated[int, Field(ge=1, le=200)] = 20,
    cursor: Annotated[str | None, Field(description="next_cursor of the page before", max_length=200)] = None,
    capture: Capture = None,
    view: Literal["vertical", "horizontal", "fleet"] = "vertical",
    since: When = None,
    until: Annotated[str | None, Field(max_length=40)] = None,
    service: Annotated[str | None, Field(max_length=200)] = None,
    detail: Detail = "normal",
    max_chars: MaxChars = None,
) -> SlowAnswer:
    """The requests of a capture, slowest first, as columns and rows, with what the slow have that the fast have not; and
    the captures there are. over_slo, over_work, over_load: times the promise, what its own tokens predict, what the load
    predicts. Start here, then call run_rca. view=horizontal: a row a rank, the most waited for first; waits: where; null:
    the clocks do not tell. view=fleet: what explains p99 over all captures of the last hour."""
    most = room(detail, max_chars)
    if view == "fleet":
        with desk.store() as (verbs, store):
            return _of_fleet(verbs.fleet(store, since=since, until=until, service=service), most)
    if since or until or service:
        raise InputError(
            "since, until and service", "they are of view=fleet alone", "Leave them out, or ask for that view"
        )

    def ask(rows: int) -> SlowReport:
        return verbs.slow(store, capture=capture, metric=metric, slo_ms=slo_ms, limit=rows, cursor=cursor, view=view)

    with desk.store() as (verbs, store):
        report = ask(limit)
        captures = [] if capture or cursor else verbs.list_captures(store).captures
        answer = _answer(report, captures)
        if len(to_text(answer.model_dump(mode="json"))) > most:
            # A cut page must end where its cursor begins, so the page is asked for again at the size that fits.
            fitting = len(fit(answer, most, (*LESS, ("service", 2), ("captures", 3), ("waits", 3), ("rows", 1))).rows)
            answer = fit(_answer(ask(fitting), captures), most, (*LESS, ("service", 0), ("captures", 0), ("waits", 0)))
    return answer


def _answer(report: SlowReport, captures: list[CaptureReport]) -> SlowAnswer:
    lines = [CaptureLine.of(known) for known in captures]
    return SlowAnswer(**dict(report), captures=lines, next=_next(report))


def _of_fleet(report: FleetReport, most: int) -> SlowAnswer:
    """The answer about a tail: its groups stand in the rows, those that stand out first, and are not said twice; time without a
    source is in what is unexplained. Phases are never cut: they sum.
    """
    named = report.columns.index("named")
    known = [part for part in report.phases if part.ns is not None]
    answer = SlowAnswer(
        capture="",
        view="fleet",
        metric=report.metric,
        columns=report.columns,
        rows=sorted(report.rows, key=lambda row: not row[named]),
        total=len(report.rows),
        next_cursor=None,
        note=report.explanation or f"Could not tell: {report.reason}.",
        fleet=report.model_copy(update={"columns": [], "rows": [], "explanation": "", "phases": known}),
        next=_of_tail(report),
    )
    cuts = (
        ("rows", 8),
        ("fleet.replica_rows", 2),
        ("fleet.examples", 0),
        ("rows", 2),
        ("fleet.replica_rows", 0),
        ("rows", 0),
    )
    return fit(answer, most, cuts)


def _of_tail(report: FleetReport) -> list[NextCall]:
    """The slowest request of the tail, and the list that it stands in; without a tail, the list of the newest capture."""
    if not report.examples:
        return [then("list_slow_requests", "the requests of the newest capture")]
    one = report.examples[0]
    why = one.of if is_plain(one.of) else "of the tail"
    return [
        then("run_rca", f"why it was slow: {why}", request=one.request, capture=short(one.capture)),
        then("list_slow_requests", "all requests of its capture", capture=short(one.capture)),
    ]


def _asked(ask: Ask) -> NextCall:
    if ask.verb == "slice":
        return then("get_causal_slice", ask.why, target=ask.target, capture=short(ask.capture))
    return then("list_slow_requests", ask.why, view=ask.view, capture=short(ask.capture))


def _next(report: SlowReport) -> list[NextCall]:
    capture = short(report.capture)
    if report.view == "horizontal":
        handle = next(
            (wait.kept_handle or wait.handle for wait in report.waits if wait.kept_handle or wait.handle), None
        )
        if handle is None:
            return [then("list_slow_requests", "no wait leads to a span: the requests instead", capture=capture)]
        return [then("get_causal_slice", "what the late rank did meanwhile", target=handle, capture=capture)]
    if not report.rows:
        calls = [_asked(ask) for ask in report.instead if ask.verb in ("slow", "slice")][:MOST]
        return calls or [then("list_slow_requests", "nothing can be asked of this one: what else was imported")]
    at = report.columns.index("request")
    slowest, mildest = report.rows[0][at], report.rows[-1][at]
    calls = [then("run_rca", "why the slowest was slow", request=slowest, metric=report.metric, capture=capture)]
    if slowest != mildest:
        why = "what the slowest has that a faster one has not"
        calls.append(then("compare", why, before=mildest, after=slowest, capture=capture))
    return calls


LIST_SLOW_REQUESTS = ToolSpec(title="List slow requests", run=list_slow_requests, answer=SlowAnswer)
