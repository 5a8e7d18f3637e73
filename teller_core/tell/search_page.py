"""What a search found as a page: one table, and the calls that go on from its first rows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from teller_core.data.report import Cell
from teller_core.data.report_search import SearchReport
from teller_core.tell.layout import Style, many, table, wrap

SPARED = ("time", "calls", "step", "request", "where", "total_ms")
"""Columns that a narrow page does without, in this order: ``--json`` has them."""
ROOM = 24
"""Characters of the text that a narrow page keeps at least."""
BOUNDLESS = 10_000
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
    """The rows, without the columns that would leave less than ROOM for the text on a narrow page."""
    at_text = report.columns.index("untrusted_text")
    brief = [[str(cell)[:ROOM] if at == at_text else cell for at, cell in enumerate(row)] for row in report.rows]
    shown = range(len(report.columns))
    for gone in range(len(SPARED) + 1):
        shown = [at for at, name in enumerate(report.columns) if name not in SPARED[:gone]]
        if len(_rows(report, brief, shown, replace(style, width=BOUNDLESS))[-1]) <= style.width:
            break
    return _rows(report, report.rows, shown, style)


def _rows(report: SearchReport, rows: Sequence[Sequence[Cell]], shown: Sequence[int], style: Style) -> list[str]:
    columns = [report.columns[at].removeprefix("untrusted_") for at in shown]
    cells = [[row[at] for at in shown] for row in rows]
    return table(columns, cells, style, whole=("handle", "capture", "time"), ends=("text", "where"))


def _calls(report: SearchReport) -> Iterator[str]:
    """Of the first request and the first of the others that has a slice."""
    rows: list[dict[str, Cell]] = [dict(zip(report.columns, row, strict=True)) for row in report.rows]
    request = next((row for row in rows if row["kind"] == "request"), None)
    other = next((row for row in rows if row["kind"] != "request" and row["handle"]), None)
    for call, first in (("why {request}", request), ("slice {handle}", other)):
        if first is not None:
            yield f"{call.format(**first)} --capture {report.capture[:12] if report.capture else first['capture']}"
