"""A verdict in words: two to five plain sentences whose every name and number stands in the report.

Nothing is used but the report and the taxonomy. Text that came out of a trace or a log never gets in, save the name of an
operator that looks like one.
"""

from collections.abc import Iterator

from teller_core.data.causes import cause
from teller_core.data.report import EvidenceItem, Finding, WhyReport
from teller_core.data.said import (
    COUNTED,
    HEDGES,
    METRICS,
    PHASES,
    PLAIN_NAME,
    TIERS,
    band,
    capital,
    cost_of,
    mostly,
    number,
)
from teller_core.data.said import unsupported as unsupported_in

MOST_CHECKS = 4
MOST_MISSING = 2
"""Things to record that are named: the next ones."""
COARSE = "its times more finely than in whole seconds"
"""How a report says that its times are those of a coarse log."""
OF_ENGINE = frozenset({"front_end", "queue", "own_prefill", "decode"})
"""Phases that only the engine's own word on the request, or its steps, tell."""
UNCOUNTED = ("waiting for", "pauses of")
"""How a report's words for what nobody counted or noted about processes begin."""
SCHEDULER = 3
"""The tier of recorded decisions."""


def explain(report: WhyReport) -> WhyReport:
    """``report`` with its explanation and next checks; those that it has already stay, behind those of its findings."""
    return report.model_copy(update={"explanation": " ".join(_sentences(report)), "next_checks": _checks(report)})


def unsupported(report: WhyReport) -> list[str]:
    """Numbers and quoted names of the explanation that stand in no structured field of the report: empty for a sound one."""
    return unsupported_in(report.explanation, report)


def _sentences(report: WhyReport) -> list[str]:
    said = [_what(report)]
    if report.findings:
        first = report.findings[0]
        said += [_why(first), _sure(report, first)]
        said += _not(first)
        said += _beside(report.findings[1:])
    else:
        said += [_reason(report), *_mostly(report)]
        said.append(f"This rests on {TIERS[report.tier]}.")
    return said


def _what(report: WhyReport) -> str:
    if report.value_ms is None:
        return f"How long request {report.request} took {METRICS[report.metric]} is not known."
    over = [
        f"{number(ratio)} times {what}"
        for ratio, what in (
            (report.over_slo, "its limit"),
            (report.over_work, "what its work predicts"),
            (report.over_load, "what its load predicts"),
        )
        if ratio is not None
    ]
    tail = f", {' and '.join(over)}" if over else ""
    return f"Request {report.request} took {number(report.value_ms)} ms {METRICS[report.metric]}{tail}."


def _why(finding: Finding) -> str:
    rest = finding.evidence[1:]
    where: list[str] = []
    if finding.operator and PLAIN_NAME.fullmatch(finding.operator):
        where.append(f"in the operator `{finding.operator}`")
    if finding.step is not None:
        where.append(f"most at step {finding.step}")
    if finding.rank is not None:
        where.append(f"on rank {finding.rank}")
    details = [_detail(item) for item in rest if item.value is not None and item.name]
    about = ", ".join([f"{_named(finding)}{_in_all(finding)}: {_measured(finding.evidence[0])}", *where])
    return f"{about} ({'; '.join(details[:3])})." if details else f"{about}."


def _named(finding: Finding) -> str:
    """The cause, in words for everybody and in those of the trade, as sure as it is."""
    about = cause(finding.cause)
    return capital(f"{HEDGES[band(finding.confidence)]}{about.plain} ({about.called})")


def _in_all(finding: Finding) -> str:
    """What it cost, where the first fact says something else."""
    cost = cost_of(finding)
    return "" if cost in (None, finding.evidence[0].value) else f", which cost it {number(cost or 0)} ms"


def _measured(item: EvidenceItem) -> str:
    return f"{item.name}, {number(item.value or 0)} {item.unit}"


def _detail(item: EvidenceItem) -> str:
    name = "one of its spans" if item.kind == "span" and item.span else item.name
    usual = f" where {number(item.normal)} {item.unit} is usual" if item.normal is not None else ""
    unit = "" if item.unit in COUNTED else f" {item.unit}"
    return f"{name}: {number(item.value or 0)}{unit}{usual}"


def _sure(report: WhyReport, finding: Finding) -> str:
    similar = any(item.scope == "similar_steps" for item in finding.evidence)
    beside = ", part of it from similar steps" if similar else ""
    return f"Confidence {number(finding.confidence)}, resting on {TIERS[report.tier]}{beside}."


def _not(finding: Finding) -> list[str]:
    """The look-alikes that something speaks against."""
    said = [line.partition(": ") for line in finding.against[:2]]
    if not said:
        return []
    parts = [f"{cause(key).called} ({why})" for key, _, why in said]
    return [f"It does not look like {' or '.join(parts)}."]


def _beside(others: list[Finding]) -> list[str]:
    if not others:
        return []
    return [
        f"Beside it: {'; '.join(f'{cause(one.cause).called} ({_measured(one.evidence[0])})' for one in others[:2])}."
    ]


def _reason(report: WhyReport) -> str:
    match report.verdict:
        case "typical_here":
            return "That is no slower than its peers in this capture, which may all be slow."
        case "normal":
            return "That is what the reference says it should take."
        case _:
            return f"Why cannot be told, {report.reason}."


def _mostly(report: WhyReport) -> list[str]:
    most = mostly(report.phases)
    if most is None:
        return []
    part, half = most
    if part not in PHASES:
        return ["Where most of its time went was not recorded."]
    return [
        f"Most of its time went {PHASES[part]}." if half else f"More of its time went {PHASES[part]} than elsewhere."
    ]


def _checks(report: WhyReport) -> list[str]:
    checks = [cause(finding.cause).next_check for finding in report.findings] + report.next_checks
    if report.value_ms is None:
        checks.append("Record when requests begin and end: request spans, or a caller's records")
    if report.verdict == "could_not_tell":
        checks += list(_missing(report))[:MOST_MISSING]
    if report.verdict == "typical_here":
        checks.append("Compare with a capture of better times, or with the service's limits: its peers may all be slow")
    return list(dict.fromkeys(checks))[:MOST_CHECKS]


def _missing(report: WhyReport) -> Iterator[str]:
    """What to record for a better answer, the cheapest first: each rung of this ladder is a tier and costs more than the last."""
    told = {part.part for part in report.phases if part.ns is not None}
    steps = report.coverage.mapping != "unknown"
    if COARSE in report.not_seen:
        yield "Let the engine's log have milliseconds: a format of its own (vLLM: VLLM_LOGGING_CONFIG_PATH)"
    if not steps and not told & OF_ENGINE:
        yield "Add the engine's log with its requests' ids, or its request spans: an id that every hop passes on joins them"
    if not steps:
        yield "Let the engine log a line a step (vLLM: --enable-logging-iteration-details)"
    if report.tier < SCHEDULER:
        yield "Record what its scheduler decides and when its processes stand still: TELLER's recorder"
    elif counters := [what for what in report.not_seen if what.startswith(UNCOUNTED)]:
        yield f"Record what was not seen: {'; '.join(counters)}"
    if report.coverage.profiled == 0:
        yield "Profile some of its steps, once the above do not say why: operators and kernels"
    elif report.not_seen:
        yield f"Record what was not seen: {'; '.join(report.not_seen[:3])}"
