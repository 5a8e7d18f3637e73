"""A timeline as a picture (PNG), where a page cannot be shown: the same rows, marks and colors, drawn by Pillow.

Pillow brings its own font, so that a machine without fonts draws words too.
"""

from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from textwrap import wrap
from typing import Any, NamedTuple

from teller_core.data.report_timeline import TimelinePanel, TimelineReport, TimelineRow
from teller_core.errors import MissingExtra
from teller_core.tell.layout import many, milliseconds
from teller_core.tell.report.colors import COLORS, OF_KIND, WORDS, Color
from teller_core.tell.report.picture import (
    HEADED,
    HEIGHT,
    HEIGHTS,
    LEAST,
    ROOM_FOR_WORDS,
    SIDES,
    below,
    below_all,
    ticks,
)
from teller_core.tell.visible import visible

WIDTH, LABELS, MARGIN = 1400, 210, 24
"""Pixels: of the picture, of its labels, around it. A chat shows about so many."""
GAP = 3
ROWS = 26
"""Rows of a panel that are drawn; how many more there are is said."""
LONGEST_LABEL = 32
"""Characters of a label."""
LINE = 18
"""Pixels of a line of words."""
LONGEST_LINE = 175
"""Characters of one: as many as fit beside the labels."""


class _Pen(NamedTuple):
    """Where to draw: the canvas, its fonts, and which of each pair of colors."""

    canvas: Any
    small: Any
    large: Any
    dark: bool

    def color(self, name: Color) -> str:
        return COLORS[name][self.dark]

    def words(
        self, at: tuple[float, float], text: str, color: Color, *, large: bool = False, anchor: str = "lm"
    ) -> None:
        font = self.large if large else self.small
        self.canvas.text(at, visible(text), fill=self.color(color), font=font, anchor=anchor)


def drawn(report: TimelineReport, headline: str, *, dark: bool = False) -> bytes:
    """The bytes of a PNG of the timeline, ``headline`` above it. Raises MissingExtra without Pillow."""
    try:
        image_of, draw_of, font_of = (import_module(f"PIL.{name}") for name in ("Image", "ImageDraw", "ImageFont"))
    except ImportError:
        raise MissingExtra("The picture", "Pillow is not installed", "Install teller-mcp[pictures]") from None

    last = [line for text in below_all(report) for line in _lines(text)] if report.panels else []
    height = 2 * MARGIN + 46 + sum(map(_height, report.panels)) + (LINE * len(last) if report.panels else 30)
    image: Any = image_of.new("RGB", (WIDTH, height), COLORS["paper"][dark])
    pen = _Pen(draw_of.Draw(image), font_of.load_default(12), font_of.load_default(20), dark)
    pen.words((MARGIN, MARGIN + 12), _cut(headline, 110), "ink", large=True)
    top = MARGIN + 46
    longest = {panel.shows: 0.0 for panel in report.panels}
    for panel in report.panels:
        longest[panel.shows] = max(longest[panel.shows], panel.length_ms)
    for panel in report.panels:
        _panel(pen, panel, longest[panel.shows], top)
        top += _height(panel)
    _say(pen, last, MARGIN, top)
    if not report.panels:
        pen.words((MARGIN, top + 10), _cut(report.note or report.beside_why, 160), "dim")
    out = BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _shown(panel: TimelinePanel) -> Sequence[TimelineRow]:
    return panel.rows[:ROWS]


def _heads(rows: Sequence[TimelineRow], at: int) -> bool:
    """Whether the group of this row stands above it."""
    group = rows[at].group
    return group.startswith(HEADED) and (at == 0 or rows[at - 1].group != group)


def _height(panel: TimelinePanel) -> int:
    rows = _shown(panel)
    heads = sum(18 * _heads(rows, at) for at in range(len(rows)))
    return 24 + 18 + heads + sum(HEIGHTS.get(row.layer, HEIGHT) + GAP for row in rows) + LINE * len(_under(panel)) + 18


def _under(panel: TimelinePanel) -> list[str]:
    """What stands below a panel, the same as on a page, and how many rows are left out here."""
    more = [f"and {many(len(panel.rows) - ROWS, 'more row')}"] if len(panel.rows) > ROWS else []
    return [*more, *_lines(below(panel))]


def _lines(text: str) -> list[str]:
    return wrap(visible(text), LONGEST_LINE)


def _say(pen: _Pen, lines: Sequence[str], left: int, top: int) -> None:
    for at, line in enumerate(lines):
        pen.words((left, top + LINE * at + LINE / 2), line, "dim")


def _panel(pen: _Pen, panel: TimelinePanel, longest: float, top: int) -> None:
    edge: Color = "red" if panel.side == "asked" else "slate"
    pen.canvas.rectangle((MARGIN, top, MARGIN + 3, top + 17), fill=pen.color(edge))
    title = f"{panel.title}, {SIDES[panel.shows, panel.side]}: {milliseconds(panel.length_ms)}"
    pen.words((MARGIN + 10, top + 9), _cut(title, 140), "ink")
    top += 24
    _axis(pen, longest, top)
    top += 18
    rows = _shown(panel)
    for at, row in enumerate(rows):
        if _heads(rows, at):
            pen.words((MARGIN, top + 9), _cut(row.group, 60), "dim")
            top += 18
        height = HEIGHTS.get(row.layer, HEIGHT)
        label = row.label or (row.group if row.layer == "found" else "")
        pen.words((MARGIN + LABELS - 10, top + height / 2), _cut(label, LONGEST_LABEL), "dim", anchor="rm")
        _row(pen, row, (panel.length_ms, longest), top, height)
        top += height + GAP
    _say(pen, _under(panel), MARGIN + LABELS, top)


def _x(ms: float, longest: float) -> float:
    room = WIDTH - 2 * MARGIN - LABELS
    return MARGIN + LABELS + room * min(max(ms / longest if longest > 0 else 0.0, 0.0), 1.0)


def _axis(pen: _Pen, longest: float, top: int) -> None:
    for k, at in enumerate(ticks(longest)):
        x = _x(at, longest)
        pen.canvas.line((x, top + 10, x, top + 16), fill=pen.color("line"))
        pen.words((x + 4, top + 8), f"{at:,.6g}{'' if k else ' ms'}", "dim")


def _row(pen: _Pen, row: TimelineRow, scale: tuple[float, float], top: int, height: int) -> None:
    length, longest = scale
    canvas = pen.canvas
    canvas.rectangle((_x(0, longest), top, _x(length, longest), top + height - 1), fill=pen.color("behind"))
    columns = (row.start_ms, row.dur_ms, row.kind, row.text, row.finding)
    for start, dur, kind, text, finding in zip(*columns, strict=True):
        wide = max(dur, LEAST * longest)
        left = _x(min(start, longest - wide), longest)
        right = max(left + 1, _x(start + wide, longest))
        blamed = finding and kind != "found"
        edge = pen.color("red") if blamed else None
        canvas.rectangle((left, top + 1, right, top + height - 2), fill=pen.color(OF_KIND[kind]), outline=edge)
        if dur >= ROOM_FOR_WORDS * longest and kind not in ("log", "token"):
            room = int((right - left - 8) / 6.2)
            pen.words((left + 4, top + height / 2), _cut(text, room), WORDS.get(OF_KIND[kind], "on"))


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: max(longest - 1, 0)]}…"
