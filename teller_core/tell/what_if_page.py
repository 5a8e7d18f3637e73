"""What would have been as a page for a terminal."""

from collections.abc import Sequence

from teller_core.data.report_what_if import Gain, Neighbor, WhatIfReport
from teller_core.tell.layout import Style, bullets, many, milliseconds, plain, wrap

METRICS = {"e2e": "end to end", "ttft": "to the first token"}
WHAT = {"e2e": "ended", "ttft": "had its first token"}


def what_if_page(report: WhatIfReport, style: Style) -> list[str]:
    """What a request would have gained, on which assumption, and who shared its steps."""
    took = f"{milliseconds(report.value_ms)} {METRICS[report.metric]}"
    lines = [style.head(f"Request {report.request}: {took}, capture {report.capture[:12]}")]
    lines += bullets("Had it been otherwise", [plain(text) for text in report.supposed], style)
    lines += ["", f"{many(report.steps, 'step')} would have taken another time. {report.note}".rstrip()]
    lines += ["", style.head("With the same batches"), *_gain(report.same_schedule, WHAT[report.metric], style)]
    lines += ["", style.head("With batches made anew"), *_gain(report.rescheduled, WHAT[report.metric], style)]
    if report.check is not None:
        lines += wrap(
            f"The simulated scheduler decides {report.check.decisions:.1%} of the steps as recorded, "
            f"{report.check.prompts:.1%} of those with prompts; from the arrivals alone {report.check.batches:.1%} of the "
            f"batches and {report.check.first_tokens:.1%} of the first tokens come out as they were.",
            style,
            "  ",
        )
    lines += bullets("Slowed down by", _neighbors(report.slowed_by), style)
    return lines + bullets("Slowed down", _neighbors(report.slowed), style)


def _gain(gain: Gain, what: str, style: Style) -> list[str]:
    if gain.saving_ms is None:
        return wrap(f"No saving is claimed: {gain.saving_assumes}", style, "  ")
    low, high = milliseconds(gain.saving_low_ms), milliseconds(gain.saving_high_ms)
    return wrap(
        f"It would have {what} {milliseconds(gain.saving_ms)} sooner ({low} to {high}). {gain.saving_assumes}",
        style,
        "  ",
    )


def _neighbors(found: Sequence[Neighbor]) -> list[str]:
    return [
        f"request {one.request}: {milliseconds(one.beside_ms)} in shared steps, {milliseconds(one.before_ms)} in steps that the "
        "other waited for"
        for one in found
    ]
