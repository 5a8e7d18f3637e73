"""Pieces of HTML and SVG. All text goes through :func:`said`: nothing of a trace or a log ever is markup."""

from collections.abc import Iterable
from html import escape

from teller_core.tell.visible import visible

MOST = 4000
"""Characters of one text on a page."""


def said(text: str) -> str:
    """``text`` as it may stand between tags and in attributes."""
    shown = visible(text)
    return escape(shown if len(shown) <= MOST else f"{shown[: MOST - 1]}…", quote=True)


def tag(name: str, inside: str, css: str = "") -> str:
    """An element around markup. ``css``: its classes."""
    classes = f' class="{css}"' if css else ""
    return f"<{name}{classes}>{inside}</{name}>"


def listed(items: Iterable[str], css: str = "") -> str:
    """Texts as a list; nothing where there are none."""
    inside = "".join(tag("li", said(item)) for item in items)
    return tag("ul", inside, css) if inside else ""


def section(title: str, inside: str, hint: str = "") -> str:
    """A part of the page under its heading; nothing where it is empty. ``hint``: a sentence on how to read it."""
    if not inside:
        return ""
    return f"<section><h2>{said(title)}</h2>{tag('p', said(hint), 'hint') if hint else ''}{inside}</section>\n"


def percent(part: float, whole: float) -> str:
    """A share as SVG takes it."""
    share = 100 * part / whole if whole > 0 else 0.0
    return f"{min(max(share, 0.0), 100.0):.2f}".rstrip("0").rstrip(".") + "%"
