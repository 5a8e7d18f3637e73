"""What was learned of services, as a page."""

from teller_core.data.report_learned import LearnedReport, LearnReport
from teller_core.data.service import told
from teller_core.tell.layout import Style, many, plain, wrap

MOST_CLAIMS = 5
"""Claims of requests of which all is well that a page tells of."""


def learned_page(report: LearnReport, style: Style) -> list[str]:
    """A paragraph a baseline."""
    if not report.learned:
        said = "Nothing is learned yet. Teach what is usual by captures in which all is well: teller learn CAPTURE..."
        return wrap(said, style)
    return [line for one in report.learned for line in (*_one(one, style), "")][:-1]


def _one(one: LearnedReport, style: Style) -> list[str]:
    lines = [
        *map(style.head, wrap(plain(one.name), style)),
        *wrap(f"{plain(told(one.service))}; learned {plain(one.learned_at)}", style, "  "),
    ]
    if one.stale:
        return [*lines, *wrap(f"Not used: {one.stale}", style, "  ")]
    lines += wrap(
        f"from {many(one.requests or 0, 'request')} and {many(one.steps or 0, 'step')} of {many(len(one.captures), 'capture')} "
        f"({', '.join(map(plain, one.captures))}): what {many(one.operators or 0, 'place')} of operators take, and "
        f"{many(one.levels or 0, 'usual level')} of counters, threads and zones",
        style,
        "  ",
    )
    if "model" not in one.service:
        lines += wrap(
            f"its model was not recorded: used where it is named, by teller why 42 --against {one.name}", style, "  "
        )
    for claim in one.claims[:MOST_CLAIMS]:
        asked = f"; told only where it costs more than {claim.costs:.1%} of the time" if claim.costs else ""
        by = "" if claim.metric == "e2e" else f" by {claim.metric}"
        lines += wrap(f"{claim.cause}: claimed{by} of {claim.rate:.1%} of healthy requests{asked}", style, "  - ")
    return lines
