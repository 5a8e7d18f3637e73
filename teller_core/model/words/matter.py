"""What there is to say of one answer: what holds of it, and the facts that may be cited, each with the kinds that it is of."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from teller_core.data.causes import cause, causes
from teller_core.data.report import EvidenceItem, Finding, Verdict, WhyReport
from teller_core.data.said import METRICS, PHASES, PLAIN_NAME, TIERS, band, cost_of, mostly, number
from teller_core.model.words.lexicon import SIMILAR, clause, sayable

MOST_OTHERS = 2
"""Findings beside the first whose cost is told."""
FIRST, WHOLE = "first", "whole"
"""Kinds that no word asks for: the first fact of the cause, and one that is what it cost and nothing else."""
NEAR = 0.02
"""Two costs that differ by less are one, rounded."""
MANY, DOUBLE, MORE, SAME = 10.0, 2.0, 1.05, 0.95
"""A value of at least so many times what is usual is told to be more than that, above MORE more, from SAME on about the same."""
SHARES = {"most_of_it": 0.6, "half_of_it": 0.4, "some_of_it": 0.0}
"""From which share of the request's time on a cost is told to be so much of it."""
STRETCHES = ("e2e", "slo", "ttft", "itl_max")
"""Metrics that measure one stretch of time, of which a cost can be a share."""
ENDS = ("e2e", "slo")
"""Metrics of which a saving is that the request ends sooner."""


@dataclass(frozen=True)
class Fact:
    """Evidence for a cause of the taxonomy."""

    cause: str
    item: EvidenceItem


@dataclass(frozen=True)
class Matter:
    """``flags``: what holds of the answer, and the names of its slots. ``kinds``: of each fact; none for one not to be said."""

    flags: frozenset[str]
    facts: tuple[Fact, ...]
    kinds: tuple[frozenset[str], ...]


def of_report(report: WhyReport, facts: Sequence[Fact] | None = None) -> Matter:
    """What may be said of ``report``. ``facts``: those that were read, in their order, else all that the report has; one that is
    not in the report may not be cited.
    """
    has = [Fact(finding.cause, item) for finding in report.findings for item in finding.evidence]
    own = has if facts is None else _in_report(facts, has)
    flags = {report.verdict, *slots(report), *_holds(report)}
    key = report.findings[0].cause if report.findings else ""
    costs = {finding.cause: cost_of(finding) for finding in report.findings[1 : 1 + MOST_OTHERS]}
    others = [other for other, cost in costs.items() if cost is not None and sayable(cost)]
    cost = cost_of(report.findings[0]) if report.findings else None
    return _matter(flags, own, key, others, there=[fact in has for fact in own], cost=cost)


def of_truth(
    verdict: Verdict,
    key: str,
    facts: Sequence[Fact],
    *,
    confidence: float,
    also: Collection[str] = (),
    others: Sequence[str] = (),
    cost: float | None = None,
) -> Matter:
    """What may be said where the truth is known and no report is there: the cause is ``key``. ``also``: slots and flags that the
    answer has beside those that every one has; ``others``: causes that are told beside it; ``cost``: ms that it took.
    """
    flags = {verdict, "request", "asked", "rests", *also}
    if verdict == "cause":
        flags |= {"called", "plain", "confidence", "fix", "next", band(confidence)}
    if verdict == "could_not_tell":
        flags.add("reason")
    return _matter(flags, facts, key, others, there=[True] * len(facts), cost=cost)


def slots(report: WhyReport) -> dict[str, str]:
    """What is filled in, by the slot's name; slots that the answer has nothing for are left out."""
    numbers = {
        "request": float(report.request),
        "over_slo": report.over_slo,
        "over_work": report.over_work,
        "over_load": report.over_load,
    }
    found = {name: number(value) for name, value in numbers.items() if value is not None and sayable(value)}
    found |= {"asked": METRICS[report.metric], "rests": TIERS[report.tier]}
    if report.value_ms is not None and sayable(report.value_ms):
        found["took"] = f"{number(report.value_ms)} ms"
    most = mostly(report.phases)
    if most and most[0] in PHASES:
        found["phase"] = PHASES[most[0]]
    if report.findings:
        found |= _of_finding(report.findings[0], ends=report.metric in ENDS)
    elif report.next_checks:
        found["missing"] = report.next_checks[0].rstrip(".")
    if report.verdict == "could_not_tell":
        found["reason"] = report.reason.rstrip(".")
    return found


def _of_finding(finding: Finding, *, ends: bool) -> dict[str, str]:
    about = cause(finding.cause)
    found = {
        "called": about.called,
        "plain": about.plain,
        "fix": about.fix.rstrip("."),
        "next": about.next_check.rstrip("."),
    }
    numbers = {"step": finding.step, "rank": finding.rank, "confidence": finding.confidence}
    found |= {name: number(value) for name, value in numbers.items() if value is not None and sayable(value)}
    if finding.operator and PLAIN_NAME.fullmatch(finding.operator):
        found["operator"] = finding.operator
    cost = cost_of(finding)
    if cost is not None and sayable(cost):
        found["cost"] = f"{number(cost)} ms"
    savings = {"saving": finding.saving_ms, "saving_low": finding.saving_low_ms, "saving_high": finding.saving_high_ms}
    if ends and finding.saving_ms:
        found |= {name: f"{number(each)} ms" for name, each in savings.items() if each is not None and sayable(each)}
    against = [(cause(key).called, why) for key, _, why in _split(finding.against) if key in causes() and why]
    for place, (called, why) in enumerate(against[:2], 1):
        found[f"against_{place}"] = f"{called} ({why})"
    if against:
        found |= {"other": against[0][0], "other_why": against[0][1]}
    return found


def _split(against: Sequence[str]) -> list[tuple[str, str, str]]:
    return [line.partition(": ") for line in against]


def _holds(report: WhyReport) -> set[str]:
    """Flags that are no slots."""
    flags: set[str] = set()
    if report.findings:
        flags.add(band(report.findings[0].confidence))
        flags |= {"similar"} if any(item.scope == SIMILAR for item in report.findings[0].evidence) else set()
        flags |= share_of(report)
    if most := mostly(report.phases):
        flags |= {"half"} if most[1] else set()
        flags |= {"dark"} if most[0] not in PHASES else set()
    return flags


def share_of(report: WhyReport) -> set[str]:
    """How large a part of the time asked for the first cause took, as one of SHARES; empty where that cannot be said."""
    cost = cost_of(report.findings[0])
    if cost is None or report.metric not in STRETCHES or not report.value_ms:
        return set()
    return share_word(cost / report.value_ms)


def share_word(share: float) -> set[str]:
    """The flag of a cost that is this share of a request's time; empty for one that is more than all of it."""
    return {next(name for name, least in SHARES.items() if share >= least)} if 0 <= share <= 1 else set()


def _in_report(facts: Sequence[Fact], has: Sequence[Fact]) -> list[Fact]:
    """``facts`` as they stand in the report, which also says where lines are; those that are not there as they are."""
    left = list(has)
    found: list[Fact] = []
    for fact in facts:
        same = next((other for other in left if _alike(fact, other)), None)
        if same is not None:
            left.remove(same)
        found.append(same or fact)
    return found


def _alike(one: Fact, other: Fact) -> bool:
    names = ("kind", "scope", "span", "name", "value", "normal", "unit")
    return one.cause == other.cause and all(getattr(one.item, name) == getattr(other.item, name) for name in names)


def _matter(
    flags: set[str],
    facts: Sequence[Fact],
    key: str,
    others: Sequence[str],
    *,
    there: Sequence[bool],
    cost: float | None,
) -> Matter:
    kinds: list[frozenset[str]] = []
    begun: set[str] = set()
    for fact, known in zip(facts, there, strict=True):
        kinds.append(_kinds(fact, key, others, first=fact.cause not in begun, cost=cost) if known else frozenset())
        begun |= {fact.cause} if known else set()
    return Matter(frozenset(flags), tuple(facts), tuple(kinds))


def _kinds(fact: Fact, key: str, others: Sequence[str], *, first: bool, cost: float | None) -> frozenset[str]:
    """``first``: it is the first fact of its cause, which says what that cost, or a part of it."""
    item = fact.item
    if fact.cause != key:
        return frozenset({"beside"}) if first and fact.cause in others else frozenset()
    told = set(_compared(item) or {"told"}) if clause(item) is not None else set[str]()
    if first:
        told.add(FIRST)
        whole = (
            item.unit == "ms" and item.value is not None and cost is not None and abs(item.value - cost) <= NEAR * cost
        )
        told |= {WHOLE} if whole else set()
    return frozenset(told)


def _compared(item: EvidenceItem) -> frozenset[str]:
    """How the value stands to what is usual: every comparison that is true."""
    if item.value is None or item.normal is None:
        return frozenset()
    value, normal = item.value, item.normal
    if value > MORE * normal:
        words = {"many": value > MANY * normal, "double": value > DOUBLE * normal, "more": True}
        return frozenset(word for word, true in words.items() if true)
    return frozenset({"same" if value >= SAME * normal else "less"})
