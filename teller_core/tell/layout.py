"""What pages are set with: style, cells, tables, wrapped lines; text is stripped of what a terminal would obey."""

import re
import textwrap
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from teller_core.data.report import Cell
from teller_core.tell.visible import visible

LONGEST_NAME = 60
NARROWEST = 8
"""Characters that a column of words keeps."""
SHORTEST_PLURAL = 4
"""Letters: no shorter word that stands behind a number is a plural."""
HISSING = re.compile(r"(ss|sh|ch|x)$")
HISSED = re.compile(r"(ss|sh|ch|x)es$")
"""Nouns whose plural ends in -es, and their plurals."""
NUMBER = re.compile(r"-?[\d,]+(\.\d+)?")


@dataclass(frozen=True)
class Style:
    """What the terminal can do: columns, color, and characters beyond ASCII."""

    width: int = 100
    color: bool = False
    unicode: bool = True

    def paint(self, text: str, code: str) -> str:
        """``text`` in an SGR color, where there is color."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.color else text

    def head(self, text: str) -> str:
        """A heading."""
        return self.paint(text, "1")

    def dim(self, text: str) -> str:
        """Something that matters less."""
        return self.paint(text, "2")


def plain(text: str, longest: int = 300) -> str:
    """``text`` on one line, with nothing that a terminal would obey, cut."""
    shown = visible(text)
    return shown if len(shown) <= longest else shown[: longest - 3] + "..."


def without_middle(text: str, longest: int = 300) -> str:
    """``text`` as :func:`plain` has it, cut in its middle."""
    shown = plain(text)
    ends = longest - 3
    return shown if len(shown) <= longest else f"{shown[: ends - ends // 2]}...{shown[len(shown) - ends // 2 :]}"


def singular(things: str) -> str:
    """One of ``things``, where that is a word in the plural; units of time (ms, a s, us) and signs have none."""
    if len(things.rpartition(" ")[2]) < SHORTEST_PLURAL:
        return things
    return things[:-2] if HISSED.search(things) else things.removesuffix("s")


def many(count: int, thing: str) -> str:
    """``count`` of a thing, in words."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}{'es' if HISSING.search(thing) else 's'}"


def milliseconds(value: float | None) -> str:
    """A duration for people, or a dash where it was not measured."""
    if not value:
        return "-" if value is None else "0 ms"
    return f"{value:,.0f} ms" if abs(value) >= 1000 else f"{value:,.1f} ms" if abs(value) >= 1 else f"{value:.3f} ms"


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    style: Style,
    *,
    whole: Collection[str] = (),
    ends: Collection[str] = (),
) -> list[str]:
    """Rows under their heads, numbers to the right. Columns without a single value are left out; heads stand on several
    lines, and the widest columns of words are cut, those named in ``whole`` last, where the page is too narrow. Ids, and columns
    named in ``ends``, lose their middle: what tells them apart stands at either end.
    """
    shown = [at for at in range(len(columns)) if any(row[at] not in (None, "") for row in rows)]
    fits = [without_middle if columns[at].endswith("_id") or columns[at] in ends else plain for at in shown]
    by_column = [_cells([row[at] for row in rows], fit) for at, fit in zip(shown, fits, strict=True)]
    cells = [list(row) for row in zip(*by_column, strict=True)]
    numeric = [all(cell == "-" or NUMBER.fullmatch(cell) for cell in column) for column in by_column]
    heads = [columns[at].replace("_", " ") for at in shown]
    inner = [max(len(row[at]) for row in cells) for at in range(len(shown))]
    widths = [max(len(head), wide) for head, wide in zip(heads, inner, strict=True)]
    stacked = _overflow(widths, style) > 0
    if stacked:
        widths = [max(*map(len, head.split()), wide) for head, wide in zip(heads, inner, strict=True)]
    words = [at for at, is_number in enumerate(numeric) if not is_number]
    while (over := _overflow(widths, style)) > 0 and any(widths[at] > NARROWEST for at in words):
        widest = max(
            (at for at in words if widths[at] > NARROWEST), key=lambda at: (columns[shown[at]] not in whole, widths[at])
        )
        widths[widest] = max(NARROWEST, widths[widest] - over)

    def line(row: Sequence[str]) -> str:
        fitted = [fit(cell, width) for fit, cell, width in zip(fits, row, widths, strict=True)]
        return "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(fitted, widths, numeric, strict=True)
        )

    return [*(style.head(line(row)) for row in _stack(heads, stacked)), *map(line, cells)]


def _overflow(widths: Sequence[int], style: Style) -> int:
    return sum(widths) + 2 * (len(widths) - 1) - style.width


def _stack(heads: Sequence[str], stacked: bool) -> list[list[str]]:
    """The lines of a table's head: one, or one a word, set at the bottom."""
    parts = [head.split() if stacked else [head] for head in heads]
    most = max(map(len, parts))
    padded = [[""] * (most - len(part)) + part for part in parts]
    return [list(line) for line in zip(*padded, strict=True)]


def _cells(column: Sequence[Cell], fit: Callable[[str, int], str]) -> list[str]:
    """The cells of one column, cut by ``fit``, with as many decimals as its smallest and largest numbers ask for."""
    sizes = [abs(cell) for cell in column if isinstance(cell, float) and cell]
    digits = 3 if min(sizes, default=1.0) < 0.1 else 1 if max(sizes, default=0.0) >= 10 else 2
    return [
        "-" if cell is None else f"{cell:,.{digits}f}" if isinstance(cell, float) else fit(str(cell), LONGEST_NAME)
        for cell in column
    ]


def wrap(text: str, style: Style, first: str = "", rest: str | None = None) -> list[str]:
    """``text`` in lines of the style's width: the first after ``first``, the others after ``rest`` or as far in."""
    lead = " " * len(first) if rest is None else rest
    return textwrap.wrap(
        plain(text, 4000), style.width, initial_indent=first, subsequent_indent=lead, break_long_words=False
    )


def bullets(title: str, texts: Sequence[str], style: Style) -> list[str]:
    """``texts`` as a list under ``title``; nothing where there are none."""
    if not texts:
        return []
    return ["", style.head(title), *(line for text in texts for line in wrap(text, style, "  - "))]
