"""Where a capture holds no request: why that is, and what can be asked of it, or of another capture, instead."""

from collections.abc import Iterator, Sequence

from teller_core.data.report import Ask, CaptureReport
from teller_core.tell.files_page import ranks_of
from teller_core.tell.next_calls import processes

LOG = "engine_log"
NOTHING_NAMES_ONE = (
    "No requests: nothing that was read names one. An engine's log, request spans or a caller's records would."
)
LOG_NAMES_NONE = (
    "No requests: the log that was read tells of none by itself. Request spans, a caller's records or an access log with "
    "durations would."
)
OTHERS = 3
"""Other captures that are offered."""


def no_requests(report: CaptureReport) -> str:
    """Why the capture of ``report`` holds no request."""
    return LOG_NAMES_NONE if any(file.format == LOG for file in report.files) else NOTHING_NAMES_ONE


def instead(report: CaptureReport, others: Sequence[CaptureReport], longest: int | None) -> list[Ask]:
    """What can be asked instead: ``longest`` is the step of ``report`` that took longest, None where that is not known."""
    return [*_of(report, longest), *_elsewhere(report, others)]


def _of(report: CaptureReport, longest: int | None) -> Iterator[Ask]:
    if report.findings:
        yield Ask(verb="captures", capture=report.id, why=f"what was found without requests ({len(report.findings)})")
    if processes(report) > 1:
        why = f"its {ranks_of(report)} side by side: who waited for whom"
        yield Ask(verb="slow", capture=report.id, view="horizontal", why=why)
    if report.steps:
        said = "its first step" if longest is None else "its longest step"
        yield Ask(verb="slice", capture=report.id, target=f"step {longest or 0}", why=f"{said} of {report.steps:,}")


def _elsewhere(report: CaptureReport, others: Sequence[CaptureReport]) -> Iterator[Ask]:
    """Those with requests, imported last first."""
    having = [other for other in others if other.requests and other.id != report.id]
    for other in having[:OTHERS]:
        requests = "1 request" if other.requests == 1 else f"{other.requests:,} requests"
        yield Ask(verb="slow", capture=other.id, why=f"another capture, of {requests}")
