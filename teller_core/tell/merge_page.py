"""What is said of recordings of several machines that became one."""

from teller_core.data.report_recording import MergeReport
from teller_core.tell.layout import Style, many, plain, wrap


def merge_page(report: MergeReport, style: Style) -> list[str]:
    """One line a machine, what is known of their clocks, and the next call."""
    lines = [style.head(f"{len(report.machines)} recordings are one in {plain(report.folder)}")]
    for one in report.machines:
        host = f" ({plain(one.host)})" if one.host and one.host != one.name else ""
        lines += wrap(f"{plain(one.name)}{host}: {many(one.files, 'file')}, {one.bytes / 1e6:,.1f} MB", style, "  ")
    apart = "" if not report.clock_error_ms else f" may differ by {report.clock_error_ms:,.3f} ms"
    lines += wrap(f"Clocks{apart}: {report.clock_note}.", style)
    return [*lines, "", f"Next: teller import {plain(report.folder)}"]
