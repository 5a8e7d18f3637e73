"""The two breakdowns of a request's time, and what each finding stands on."""

from collections.abc import Sequence

from teller_core.data.report import Part, WhyReport
from teller_core.data.report_findings import EvidenceItem, Finding
from teller_core.data.said import PHASES, capital
from teller_core.tell.facts import SCOPES, amount, rescheduled, saving
from teller_core.tell.layout import LONGEST_NAME, milliseconds, plain
from teller_core.tell.report.html import percent, said, section, tag

RESOURCES = {
    "device_compute": "the device computed",
    "host_compute": "the model was computed on the processor",
    "collective_transfer": "ranks exchanged data",
    "collective_wait": "a rank waited for another one",
    "exposed_host": "the device had nothing to do, as the host was not ready",
    "device_idle": "the device was idle",
    "unexplained": "nobody recorded what",
}
"""What each resource's part of the time is, in plain words."""


def breakdowns(report: WhyReport) -> str:
    """Both breakdowns, one beside the other where there is room."""
    by_phase = _bars("By phase", report.phases, PHASES)
    by_resource = _bars("Inside its steps, by what they waited for", report.resources, RESOURCES)
    both = tag("div", by_phase + by_resource, "two") if by_phase or by_resource else ""
    return section("Where the time went", both, "Each column adds up to its whole. A dash: nothing recorded it.")


def _bars(title: str, parts: Sequence[Part], words: dict[str, str]) -> str:
    known = [part for part in parts if part.ns is not None]
    whole = sum(part.ns or 0 for part in known)
    if not known:
        return ""
    rows = "".join(_bar(part, whole, words) for part in known if part.ns)
    none = [part.part.replace("_", " ") for part in known if part.ns == 0]
    rest = tag("p", said(f"Nothing in: {', '.join(none)}."), "dim") if none else ""
    head = tag("h3", said(f"{title}: {milliseconds(whole / 1e6)}"))
    return tag("div", f"{head}{tag('table', rows)}{rest}{_unseen(parts)}")


def _bar(part: Part, whole: int, words: dict[str, str]) -> str:
    ns = part.ns or 0
    bar = (
        f'<svg width="100%" height="14" role="img" aria-label="{ns / whole:.0%}">'
        f'<rect width="{percent(ns, whole)}" height="14" class="p-{part.part}"/></svg>'
    )
    name, meaning = part.part.replace("_", " "), words.get(part.part, "")
    label = f"{said(name)}{tag('small', said(meaning)) if meaning else ''}"
    return (
        f"<tr title=\"{said(f'measured from: {part.source}')}\"><th scope='row'>{label}</th>"
        f"<td class='n'>{said(milliseconds(ns / 1e6))}</td><td class='n'>{ns / whole:.0%}</td><td class='b'>{bar}</td></tr>"
    )


def _unseen(parts: Sequence[Part]) -> str:
    reasons: dict[str, list[str]] = {}
    for part in parts:
        if part.ns is None:
            reasons.setdefault(part.source, []).append(part.part.replace("_", " "))
    return "".join(tag("p", said(f"— {', '.join(names)}: {why}"), "dim") for why, names in reasons.items())


def findings(report: WhyReport) -> str:
    """Every finding with its evidence, what it would save and what speaks against look-alikes."""
    inside = "".join(_finding(number, one) for number, one in enumerate(report.findings, 1))
    if report.together is not None:
        both = report.together
        lines = [saving(both), rescheduled(both)]
        inside += tag(
            "article",
            tag("h3", said(f"All of these at once: {', '.join(both.causes)}"))
            + "".join(tag("p", said(line)) for line in lines if line),
        )
    return section("What was found, and what it stands on", inside)


def _finding(number: int, one: Finding) -> str:
    where = [
        f"step {one.step}" if one.step is not None else "",
        f"rank {one.rank}" if one.rank is not None else "",
        plain(one.operator, LONGEST_NAME) if one.operator else "",
        f"{one.layer} layer",
        "between ranks" if one.view == "horizontal" else "",
    ]
    about = f"{one.cause}, confidence {one.confidence:.2f}, {', '.join(filter(None, where))}"
    savings = "".join(tag("p", said(line)) for line in (saving(one), rescheduled(one)) if line)
    against = "".join(tag("li", said(f"Not {line}")) for line in one.against)
    return tag(
        "article",
        tag("h3", f"<span class='mark'>{number}</span> {said(one.title)}")
        + tag("p", said(about), "dim")
        + tag("ul", "".join(_evidence(item) for item in one.evidence), "evidence")
        + savings
        + (tag("p", f"<b>What helps:</b> {said(capital(one.fix))}") if one.fix else "")
        + (tag("ul", against, "against") if against else ""),
    )


def _evidence(item: EvidenceItem) -> str:
    name = plain(item.name, LONGEST_NAME) if item.name else item.kind.replace("_", " ")
    value = f" <b>{said(amount(item.value, item.unit))}</b>" if item.value is not None else ""
    usual = f" where {said(amount(item.normal, item.unit))} is usual" if item.normal is not None else ""
    where = [
        f"step {item.step}" if item.step is not None else "",
        f"span {item.span}" if item.span else "",
        plain(item.log_line, 120) if item.log_line else "",
        SCOPES.get(item.scope, item.scope.replace("_", " ")),
    ]
    line = tag("blockquote", tag("code", said(plain(item.untrusted_text)))) if item.untrusted_text else ""
    return tag("li", f"{said(name)}{value}{usual} {tag('small', said(', '.join(filter(None, where))))}{line}")
