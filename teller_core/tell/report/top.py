"""The top of the page: what happened, how sure that is, what it cost and what to do, for somebody who is no expert."""

from collections.abc import Iterator, Sequence

from teller_core.data.causes import causes
from teller_core.data.report import Part, WhyReport
from teller_core.data.said import HEDGES, METRICS, PHASES, TIERS, Band, band, capital, cost_of
from teller_core.tell.layout import milliseconds
from teller_core.tell.report.html import percent, said, tag

SURE: dict[Band, tuple[int, str]] = {
    "sure": (3, "Sure: it was recorded or counted"),
    "likely": (2, "Likely, not certain"),
    "maybe": (1, "No more than a hint"),
}
"""How many of three pips, and what they mean."""
WITHOUT_CAUSE = {
    "normal": "It took what it should",
    "typical_here": "It was no slower than its peers here, which may all be slow",
    "could_not_tell": "Why it took so long cannot be told from what was recorded",
    "cause": "A cause was found",
}
SMALL = 0.005
"""Parts below this share are not named under the bar of the whole: they cannot be seen in it."""


def top(report: WhyReport) -> str:
    """The first screen."""
    first = report.findings[0] if report.findings and report.verdict == "cause" else None
    return "".join(
        [
            "<header>",
            tag("p", said(_who(report)), "who"),
            tag("h1", said(headline(report))),
            _sure(report),
            "" if first else tag("p", said(capital(report.reason)), "reason") if report.reason else "",
            tag("dl", "".join(_figures(report)), "figures"),
            whole_bar(report.phases),
            _to_do(report),
            "</header>\n",
        ]
    )


def headline(report: WhyReport) -> str:
    """The verdict in one sentence."""
    if report.verdict != "cause" or not report.findings:
        return f"{WITHOUT_CAUSE[report.verdict]}."
    first = report.findings[0]
    known = causes().get(first.cause)  # an answer that another version stored may name one that is gone
    plain = known.plain if known else first.title.rstrip(".")
    return capital(f"{HEDGES[band(first.confidence)]}{plain}.")


def _who(report: WhyReport) -> str:
    named = f" ({report.engine_id[:60]})" if report.engine_id else ""
    began = f", begun {report.began}" if report.began else ""
    return f"Request {report.request}{named}{began}"


def _sure(report: WhyReport) -> str:
    held = f" It was held against the baseline {report.reference}." if report.reference else ""
    rests = f"It rests on {TIERS[report.tier]}{_seen(report)}.{held}"
    if report.verdict == "could_not_tell":
        return tag("p", said(rests), "sure")
    pips, words = SURE[band(report.confidence)]
    drawn = "".join(
        f'<rect x="{14 * k}" y="2" width="11" height="11" rx="2" class="{"on" if k < pips else "off"}"/>'
        for k in range(3)
    )
    meter = f'<svg class="pips" width="40" height="15" role="img" aria-label="{pips} of 3">{drawn}</svg>'
    return tag("p", f"{meter} {said(f'{words} (confidence {report.confidence:.2f}). {rests}')}", "sure")


def _seen(report: WhyReport) -> str:
    if not report.coverage.steps:
        return ""
    return f"; a profile saw {report.coverage.profiled} of the {report.coverage.steps} steps that served it"


def _figures(report: WhyReport) -> Iterator[str]:
    took = "not recorded" if report.value_ms is None else milliseconds(report.value_ms)
    yield _figure(took, f"it took {METRICS[report.metric]}")
    if report.value_ms is not None and report.over_work:
        yield _figure(f"about {milliseconds(report.value_ms / report.over_work)}", "is usual for as much work")
    first = report.findings[0] if report.findings else None
    lost = None if first is None else cost_of(first)
    if first is not None and lost is not None:
        yield _figure(milliseconds(lost), "went to this cause")
    if first is not None and first.saving_ms is not None:
        yield _figure(milliseconds(first.saving_ms), "sooner without it, by replay")


def _figure(value: str, what: str) -> str:
    return f"<div><dt>{said(what)}</dt><dd>{said(value)}</dd></div>"


def whole_bar(parts: Sequence[Part]) -> str:
    """All known parts of the time in one bar, with what is what below it; nothing where none is known."""
    known = [(part.part, part.ns or 0) for part in parts if part.ns]
    whole = sum(ns for _, ns in known)
    if not known:
        return ""
    at = 0
    drawn: list[str] = []
    for name, ns in known:
        title = f"{PHASES.get(name, name.replace('_', ' '))}, {milliseconds(ns / 1e6)}"
        box = f'x="{percent(at, whole)}" width="{percent(ns, whole)}" y="0" height="26" class="p-{name}"'
        drawn.append(f"<rect {box}><title>{said(title)}</title></rect>")
        at += ns
    shown = sorted((one for one in known if one[1] >= SMALL * whole), key=lambda one: -one[1])
    legend = "".join(
        tag(
            "li",
            f'<svg width="10" height="10"><rect width="10" height="10" rx="2" class="p-{name}"/></svg> '
            f"{said(_called(name))} <b>{said(milliseconds(ns / 1e6))}</b> ({ns / whole:.0%})",
        )
        for name, ns in shown
    )
    bar = f'<svg class="whole" width="100%" height="26" role="img" aria-label="where the time went">{"".join(drawn)}</svg>'
    return f"{tag('p', 'Where the time went', 'over')}{bar}{tag('ul', legend, 'legend')}"


def _called(name: str) -> str:
    return PHASES.get(name, "nobody recorded where" if name == "unexplained" else name.replace("_", " "))


def _to_do(report: WhyReport) -> str:
    first = report.findings[0] if report.findings else None
    lines: list[str] = []
    if first is not None and first.fix:
        lines.append(f"<b>What helps:</b> {said(capital(first.fix))}")
    if report.next_checks:
        lines.append(f"<b>Check next:</b> {said(report.next_checks[0])}")
    return "".join(tag("p", line, "do") for line in lines)
