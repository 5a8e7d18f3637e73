"""The model of what a search found, for :mod:`teller_core.data.report`."""

from typing import Literal

from pydantic import Field

from teller_core.data.report import Cell, Model

SearchKind = Literal[
    "any", "request", "span", "annotation", "python", "operator", "runtime", "kernel", "communication", "log_line"
]


class SearchReport(Model):
    """The answer of ``search``: a table; of each capture first requests, then names of spans, most time first, then log lines.

    Columns, those without a value on the page left out: ``kind``, ``handle`` (what ``slice`` takes), ``untrusted_text`` (ids of
    a request, a name, a line), ``capture`` (where all were searched), ``request``, ``step``, ``time`` (UTC), ``took_ms``,
    ``calls`` and ``total_ms`` (of all spans of that name: what stands before is the longest one's), ``where`` (FILE:LINE).
    """

    capture: str | None = Field(description="the one that was searched, null for all")
    columns: list[str]
    rows: list[list[Cell]]
    counts: dict[str, int] = Field(description="first page: what holds the text, by kind")
    next_cursor: str | None
    note: str = Field(description="what was not looked through, or what to try where nothing was found")
