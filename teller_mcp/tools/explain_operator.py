"""``explain_operator``: what an operator is, and how it does here."""

from typing import Annotated

from pydantic import Field

from teller_core.data.report_operators import OperatorReport
from teller_mcp.answers import NextCall, OperatorAnswer, fit, room, short, then
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.tools.arguments import Capture, Detail, MaxChars

CUTS = (
    ("places.slowest", 1),
    ("places", 4),
    ("shapes", 2),
    ("launches", 3),
    ("launched_by", 3),
    ("usual_troubles", 2),
    ("places", 1),
    ("places.slowest", 0),
    ("usual_troubles", 1),
    ("shapes", 1),
)


def explain_operator(
    desk: Desk,
    *,
    name: Annotated[str, Field(description="operator, kernel or Python frame, as a slice shows it", max_length=500)],
    capture: Capture = None,
    detail: Detail = "normal",
    max_chars: MaxChars = None,
) -> OperatorAnswer:
    """What an operator or kernel is and does here: calls and times in each context, slowest calls, who launches it, how near its
    device's roof, usual troubles with fixes. Use it when a slice or finding names something unknown."""
    with desk.store() as (verbs, store):
        report = verbs.explain_operator(store, name, capture=capture)
    return fit(OperatorAnswer(**dict(report), next=_next(report)), room(detail, max_chars), CUTS)


def _next(report: OperatorReport) -> list[NextCall]:
    calls = [line for place in report.places for line in place.slowest]
    if not calls:
        why = "no call of it was read: begin with what was slow"
        return [then("list_slow_requests", why, capture=short(report.capture))]
    slowest = max(calls, key=lambda line: line.dur_ms)
    why = "what happened in its slowest call"
    return [then("get_causal_slice", why, target=slowest.handle, capture=short(report.capture))]


EXPLAIN_OPERATOR = ToolSpec(title="Explain an operator", run=explain_operator, answer=OperatorAnswer)
