"""The part of a page that shows what a service counted of all its requests."""

from teller_core.data.report import Cell, SlowReport
from teller_core.tell.layout import Style, table, wrap
from teller_core.tell.service import WORDS, shown, when


def service_lines(report: SlowReport, style: Style) -> list[str]:
    """Its histograms and its gauges and counters as tables; nothing where there are none."""
    out: list[str] = []
    if report.service:
        rows: list[list[Cell]] = [
            [WORDS[one.name], one.count, *(shown(bound) for bound in (one.p50, one.p90, one.p99))]
            for one in report.service
        ]
        out += ["", style.head("How long it took, by the service's own count"), ""]
        out += table(["time", "count", "p50", "p90", "p99"], rows, style)
        first = report.service[0]
        out += wrap(f"Counted {when(first.start, first.stop)}, in buckets: bounds, not points.", style)
    if report.levels:
        rows = [
            [one.name.replace("_", " "), one.lowest, one.highest, one.last, one.growth, one.per_second, one.unit]
            for one in report.levels
        ]
        out += ["", style.head("What it counted"), ""]
        out += table(["what", "lowest", "highest", "last", "growth", "per second", "unit"], rows, style)
    return out
