"""What is said of a recording: when it begins, and when it has ended."""

from collections.abc import Mapping, Sequence

from teller_core.data.report_recording import CaptureRunReport
from teller_core.tell.layout import Style, many, plain, wrap


def begin_line(folder: str, on: Sequence[str], off: Mapping[str, str], declined: Sequence[str]) -> list[str]:
    """One line: what is recorded, and where to; and one for each part that could not be switched on, though it was wanted."""
    lines = [f"teller: recording {', '.join(on) or 'output only'} into {plain(folder)}"]
    ours = {part: why for part, why in off.items() if part not in declined and not why.startswith("only vLLM has it")}
    return [*lines, *(f"teller: no {part}: {plain(why)}" for part, why in ours.items())]


def window_line(recorder: int, steps: int) -> str:
    """How a window is opened by hand. The number is told, as that of the command itself would end it."""
    return f"teller: to profile {many(steps, 'step')} at any moment: kill -USR1 {recorder}"


def recording_page(report: CaptureRunReport, style: Style) -> list[str]:
    """Size, what was seen, what doctor finds, and the next call."""
    how = f"by signal {-report.exit}" if report.exit < 0 else f"with {report.exit}"
    said = [f"the command ended {how} after {report.duration_ms / 1000:,.1f} s"]
    processes = "1 process" if report.processes == 1 else f"{report.processes:,} processes"
    said.append(f"{report.bytes / 1e6:,.1f} MB of {processes}")
    if report.requests is not None and report.engine_steps is not None:
        said += [many(report.requests, "request"), many(report.engine_steps, "step")]
    if report.windows:
        said.append(many(report.windows, "window"))
    lines = wrap(f"teller: {', '.join(said)}.", style)
    for check in report.checks:
        following = f" {plain(check.next)}." if check.next else ""
        lines += wrap(f"teller: {check.part}: {check.found}.{following}", style)
    if report.lost:
        lines += wrap(f"teller: the disk did not take {report.lost:,} lines.", style)
    return [*lines, f"teller: next: {report.next_call}"]
