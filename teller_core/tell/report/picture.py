"""A timeline as HTML: a row of SVG for every row, its label beside it, or above it where the page is narrow.

Places are percentages, so that a picture fits every width, and text in it is never stretched.
"""

from collections.abc import Iterator, Sequence
from math import floor, log10

from teller_core.data.report_timeline import Drawn, Kind, TimelinePanel, TimelineReport, TimelineRow
from teller_core.data.said import capital
from teller_core.tell.layout import milliseconds
from teller_core.tell.report.html import percent, said, section, tag

HEIGHTS: dict[Drawn, int] = {"found": 18, "python": 12, "operator": 12, "runtime": 12}
HEIGHT = 15
"""Pixels of a row of any other layer."""
ROOM_FOR_WORDS = 0.08
"""A mark that takes this share of the width says what it is."""
LEAST = 0.0015
"""Marks are drawn at least this wide, or they would not be seen."""
TICKS = 4
"""About so many times are written along the axis: as many as fit a telephone."""
LAST_TICK = 0.94
"""Behind this share of the width there is no room for a time."""
SIDES = {
    ("request", "asked"): "what was asked about",
    ("step", "asked"): "the one to look at",
    ("request", "beside"): "a usual one beside it",
    ("step", "beside"): "a usual one beside it",
}
HEADED = ("rank", "process", "stood", "ranks")
"""How the names of groups begin that stand above their rows; what others hold is plain from the labels."""
LEGEND: Sequence[tuple[Kind, str]] = (
    ("found", "what is blamed"),
    ("prefill_step", "a step that computes prompts"),
    ("decode_step", "a step that decodes"),
    ("mixed_step", "a step that does both"),
    ("step", "a step"),
    ("others_step", "a step for others"),
    ("pause", "a pause"),
    ("wait", "a wait for another rank"),
    ("operator", "an operator"),
    ("python", "Python"),
    ("runtime", "a call of the driver"),
    ("kernel", "a kernel"),
    ("communication", "communication"),
    ("log", "a log line"),
)


def picture(report: TimelineReport) -> str:
    """All panels; those of requests share one scale, and so do those of steps."""
    if not report.panels:
        return section("What happened when", tag("p", said(report.note or report.beside_why), "dim"))
    longest = {shows: _longest(report, shows) for shows in ("request", "step")}
    drawn = "".join(_panel(panel, longest[panel.shows]) for panel in report.panels)
    notes = "".join(tag("p", said(line), "dim") for line in below_all(report))
    hint = "Time runs to the right, on one scale for what stands one below the other. Point at a mark to read it."
    return section("What happened when", _legend(report) + drawn + notes, hint)


def below_all(report: TimelineReport) -> list[str]:
    """The sentences that stand below all panels."""
    return [f"Beside it: {report.beside_why}.", *([f"{capital(report.note)}."] if report.note else [])]


def below(panel: TimelinePanel) -> str:
    """The sentence that stands below a panel: its note, and what of it is not drawn, or not alone; empty where all is."""
    small = [
        panel.note,
        f"{panel.merged:,} things are too short to be drawn alone: several share a mark" if panel.merged else "",
        f"{panel.left_out:,} spans have no row: they lie too deep, or on a thread or a rank that is not drawn"
        if panel.left_out
        else "",
    ]
    note = "; ".join(filter(None, small))
    return f"{capital(note)}." if note else ""


def _longest(report: TimelineReport, shows: str) -> float:
    return max((panel.length_ms for panel in report.panels if panel.shows == shows), default=0.0)


def _legend(report: TimelineReport) -> str:
    used = {kind for panel in report.panels for row in panel.rows for kind in row.kind}
    return tag("ul", "".join(_key(kind, words) for kind, words in LEGEND if kind in used), "legend")


def _key(kind: Kind, words: str) -> str:
    square = f'<svg width="10" height="10"><rect width="10" height="10" rx="2" class="k-{kind}"/></svg>'
    return tag("li", f"{square} {said(words)}")


def _panel(panel: TimelinePanel, longest: float) -> str:
    title = f"{panel.title}, {SIDES[panel.shows, panel.side]}: {milliseconds(panel.length_ms)}"
    rows = "".join(_rows(panel, longest))
    note = below(panel)
    under = tag("p", said(note), "dim") if note else ""
    return tag("figure", tag("figcaption", said(title)) + tag("div", rows, "rows") + under, panel.side)


def _rows(panel: TimelinePanel, longest: float) -> Iterator[str]:
    yield tag("div", "") + _axis(longest)
    group = ""
    for row in panel.rows:
        if row.group != group and row.group.startswith(HEADED):
            yield tag("div", said(row.group), "group")
        group = row.group
        label = row.label or (row.group if row.layer == "found" else "")
        yield tag("div", said(label), "label") + _strip(row, panel.length_ms, longest)


def ticks(longest: float) -> list[float]:
    """Round times along an axis of ``longest`` ms, from 0 on."""
    step = _round(longest / TICKS)
    return [step * k for k in range(int(longest / step) + 1) if step * k <= LAST_TICK * longest] if step > 0 else []


def _axis(longest: float) -> str:
    drawn = "".join(
        f'<line x1="{percent(at, longest)}" x2="{percent(at, longest)}" y1="10" y2="16"/>'
        f'<text x="{percent(at, longest)}" dx="3" y="13">{said(f"{at:,.6g}")}{" ms" if k == 0 else ""}</text>'
        for k, at in enumerate(ticks(longest))
    )
    return f'<svg class="axis" width="100%" height="16" aria-hidden="true">{drawn}</svg>'


def _round(value: float) -> float:
    """The next of 1, 2, 2.5, 5 times a power of ten."""
    if value <= 0:
        return 0.0
    power = 10.0 ** floor(log10(value))
    return next(power * part for part in (1, 2, 2.5, 5, 10) if value <= power * part * 1.0000001)


def _strip(row: TimelineRow, length: float, longest: float) -> str:
    height = HEIGHTS.get(row.layer, HEIGHT)
    lines = row.untrusted_text or [""] * len(row.text)
    columns = (row.start_ms, row.dur_ms, row.kind, row.text, row.finding, lines)
    marks = "".join(
        _mark((start, dur), kind, " ".join(filter(None, [text, line])), finding, longest=longest, height=height)
        for start, dur, kind, text, finding, line in zip(*columns, strict=True)
    )
    named = said(f"{row.group}, {row.label or row.layer}: {len(row.text):,} marks")
    behind = f'<rect class="behind" width="{percent(length, longest)}" height="{height}"/>'
    return f'<svg class="strip" width="100%" height="{height}" role="img" aria-label="{named}">{behind}{marks}</svg>'


def _mark(time: tuple[float, float], kind: Kind, text: str, finding: int, *, longest: float, height: int) -> str:
    start, dur = time
    wide = max(dur, LEAST * longest)
    place = f'x="{percent(min(start, longest - wide), longest)}" width="{percent(wide, longest)}"'
    css = f"k-{kind} blamed" if finding and kind != "found" else f"k-{kind}"
    title = f"<title>{said(text)}</title>"
    if dur < ROOM_FOR_WORDS * longest or kind in ("log", "token"):
        return f'<rect {place} y="1" height="{height - 2}" class="{css}">{title}</rect>'
    inner = f'<rect width="100%" y="1" height="{height - 2}" class="{css}">{title}</rect>'
    words = f'<text x="4" y="{height // 2 + 4}" class="on-{kind}">{said(text[:120])}</text>'
    return f'<svg {place} height="{height}">{inner}{words}</svg>'
