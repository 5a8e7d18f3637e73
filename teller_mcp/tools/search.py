"""``search``: where a text stands, whatever it is a part of."""

from typing import Annotated

from pydantic import Field

from teller_core.data.report import Cell
from teller_core.data.report_search import SearchKind, SearchReport
from teller_mcp.answers import NextCall, SearchAnswer, fit, is_plain, room, short, then, to_text
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.tools.arguments import Detail, MaxChars

MOST = 2
"""Calls that are suggested."""
EXPLAINED = ("python", "operator", "runtime", "kernel", "communication")
"""Kinds of names that explain_operator knows."""


def search(
    desk: Desk,
    *,
    text: Annotated[str, Field(min_length=1, max_length=200)],
    kind: SearchKind = "any",
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, Field(description="next_cursor of the page before", max_length=200)] = None,
    capture: Annotated[
        str | None, Field(description="id or prefix, or all; default: the newest", max_length=64)
    ] = None,
    detail: Detail = "normal",
    max_chars: MaxChars = None,
) -> SearchAnswer:
    """Find requests by a part of an id (or a trace id as a dashboard has it), spans by name, log lines by what they say: all
    words of text, any case. A row a span name: its calls, total_ms, and the longest's handle and took_ms."""

    def ask(rows: int) -> SearchAnswer:
        report = verbs.search(store, text, capture=capture, kind=kind, limit=rows, cursor=cursor)
        return SearchAnswer(**dict(report), next=_next(report, text))

    with desk.store() as (verbs, store):
        answer, most = ask(limit), room(detail, max_chars)
        fitting = limit
        while len(to_text(answer.model_dump(mode="json"))) > most and fitting > 1:
            # A cut page must end where its cursor begins, so the page is asked for again at the size that fits.
            fitting = min(fitting - 1, len(fit(answer, most, (("rows", 1),)).rows))
            answer = ask(fitting)
    return answer


def _next(report: SearchReport, text: str) -> list[NextCall]:
    rows: list[dict[str, Cell]] = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    if not rows:
        if report.capture is None:
            return [then("list_slow_requests", "nothing holds it: begin with what was slow")]
        return [then("search", "nothing in this capture holds it", text=text, capture="all")]
    calls = [call for row in rows for call in _of(row, report)]
    best = {call.tool: call for call in reversed(calls)}  # the first of each
    return [call for call in calls if best[call.tool] is call][:MOST]


def _of(row: dict[str, Cell], report: SearchReport) -> list[NextCall]:
    """What makes sense after one row."""
    capture = row["capture"] if report.capture is None else short(report.capture)
    if row["kind"] == "request":
        return [then("run_rca", "why this request was slow", request=row["request"], capture=capture)]
    calls: list[NextCall] = []
    if row["handle"] is not None:
        what = "the step or request of this line" if row["kind"] == "log_line" else "what happened in the longest"
        calls.append(then("get_causal_slice", what, target=row["handle"], capture=capture))
    name = str(row["untrusted_text"])
    if row["kind"] in EXPLAINED and is_plain(name):
        calls.append(then("explain_operator", "what it is and how it does here", name=name, capture=capture))
    return calls or [then("list_slow_requests", "the requests of that capture", capture=capture)]


SEARCH = ToolSpec(title="Search", run=search, answer=SearchAnswer)
