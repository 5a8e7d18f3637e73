"""``compare``: two requests, or two captures."""

from typing import Annotated

from pydantic import Field

from teller_core.data.report import CompareReport
from teller_mcp.answers import CompareAnswer, NextCall, fit, room, then
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.tools.arguments import Capture, Detail, MaxChars


def compare(
    desk: Desk,
    *,
    before: Annotated[str | int, Field(description="the faster: request, CAPTURE/REQUEST, or capture id")],
    after: Annotated[str | int, Field(description="the slower, of the same kind")],
    capture: Capture = None,
    detail: Detail = "normal",
    max_chars: MaxChars = None,
) -> CompareAnswer:
    """What differs between two requests of a capture, or between two captures (before and after a deploy): in which layer,
    by how much, with an interval. sure is false where chance could explain the difference: do not report it as a fact."""
    with desk.store() as (verbs, store):
        report = verbs.compare(store, str(before), str(after), capture=capture)
    answer = CompareAnswer(**dict(report), next=_next(report, str(after), capture))
    return fit(answer, room(detail, max_chars), (("differences", 3),))


def _next(report: CompareReport, after: str, capture: str | None) -> list[NextCall]:
    if report.kind == "captures":
        return [then("list_slow_requests", "the slow requests of the later capture", capture=after)]
    owner, _, request = after.rpartition("/")
    return [then("run_rca", "why the slower one was slow", request=request, capture=owner or capture)]


COMPARE = ToolSpec(title="Compare requests or captures", run=compare, answer=CompareAnswer)
