"""What a search found as a page: one table, and the calls that go on from its first rows."""

from collections.abc import Iterator

from teller_core.data.report import Cell
from teller_core.data.report_search import SearchReport
from teller_core.tell.layout import Style, many, table, wrap

SPARED = ("calls", "total_ms", "step", "request", "where", "time")
"""Columns that a narrow page does without, in this order: `--json` has them."""
SINGULARS = {"communication": "communication span", "python": "Python frame", "runtime": "runtime call"}


def search_page(report: SearchReport, style: Style) -> list[str]:
    """The page for ``report``."""
    lines = [*_head(report, style), "", *_table(report, style), ""] if report.rows else []
    lines += [*wrap(report.note, style), ""] if report.note else []
    lines += [style.dim(f"Look inside: teller {call}") for call in _calls(report)]
    if report.next_cursor is not None:
        lines.append(style.dim(f"More: the same search with --cursor {report.next_cursor}"))
    return lines


def _head(report: SearchReport, style: Style) -> list[str]:
    where = "all captures" if report.capture is None else f"capture {report.capture[:12]}"
    found = [many(count, SINGULARS.get(kind, kind.replace("_", " "))) for kind, count in report.counts.items()]
    return [
        style.head(line) for line in wrap(f"Found in {where}: {', '.join(found)}" if found else f"In {where}", style)
    ]


def _table(report: SearchReport, style: Style) -> list[str]:
    """The rows, without the columns that a narrow page has no room for."""
    spared = iter(SPARED)
    shown = list(range(len(report.columns)))
    while True:
        columns = [report.columns[at].removeprefix("untrusted_") for at in shown]
        rows = [[row[at] for at in shown] for row in report.rows]
        lines = table(columns, rows, style, whole=("handle", "capture", "time"))
        drop = next(spared, None) if len(lines[-1]) > style.width else None
        if drop is None:
            return lines
        shown = [at for at in shown if report.columns[at] != drop]


def _calls(report: SearchReport) -> Iterator[str]:
    """Of the first request and the first of the others that has a slice."""
    rows: list[dict[str, Cell]] = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    request = next((row for row in rows if row["kind"] == "request"), None)
    other = next((row for row in rows if row["kind"] != "request" and row["handle"]), None)
    for call, first in (("why {request}", request), ("slice {handle}", other)):
        if first is not None:
            yield f"{call.format(**first)} --capture {report.capture[:12] if report.capture else first['capture']}"
