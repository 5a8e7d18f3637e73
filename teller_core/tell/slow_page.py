"""The slow list as a page for a terminal."""

from teller_core.data.report import Cell, SlowReport
from teller_core.tell.layout import Style, many, table, wrap
from teller_core.tell.service_page import service_lines


def slow_page(report: SlowReport, style: Style) -> list[str]:
    """The slow list as a page: requests, or in the horizontal view ranks."""
    if report.view == "horizontal":
        return _horizontal(report, style)
    lines = [style.head(f"Slowest by {report.metric} of {report.total}, capture {report.capture[:12]}"), ""]
    lines += _rows_with_causes(report, style) if report.rows else wrap(report.note, style)
    lines += [] if _measured(report) else service_lines(report, style)
    lines += ["", *wrap(report.note, style)] if report.note and report.rows else []
    lines += _instead(report, style)
    if report.rows and report.columns[0] == "request":
        asked = f"{report.rows[0][0]} --metric {report.metric} --capture {report.capture[:12]}"
        lines += ["", style.dim(f"Ask why: teller why {asked}")]
    if report.next_cursor is not None:
        lines += [style.dim(f"More: --cursor {report.next_cursor}")]
    return lines


def _measured(report: SlowReport) -> bool:
    """Whether some request of the page has a time."""
    times = [at for at, name in enumerate(report.columns) if name.endswith("_ms")]
    return any(row[at] is not None for row in report.rows for at in times)


def _instead(report: SlowReport, style: Style) -> list[str]:
    """The calls that have an answer where this one has none."""
    if not report.instead:
        return []
    lines = ["", style.head("Ask instead")]
    for ask in report.instead:
        view = f"--view {ask.view}" if ask.view else ""
        named = "" if ask.verb == "captures" else f"--capture {ask.capture[:12]}"
        call = " ".join(filter(None, ["teller", ask.verb, ask.target, view, named]))
        lines += wrap(f"{call}  ({ask.why})", style, "  ", "      ")
    return lines


def _horizontal(report: SlowReport, style: Style) -> list[str]:
    lines = [style.head(f"{many(report.total, 'rank')} side by side, capture {report.capture[:12]}"), ""]
    lines += table(report.columns, report.rows, style) if report.rows else ["No rank was recorded."]
    lines += ["", *wrap(report.note, style)] if report.note else []
    if report.waits:
        columns = [
            "handle",
            "kind",
            "ranks",
            "late_rank",
            "late_by_ms",
            "waited_ms",
            "transfer_ms",
            "kept_by",
            "kept_handle",
        ]
        rows: list[list[Cell]] = [[getattr(wait, name) for name in columns] for wait in report.waits]
        lines += ["", style.head("The collectives that were waited in longest"), "", *table(columns, rows, style)]
        first = next(
            (wait.kept_handle or wait.handle for wait in report.waits if wait.kept_handle or wait.handle), None
        )
        if first:
            lines += ["", style.dim(f"Look inside: teller slice {first} --capture {report.capture[:12]}")]
    if report.next_cursor is not None:
        lines += [style.dim(f"More: --view horizontal --cursor {report.next_cursor}")]
    return lines


def _rows_with_causes(report: SlowReport, style: Style) -> list[str]:
    """The table, with a named cause in the place of the verdict that says there is one."""
    if not {"verdict", "cause"} <= set(report.columns):
        return table(report.columns, report.rows, style)
    verdict, cause = report.columns.index("verdict"), report.columns.index("cause")
    rows = [
        [row[cause] if at == verdict and row[cause] else cell for at, cell in enumerate(row)] for row in report.rows
    ]
    kept = [at for at in range(len(report.columns)) if at != cause]
    return table([report.columns[at] for at in kept], [[row[at] for at in kept] for row in rows], style)
