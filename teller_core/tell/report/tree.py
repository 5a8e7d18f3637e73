"""A causal slice as lines that fold: the step, its spans, and what they called."""

from collections.abc import Sequence

from teller_core.data.report import SliceLine, SliceReport
from teller_core.tell.layout import milliseconds
from teller_core.tell.report.html import said, section, tag

OPEN = 2
"""Levels that are open when the page is."""
UNUSUAL = 3.5
"""Standard deviations from which a span's own time is called unusual, as where candidates are chosen."""


def tree(report: SliceReport | None, why_none: str) -> str:
    """What bears on the step, folded; where there is nothing, ``why_none``."""
    title = "What bears on it"
    if report is None or not report.lines:
        return section(title, tag("p", said(why_none or (report.note if report else "")), "dim")) if why_none else ""
    seen = f"{report.events:,} spans, {report.cut:,} of them left out. " if report.events else ""
    hint = f"{seen}Times are lengths; a line with a triangle unfolds."
    note = tag("p", said(report.note), "dim") if report.note else ""
    return section(title, tag("div", _folded(report.lines), "tree") + note, hint)


def _folded(lines: Sequence[SliceLine]) -> str:
    """Every line, below the last one before it of a smaller depth: a line whose own caller was left out stands below the nearest
    one that was not, and on the page itself where there is none.
    """
    parts: list[str] = []
    above: list[int] = []
    """Depths of the lines that this one stands below."""
    for line, following in zip(lines, (*lines[1:], None), strict=True):
        while above and above[-1] >= line.depth:
            above.pop()
            parts.append("</details>")
        if following is not None and following.depth > line.depth:
            is_open = " open" if len(above) < OPEN else ""
            parts.append(f"<details{is_open}><summary>{_line(line)}</summary>")
            above.append(line.depth)
        else:
            parts.append(tag("div", _line(line), "leaf"))
    return "".join(parts) + "</details>" * len(above)


def _line(line: SliceLine) -> str:
    own = (
        f", {milliseconds(line.self_ms)} of it its own"
        if line.self_ms is not None and line.self_ms != line.dur_ms
        else ""
    )
    many = f" &times;{line.count:,}" if line.count > 1 else ""
    odd = ""
    if line.residual is not None and line.residual >= UNUSUAL:
        odd = " " + tag("em", said(f"unusual: {line.residual:.1f} standard deviations"), "odd")
    return (
        f"<i class='k-{said(line.layer)}'></i>{said(line.text)}{many} "
        f"{tag('small', said(milliseconds(line.dur_ms) + own + f', {line.handle}'))}{odd}"
    )
