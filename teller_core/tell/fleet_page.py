"""The tail of a fleet as a page for a terminal: what it is made of, drawn beside the middle, and who has it."""

from collections.abc import Sequence

from teller_core.data.report import Cell
from teller_core.data.report_fleet import FleetReport, TailPart
from teller_core.tell.layout import Style, many, milliseconds, table, wrap

GLYPHS, PLAIN_GLYPHS = "█▓▒░", "#=+:"
COLORS = ("33", "34", "35", "36", "32", "31")
"""One of each by turns: neighbors differ in both, and without color in the glyph."""
VERDICTS = {
    "explained": ("TAIL EXPLAINED", "31;1"),
    "nothing_stands_out": ("NOTHING STANDS OUT", "33;1"),
    "could_not_tell": ("COULD NOT TELL", "33;1"),
}
LONGEST_LABEL = 18
MOST = 6
"""Groups of a kind."""
ROOMY, ENOUGH = 100, 80
"""Columns of a page from which on there is room for all that is known of replicas, and for bounds."""
SHOWN = ("what", "tail_share", "middle_share", "effect", "low", "high")
BRIEF = ("what", "tail_share", "middle_share")
OF_REPLICAS = ("replica", "requests", "quantile_ms", "tail_share", "times", "without_ms")
KINDS = {
    "cause": "causes named",
    "rank": "ranks named",
    "replica": "replicas",
    "host": "hosts",
    "service": "services",
    "prompt": "lengths of prompts",
    "output": "lengths of answers",
    "ended by": "why answers ended",
}


def fleet_page(report: FleetReport, style: Style) -> list[str]:
    """The verdict, the tail drawn by phase, then the groups and the replicas that stand out."""
    word, color = VERDICTS[report.verdict]
    what = f"{many(report.requests, 'request')} of {many(report.captures, 'capture')}"
    when = f"from {report.since[:19]} to {report.until[:19]}" if report.since and report.until else "no dates"
    lines = [f"{style.paint(word, color)}  {what}", style.dim(when), ""]
    lines += wrap(f"Could not tell: {report.reason}." if not report.explanation else report.explanation, style)
    if report.tail is not None and report.middle is not None:
        lines += _drawn(report, style)
        lines += _named(report, style)
        lines += _replicas(report, style)
    lines += _about(report, style)
    return lines


def _drawn(report: FleetReport, style: Style) -> list[str]:
    """The middle and the tail as two bars of one scale, cut by phase, and under them what each phase adds."""
    assert report.tail is not None and report.middle is not None
    parts = [part for part in report.phases if part.ns is not None and (part.tail_ms or part.middle_ms)]
    room = max(20, style.width - LONGEST_LABEL - 14)
    scale = room / max(report.tail.mean_ms, report.middle.mean_ms)
    lines = ["", style.head(f"The tail, {report.tail.what}, beside the middle, {report.middle.what}")]
    for label, cohort, side in (("middle", report.middle, "middle_ms"), ("tail", report.tail, "tail_ms")):
        bar = _stacked([getattr(part, side) or 0.0 for part in parts], scale, style)
        lines.append(f"  {label.ljust(LONGEST_LABEL)}{milliseconds(cohort.mean_ms):>10}  {bar}")
    gap = report.gap_ns or 0
    lines += ["", style.head(f"What adds the {milliseconds(gap / 1e6)} between them")]
    room = max(8, style.width - LONGEST_LABEL - (52 if style.width >= ENOUGH else 24))
    most = max((abs(part.share or 0.0) for part in parts), default=1.0) or 1.0
    for at, part in sorted(enumerate(parts), key=lambda one: -(one[1].ns or 0)):
        lines.append(_part(part, at, round(abs(part.share or 0.0) / most * room), style))
    unseen = [part.part.replace("_", " ") for part in report.phases if part.ns is None]
    return [*lines, *wrap(f"Not recorded: {', '.join(unseen)}" if unseen else "", style, "  ")]


def _part(part: TailPart, at: int, size: int, style: Style) -> str:
    """One phase: its mark in the bars above, what it adds, its share and the bounds of what it adds."""
    bounds = f"{milliseconds(part.low_ms)} to {milliseconds(part.high_ms)}".rjust(28) if style.width >= ENOUGH else ""
    share = f"{round(100 * (part.share or 0.0))} %"
    told = f"{milliseconds((part.ns or 0) / 1e6):>11}  {share:>6}{bounds}"
    bar = _mark(at, size, style) if (part.ns or 0) > 0 else style.dim("-" * min(size, 3))
    name = part.part.replace("_", " ")
    called = style.head(name.ljust(LONGEST_LABEL)) if part.named else name.ljust(LONGEST_LABEL)
    return f"{_mark(at, 1, style)} {called}{told}  {bar}"


def _stacked(values: Sequence[float], scale: float, style: Style) -> str:
    """``values`` one after the other, cut where their sums fall on a grid of characters."""
    ends = [round(sum(values[: at + 1]) * scale) for at in range(len(values))]
    return "".join(
        _mark(at, end - before, style) for at, (before, end) in enumerate(zip([0, *ends], ends, strict=False))
    )


def _mark(at: int, size: int, style: Style) -> str:
    glyphs = GLYPHS if style.unicode else PLAIN_GLYPHS
    return style.paint(glyphs[at % len(glyphs)] * size, COLORS[at % len(COLORS)]) if size > 0 else ""


def _named(report: FleetReport, style: Style) -> list[str]:
    """The kinds in which something stands out, each with what it is beside; replicas have a table of their own."""
    columns = report.columns
    named = columns.index("named")
    shown = SHOWN if style.width >= ENOUGH else BRIEF
    at = [columns.index(name) for name in shown]
    lines: list[str] = []
    for kind, title in KINDS.items():
        rows = [row for row in report.rows if row[0] == kind]
        if kind != "replica" and any(row[named] for row in rows):
            cells = [[*(row[one] for one in at), _ms(row[columns.index("ns")])] for row in rows[:MOST]]
            lines += ["", style.head(f"Of the {title}"), *table((*shown, "adds_ms"), cells, style)]
    return lines


def _replicas(report: FleetReport, style: Style) -> list[str]:
    columns = [name for name in report.replica_columns if name != "named"] if style.width >= ROOMY else OF_REPLICAS
    at = [report.replica_columns.index(name) for name in columns]
    named = report.replica_columns.index("named")
    rows = [row for row in report.replica_rows if row[named]] or report.replica_rows[:3]
    if report.replicas < 2 or not rows:
        return []
    outliers = sum(bool(row[named]) for row in report.replica_rows)
    title = f"None of {report.replicas:,} replicas stands out; those with most of the tail"
    if outliers:
        title = f"{outliers} of {report.replicas:,} replicas {'stand' if outliers > 1 else 'stands'} out"
    return ["", style.head(title), *table(columns, [[row[one] for one in at] for row in rows], style)]


def _about(report: FleetReport, style: Style) -> list[str]:
    said = [f"{count:,} {why}" for why, count in report.left_out.items()]
    lines = ["", *wrap(f"Captures left out: {', '.join(said)}.", style)] if said else []
    if len(report.services) > 1 and report.service is None:
        several = ", ".join(f"{name} ({count:,})" for name, count in report.services.items())
        lines += ["", *wrap(f"Several services, each of its own with --service: {several}.", style)]
    if report.examples:
        one = report.examples[0]
        lines += ["", style.dim(f"Ask why: teller why {one.request} --capture {one.capture[:12]}")]
    return lines


def _ms(ns: Cell) -> float:
    return round(float(ns or 0) / 1e6, 1)
