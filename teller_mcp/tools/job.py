"""``job``: how far a recording is, and its end."""

from typing import Annotated, Any, Literal

from pydantic import Field

from teller_core.data.report_recording import JobReport
from teller_mcp.answers import JobsAnswer, NextCall, short, then
from teller_mcp.captures import BUSY
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.tools.capture_trace import of


def job(
    desk: Desk,
    *,
    id: Annotated[str | None, Field(description="default: the last", max_length=40)] = None,
    wait_s: Annotated[float, Field(ge=0, le=20)] = 0,
    action: Annotated[Literal["status", "finish", "cancel"], Field(description="cancel: not imported")] = "status",
) -> JobsAnswer:
    """How far a recording is; finish ends it early and keeps it. When it is done, capture is what to ask about."""
    captures = of(desk)
    if action != "status":
        captures.end(id, cancel=action == "cancel")
    if wait_s:
        captures.wait(id, wait_s)
    found = captures.report(id)
    return JobsAnswer(job=found, profiles=[], next=_next(found))


def _next(found: JobReport | None) -> list[NextCall]:
    if found is None:
        return [then("capture_trace", "see what may be recorded")]
    if found.state in BUSY:
        return [then("job", "wait for it", id=found.id, wait_s=20)]
    if found.capture is None:
        return [then("capture_trace", "see what may be recorded")]
    return [then("list_slow_requests", "find the slow requests", capture=short(found.capture))]


def _progress(desk: Desk, *, id: str | None = None, **_: Any) -> tuple[float, float, str]:
    """Seconds recorded, of the most, and the state."""
    known = of(desk).report(id)
    if known is None:
        return 0.0, 0.0, "no job"
    return known.elapsed_s, max(known.seconds, known.elapsed_s), known.state


JOB = ToolSpec(
    title="A recording's progress",
    run=job,
    answer=JobsAnswer,
    read_only=False,
    deadline_s=170.0,
    progress=_progress,
)
