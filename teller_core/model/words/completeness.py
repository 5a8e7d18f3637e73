"""How much of what somebody wants to know an explanation says: a score to compare ways of saying it by."""

from collections.abc import Mapping

from teller_core.data.causes import causes
from teller_core.data.report import WhyReport
from teller_core.data.said import HEDGES, TIERS, cost_of, number
from teller_core.model.words.matter import slots

OTHERWISE = {
    "normal": "reference says",
    "typical_here": "no slower than its peers",
    "could_not_tell": "cannot be told",
}
"""What is said in place of a cause."""


def told(text: str, report: WhyReport) -> Mapping[str, bool]:
    """By what is wanted, whether ``text`` says it: the request, what happened, where, how much, how sure, what next. What the
    answer has nothing of is not asked for.
    """
    low, given = text.lower(), slots(report)
    first = report.findings[0] if report.findings else None
    wanted = {"request": f"request {report.request} " in f"{low} ", "what": _what(low, report)}
    where = [f"{name} {given[name]}" for name in ("step", "rank") if name in given]
    where += [given[name].lower() for name in ("operator", *(() if first else ("phase",))) if name in given]
    if where:
        wanted["where"] = any(
            f"{place} " in f"{low} ".replace(".", " ").replace(",", " ").replace("`", " ") for place in where
        )
    cost = cost_of(first) if first else report.value_ms
    if cost is not None:
        wanted["how_much"] = number(cost) in text
    hedges = [hedge.strip(" ,").lower() for hedge in HEDGES.values() if hedge]
    sure = (
        number(first.confidence) in text or any(hedge in low for hedge in hedges)
        if first
        else TIERS[report.tier] in low
    )
    wanted["how_sure"] = sure
    steps = [given[name].lower() for name in ("fix", "next", "missing") if name in given]
    if steps and report.verdict != "normal":
        wanted["next"] = any(step in low for step in steps)
    return wanted


def completeness(text: str, report: WhyReport) -> float:
    """The share of what is wanted that ``text`` says."""
    wanted = told(text, report)
    return sum(wanted.values()) / len(wanted)


def _what(low: str, report: WhyReport) -> bool:
    if not report.findings:
        return OTHERWISE.get(report.verdict, "") in low
    about = causes()[report.findings[0].cause]
    return any(name.lower() in low for name in (about.called, about.plain, about.title))
