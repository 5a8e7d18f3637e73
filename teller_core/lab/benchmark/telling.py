"""What became of the lives of the benchmark, as the answer of ``lab build`` and as lines for a terminal."""

from collections.abc import Sequence
from pathlib import Path

from teller_core.data.report_lab import BuiltLine, LabBuildReport, RejectedLine
from teller_core.lab.benchmark.build import Built
from teller_core.lab.benchmark.pack import packed_bytes


def report_of_built(built: Sequence[Built], into: Path) -> LabBuildReport:
    """The answer about the lives ``built``, packed in ``into``."""
    return LabBuildReport(lives=[_line(one) for one in built], bytes=packed_bytes(into))


def lines_of_built(report: LabBuildReport) -> list[str]:
    """The same for a person."""
    lines = [f"{'life':<10}{'side':<7}{'bytes':>10}{'moved':>7}{'rejected':>10}"]
    for line in report.lives:
        what = (
            f"{line.bytes:>10,}{line.moved:>7}{len(line.rejected):>10}" if line.failed is None else f"  {line.failed}"
        )
        lines.append(f"{line.life:<10}{line.side:<7}{what}")
    moved, done = sum(line.moved for line in report.lives), sum(line.failed is None for line in report.lives)
    return [
        *lines,
        "",
        f"{done} of {len(report.lives)} lives are there, with {moved} episodes; all: {report.bytes:,} bytes.",
    ]


def _line(one: Built) -> BuiltLine:
    rejected = [
        RejectedLine.model_validate({"fault": fault, "severity": severity, "why": why})
        for fault, severity, why in one.rejected
    ]
    return BuiltLine.model_validate(
        {
            "life": one.name,
            "side": one.side,
            "bytes": one.bytes,
            "moved": one.moved,
            "rejected": rejected,
            "new": one.new,
            "failed": one.failed,
        }
    )
