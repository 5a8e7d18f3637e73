"""The slow list as a page for a terminal."""

from teller_core.data.report import Cell, Contrast, SlowReport
from teller_core.tell.layout import Style, many, table, wrap
from teller_core.tell.service_page import service_lines

METRICS = {
    "e2e": "end to end",
    "ttft": "to the first token",
    "tpot": "per output token",
    "itl_max": "longest gap between tokens",
    "slo": "against its SLO",
}
ROOMY = 120
"""Columns of a page from which on there is room to say when each request began."""


def slow_page(report: SlowReport, style: Style) -> list[str]:
    """The slow list as a page: requests, or in the horizontal view ranks."""
    if report.view == "horizontal":
        return _horizontal(report, style)
    asked = f"{report.metric} ({METRICS[report.metric]})"
    lines = [style.head(f"Slowest by {asked} of {report.total:,}, capture {report.capture[:12]}"), ""]
    lines += _rows_with_causes(report, style) if report.rows else wrap(report.note, style)
    lines += [] if _measured(report) else service_lines(report, style)
    lines += ["", *wrap(report.note, style)] if report.note and report.rows else []
    lines += _beside_the_fast(report.contrast, style)
    lines += _instead(report, style)
    if report.rows and report.columns[0] == "request":
        asked = f"{report.rows[0][0]} --metric {report.metric} --capture {report.capture[:12]}"
        lines += ["", style.dim(f"Ask why: teller why {asked}")]
    if report.next_cursor is not None:
        lines += [style.dim(f"More: --cursor {report.next_cursor}")]
    return lines


def _ranks(report: SlowReport) -> str:
    """How many there are; where a page shows all of them, in how many recordings."""
    who = [(row[report.columns.index("rank")], row[report.columns.index("host")]) for row in report.rows]
    once = len(who) < report.total or -1 in dict(who) or len(set(who)) == report.total
    return many(report.total, "rank") if once else f"{many(len(set(who)), 'rank')} in {report.total:,} recordings"


def _measured(report: SlowReport) -> bool:
    """Whether some request of the page has a time."""
    times = [at for at, name in enumerate(report.columns) if name.endswith("_ms")]
    return any(row[at] is not None for row in report.rows for at in times)


def _instead(report: SlowReport, style: Style) -> list[str]:
    """The calls that have an answer where this one has none."""
    if not report.instead:
        return []
    lines = ["", style.head("Ask instead")]
    for ask in report.instead:
        view = f"--view {ask.view}" if ask.view else ""
        named = "" if ask.verb == "captures" else f"--capture {ask.capture[:12]}"
        call = " ".join(filter(None, ["teller", ask.verb, ask.target, view, named]))
        lines += wrap(f"{call}  ({ask.why})", style, "  ", "      ")
    return lines


def _beside_the_fast(contrast: Contrast | None, style: Style) -> list[str]:
    """What is claimed of the slow ones, where more than a sentence has room for is."""
    if contrast is None or not (claimed := [row for row in contrast.rows if row[contrast.columns.index("claimed")]]):
        return []
    shown = ("what", "unit", "slow", "fast", "effect", "low", "high", "untrusted_text")
    at = [contrast.columns.index(name) for name in shown]
    title = f"The slowest {contrast.slow:,} beside the other {contrast.fast:,}, in the median"
    return ["", style.head(title), *table(shown, [[row[one] for one in at] for row in claimed], style)]


def _horizontal(report: SlowReport, style: Style) -> list[str]:
    lines = [style.head(f"{_ranks(report)} side by side, capture {report.capture[:12]}"), ""]
    lines += table(report.columns, report.rows, style) if report.rows else ["No rank was recorded."]
    lines += ["", *wrap(report.note, style)] if report.note else []
    if report.waits:
        columns = [
            "handle",
            "kind",
            "ranks",
            "late_rank",
            "late_by_ms",
            "waited_ms",
            "transfer_ms",
            "kept_by",
            "kept_handle",
        ]
        rows: list[list[Cell]] = [[getattr(wait, name) for name in columns] for wait in report.waits]
        lines += ["", style.head("The collectives that were waited in longest"), "", *table(columns, rows, style)]
        first = next(
            (wait.kept_handle or wait.handle for wait in report.waits if wait.kept_handle or wait.handle), None
        )
        if first:
            lines += ["", style.dim(f"Look inside: teller slice {first} --capture {report.capture[:12]}")]
    if report.next_cursor is not None:
        lines += [style.dim(f"More: --view horizontal --cursor {report.next_cursor}")]
    return lines


def _rows_with_causes(report: SlowReport, style: Style) -> list[str]:
    """The table as a page has it: a named cause in the place of the verdict that says there is one, and when each began behind
    its number, where there is room or no id that tells more. What was said is never cut: sooner causes lose their family, and
    then the ids, which `why` shows, go.
    """
    columns = dict(zip(report.columns, map(list, zip(*report.rows, strict=True)), strict=True))
    began = columns.pop("began", None)
    cause = columns.pop("cause", [None] * len(report.rows))
    if began is not None and (style.width >= ROOMY or not any(columns.get("engine_id", []))):
        columns = {"request": columns.pop("request"), "began": _times(began), **columns}
    if "verdict" not in columns:
        return _drawn(columns, style)
    named = [one or other for one, other in zip(cause, columns["verdict"], strict=True)]
    brief: list[Cell] = [None if one is None else str(one).rpartition(".")[2] for one in named]
    lines: list[str] = []
    for said, left in ((named, ""), (brief, ""), (brief, "engine_id")):
        lines = _drawn({name: cells for name, cells in {**columns, "verdict": said}.items() if name != left}, style)
        if all(one is None or str(one) in "\n".join(lines) for one in said):
            break
    return lines


def _drawn(columns: dict[str, list[Cell]], style: Style) -> list[str]:
    return table(list(columns), list(zip(*columns.values(), strict=True)), style, whole=("began", "verdict"))


def _times(began: list[Cell]) -> list[Cell]:
    """The time of each date, with the month and the day where they are of several days."""
    days = {str(one).partition(" ")[0] for one in began if one}
    return [str(one)[11 if len(days) == 1 else 5 : 19] if one else None for one in began]
