"""The spans that bear on a step or a request, as a page for a terminal."""

from collections.abc import Iterator
from shlex import quote

from teller_core.data.report import Cell, SliceReport
from teller_core.tell.layout import Style, many, table, wrap
from teller_core.tell.next_calls import is_span, most_unusual, opened_by


def slice_page(report: SliceReport, style: Style) -> list[str]:
    """The lines of a slice, its note, and the next calls."""
    where = [
        f"step {report.step}" if report.step is not None else "",
        f"request {report.request}" if report.request is not None else "",
        f"rank at position {report.rank}" if report.rank is not None else "",
    ]
    lines = [style.head(f"What bears on {', '.join(filter(None, where)) or 'it'}, capture {report.capture[:12]}")]
    told = f"{report.events - report.cut:,} of {many(report.events, 'span')}, {report.cut:,} left out"
    lines += [style.dim(f"{many(len(report.lines), 'line')} for {told}"), ""]
    rows: list[list[Cell]] = [
        [
            line.handle,
            "  " * min(line.depth, 20) + line.text + (f" x{line.count}" if line.count > 1 else ""),
            line.layer,
            f"{line.start_ms:,.3f}",
            f"{line.dur_ms:,.3f}",
            None if line.self_ms is None else f"{line.self_ms:,.3f}",
            line.residual,
        ]
        for line in report.lines
    ]
    columns = ["handle", "span", "layer", "start ms", "ms", "self ms", "residual"]
    lines += table(columns, rows, style) if rows else ["No spans were recorded for it."]
    lines += ["", *wrap(report.note, style)] if report.note else []
    nexts = [f"{said}: teller {call} --capture {report.capture[:12]}" for said, call in _after_slice(report)]
    return [*lines, "", *map(style.dim, nexts)] if nexts else lines


def _after_slice(report: SliceReport) -> Iterator[tuple[str, str]]:
    odd = most_unusual(report)
    around = opened_by(report, odd)
    if around is not None:
        yield "Look inside", f"slice {around.handle}"
    elif report.lines and is_span(report.lines[0].handle) and report.step is not None:
        yield "See its step", f"slice step {report.step}"
    if odd is not None and "\u2026" not in odd.text:  # a name that was cut is no argument
        yield "Is that usual", f"explain-op {quote(odd.text)}"
    elif served := [line for line in report.lines if line.handle.startswith("request:")]:
        yield "Ask why", f"why {report.request or served[0].handle.partition(':')[2]}"
