"""The page of an operator."""

from collections.abc import Sequence

from teller_core.data.report import Cell
from teller_core.data.report_operators import KernelName, OperatorReport, OperatorShapes, UsualTrouble, Waits
from teller_core.tell.layout import Style, bullets, milliseconds, table, wrap


def operator_page(report: OperatorReport, style: Style) -> list[str]:
    """What it is, how it does in each place and with each set of inputs, and what surrounds it."""
    share = "" if report.share is None else f", {report.share:.1%} of the self time of its layer"
    lines = [
        *wrap(report.name, style),
        *wrap(report.what_it_is, style),
        *wrap(f"{report.layer} layer, {report.calls:,} calls, {milliseconds(report.total_ms)}{share}", style),
    ]
    lines += wrap(_kernel(report.kernel), style) if report.kernel else []
    rows: list[list[Cell]] = [
        [place.place, place.phase, place.count, place.total_ms, place.median_ms, place.p95_ms]
        for place in report.places
    ]
    if rows:
        lines += ["", *table(["place", "phase", "calls", "total ms", "median ms", "p95 ms"], rows, style)]
    if report.shapes:
        inputs: list[list[Cell]] = [[one.inputs, one.calls, one.total_ms, one.median_ms] for one in report.shapes]
        lines += ["", *table(["called with", "calls", "total ms", "median ms"], inputs, style)]
        lines += _roofs(report.shapes, style)
    lines += _waits(report.waits, style) if report.waits else []
    calls = sorted(
        {(line.self_ms or 0.0, line.handle) for place in report.places for line in place.slowest}, reverse=True
    )
    slowest = [f"{handle}  {milliseconds(took)}" for took, handle in calls]
    lines += bullets("Slowest calls", slowest[:5], style)
    lines += bullets("Launched by", report.launched_by, style)
    lines += bullets("Launches", report.launches, style)
    lines += _troubles(report.usual_troubles, style)
    return [*lines, "", *wrap(report.note, style)] if report.note else lines


def _kernel(name: KernelName) -> str:
    """What its name says, in one line."""
    said = [
        name.library,
        name.precision or "",
        f"tile {name.tile}" if name.tile else "",
        f"{name.stages} stages" if name.stages else "",
        f"layout {name.layout}" if name.layout else "",
        f"with {name.activation}" if name.activation else "",
        f"for {name.architecture}" if name.architecture else "",
    ]
    return f"Its name says: {', '.join(filter(None, said))}."


def _troubles(troubles: Sequence[UsualTrouble], style: Style) -> list[str]:
    """What often troubles its kind, each with what to look at and what helps."""
    lines = ["", style.head("What often troubles its kind, here or not")] if troubles else []
    for trouble in troubles:
        lines += wrap(f"{trouble.title} ({trouble.cause})", style, "  ", "    ")
        lines += wrap(f"to check: {trouble.next_check}", style, "    ", "      ")
        lines += wrap(f"to mend: {trouble.fix}", style, "    ", "      ")
    return lines


def _roofs(shapes: Sequence[OperatorShapes], style: Style) -> list[str]:
    """How near the device was driven to what it can do, where that can be said."""
    lines: list[str] = []
    for one in shapes:
        if (roof := one.roofline) is not None:
            work = f"{roof.flops:,} operations, " if roof.flops else ""
            lines += wrap(f"{one.inputs}:", style, "  ", "    ")
            said = (
                f"{roof.reached:.0%} of what {roof.device} can do, bound by {roof.bound} ({work}{roof.bytes:,} bytes)"
            )
            lines += wrap(said, style, "    ", "    ")
    return ["", style.head("Against the roof of the device"), *lines] if lines else []


def _waits(waits: Waits, style: Style) -> list[str]:
    """How much of it was waiting for the last rank."""
    if waits.took_ms is None or waits.waited_ms is None:
        return ["", *wrap(f"What its {waits.calls} calls waited for other ranks, no clock tells.", style)]
    waited = f"{milliseconds(waits.waited_ms)} were waiting for the last rank"
    told = f"Of {milliseconds(waits.took_ms)} in {waits.known:,} calls, {waited}"
    last = ", ".join(f"the rank at position {one.rank} in {one.calls:,}" for one in waits.last)
    return ["", *wrap(f"{told}: {last}." if last else f"{told}.", style)]
