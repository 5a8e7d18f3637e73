"""Answers as pages for a terminal, a page a kind of report."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from teller_core.data.losses import loss
from teller_core.data.report import (
    CaptureReport,
    CapturesReport,
    Cell,
    CompareReport,
    Finding,
    FormatsReport,
    IdentityReport,
    ImportReport,
    JoinReport,
    Model,
    Part,
    SliceReport,
    SlowReport,
    WhyReport,
)
from teller_core.data.report_fleet import FleetReport
from teller_core.data.report_learned import LearnReport
from teller_core.data.report_operators import OperatorReport
from teller_core.data.report_recording import DoctorReport, MergeReport
from teller_core.data.report_search import SearchReport
from teller_core.data.report_timeline import WrittenReport
from teller_core.data.report_tokens import TokensReport
from teller_core.data.report_what_if import WhatIfReport
from teller_core.tell.doctor_page import doctor_page
from teller_core.tell.facts import evidence, rescheduled, saving
from teller_core.tell.files_page import file_lines, ranks_of
from teller_core.tell.fleet_page import fleet_page
from teller_core.tell.layout import LONGEST_NAME, Style, bullets, many, milliseconds, plain, table, wrap
from teller_core.tell.learned_page import learned_page
from teller_core.tell.merge_page import merge_page
from teller_core.tell.next_calls import next_calls
from teller_core.tell.operator_page import operator_page
from teller_core.tell.search_page import search_page
from teller_core.tell.slice_page import slice_page
from teller_core.tell.slow_page import METRICS, slow_page
from teller_core.tell.tokens_page import tokens_page
from teller_core.tell.what_if_page import what_if_page

AS_IT_SHOULD_BE = ("control_file",)
"""What every recording of ours has: nothing is lost by it, and a page that said so each time would teach to skip the rest."""
VERDICTS = {
    "cause": "CAUSE FOUND",
    "normal": "NORMAL",
    "typical_here": "TYPICAL HERE",
    "could_not_tell": "COULD NOT TELL",
}
COLORS = {"cause": "31;1", "normal": "32;1", "typical_here": "32;1", "could_not_tell": "33;1"}
RANKS = 16
"""Ranks that a page about one request shows."""
STRETCHES = {
    "ttft": "Where the time to its first token went",
    "tpot": "Where the time after its first token went",
    "itl_max": "Where its longest gap went",
}


def page(report: Model, style: Style) -> str:
    """The page for ``report``. Raises KeyError for a kind of report that has none."""
    draw = PAGES[type(report)]
    return "\n".join(line.rstrip() for line in draw(report, style))


def _bars(title: str, parts: Sequence[Part], style: Style) -> list[str]:
    """Parts of a whole with their shares. Those without a source come last: their time is in what is unexplained."""
    known = [part for part in parts if part.ns is not None]
    whole = sum(part.ns or 0 for part in known)
    if not known:
        return []
    block = "\u2588" if style.unicode else "#"
    label = max(len(part.part) for part in parts)
    room = max(8, min(44, style.width - label - 26))
    lines = ["", style.head(f"{title} ({milliseconds(whole / 1e6)})")]
    for part in (part for part in known if part.ns):
        share = (part.ns or 0) / whole if whole else 0.0
        bar = block * round(share * room)
        name = part.part.replace("_", " ").ljust(label)
        lines.append(f"  {name}  {milliseconds((part.ns or 0) / 1e6):>12}  {share:4.0%}  {style.paint(bar, '36')}")
    if none := [part.part.replace("_", " ") for part in known if part.ns == 0]:
        lines += wrap(f"Nothing in: {', '.join(none)}", style, "  ")
    return [*lines, *_unseen(parts, label, style)]


def _unseen(parts: Sequence[Part], label: int, style: Style) -> list[str]:
    """The parts without a source: one a line with its reason, those of one reason together."""
    reasons: dict[str, list[str]] = {}
    for part in parts:
        if part.ns is None:
            reasons.setdefault(part.source, []).append(part.part.replace("_", " "))
    lines: list[str] = []
    for reason, names in reasons.items():
        if len(names) == 1:
            lines += wrap(f"not seen: {reason}", style, f"  {names[0].ljust(label)}  ")
        else:
            lines += wrap(f"Not seen: {', '.join(names)}: {reason}", style, "  ", "    ")
    return lines


def _why(report: WhyReport, style: Style) -> list[str]:
    who = f"Request {report.request}" + (f" ({plain(report.engine_id, 40)})" if report.engine_id else "")
    steps = f"{report.coverage.steps} steps"
    profiled = f"{report.coverage.profiled} of {steps} profiled" if report.coverage.steps else "its steps unknown"
    seen = f"tier T{report.tier}, {profiled}, mapping {report.coverage.mapping}, capture {report.capture[:12]}"
    # Without a promise there is nothing to hold it against: that is then the time from end to end.
    asked = "e2e" if report.metric == "slo" and report.over_slo is None else report.metric
    verdict = style.paint(VERDICTS[report.verdict], COLORS[report.verdict])
    ratios = [
        f"{ratio:.2f} x {what}"
        for ratio, what in (
            (report.over_slo, "its SLO"),
            (report.over_work, "what its work predicts"),
            (report.over_load, "what its load predicts"),
        )
        if ratio is not None
    ]
    lines = [
        style.head(_took(report, who, METRICS[asked])),
        verdict if report.verdict == "could_not_tell" else f"{verdict}  confidence {report.confidence:.2f}",
        *([] if not report.reason or report.reason in report.explanation else wrap(report.reason, style)),
        *map(style.dim, wrap(seen, style)),
        *([style.dim(line) for line in wrap(f"held against {report.reference}", style)] if report.reference else []),
        *map(style.dim, wrap(_judged(report), style)),
    ]
    if ratios:
        lines.append(", ".join(ratios))
    if report.explanation:
        lines += ["", *wrap(report.explanation, style)]
    lines += _bars(STRETCHES.get(report.metric, "Where the time went"), report.phases, style)
    lines += _bars("Inside all its steps, on the critical path", report.resources, style)
    lines += _ranks(report, style)
    for number, finding in enumerate(report.findings, 1):
        lines += _finding(number, finding, style)
    lines += _together(report, style)
    lines += bullets("Check next", report.next_checks, style)
    lines += bullets("Not seen", report.not_seen, style)
    return [*lines, "", style.dim(f"{_inside(report)} --capture {report.capture[:12]}")]


def _judged(report: WhyReport) -> str:
    """What the verdict comes from, where the model was asked."""
    if report.model:
        return f"judged by {report.judged_by}; model: {report.model}"
    return f"judged by {report.judged_by}" if "model" in report.judged_by else ""


def _inside(report: WhyReport) -> str:
    """Where to look next: into the step that is blamed, else into the request, or at its peers where no step of it is known."""
    step = report.findings[0].step if report.findings else None
    if step is not None:
        return f"Look inside: teller slice step {step}"
    if report.coverage.steps is not None:
        return f"Look inside: teller slice request {report.request}"
    return f"See its peers: teller slow --metric {report.metric}"


def _took(report: WhyReport, who: str, asked: str) -> str:
    took = f"not recorded, {asked}" if report.value_ms is None else f"{milliseconds(report.value_ms)} {asked}"
    return f"{who}: {took}" + (f", from {report.began}" if report.began else "")


def _finding(number: int, finding: Finding, style: Style) -> list[str]:
    where = [
        f"step {finding.step}" if finding.step is not None else "",
        f"rank {finding.rank}" if finding.rank is not None else "",
        plain(finding.operator, LONGEST_NAME) if finding.operator else "",
        f"{finding.layer} layer, {finding.view}",
    ]
    lines = [
        "",
        *map(style.head, wrap(finding.title, style, f"{number}. ")),
        *wrap(f"{finding.cause}, confidence {finding.confidence:.2f}, {', '.join(filter(None, where))}", style, "   "),
        *wrap(saving(finding), style, "   "),
        *wrap(rescheduled(finding), style, "   "),
    ]
    for item in finding.evidence:
        lines += wrap(evidence(item), style, "   - ")
    for text in finding.against:
        lines += wrap(text, style, "   not ", "       ")
    return [*lines, *wrap(finding.fix, style, "   Fix: ")] if finding.fix else lines


def _together(report: WhyReport, style: Style) -> list[str]:
    """What the end of several causes at once would save."""
    if report.together is None:
        return []
    both = report.together
    head = f"Without {', '.join(both.causes)}, all of them at once"
    told = [*wrap(saving(both), style, "   "), *wrap(rescheduled(both), style, "   ")]
    return ["", *map(style.head, wrap(head, style)), *told]


def _ranks(report: WhyReport, style: Style) -> list[str]:
    """The ranks in the collectives of its steps, or why they cannot be told apart."""
    if report.ranks is None:
        return []
    columns = [
        "rank",
        "position",
        "host",
        "collectives",
        "waited_ms",
        "waited_for_ms",
        "times_late",
        "transfer_ms",
        "missing",
    ]
    rows: list[list[Cell]] = [[getattr(share, name) for name in columns] for share in report.ranks[:RANKS]]
    left = len(report.ranks) - RANKS
    more = [style.dim(f"and {many(left, 'rank')} that were waited for less")] if left > 0 else []
    note = wrap(report.ranks_note, style) if report.ranks_note else []
    return ["", style.head("The ranks in the collectives of its steps"), "", *table(columns, rows, style), *more, *note]


def _capture(report: CaptureReport, style: Style) -> list[str]:
    known = " (already known)" if report.already_known else ""
    lines = [
        style.head(f"{report.id[:12]}  {plain(report.name, LONGEST_NAME)}{known}"),
        *wrap(", ".join(_holds(report)), style, "  "),
    ]
    lines += wrap(f"held against {plain(report.reference)} at import", style, "  ") if report.reference else []
    if report.identity is not None:
        lines += wrap(_identity(report.identity), style, "  ", "    ")
    lines += file_lines(report.files, style)
    for one in report.joined:
        lines += wrap(_joined(one), style, "  ", "    ")
    problems = {name: count for name, count in report.problems.items() if name not in AS_IT_SHOULD_BE}
    if problems:
        lines.append("  Lost, or not as it should be:")
        for name, count in problems.items():
            lines += wrap(f"{loss(name).words} ({count:,})", style, "    - ", "      ")
    for number, finding in enumerate(report.findings, 1):
        lines += _finding(number, finding, style)
    return lines


def _holds(report: CaptureReport) -> Iterator[str]:
    """What it holds; how its parts are tied together only where it has them."""
    yield plain(report.engine or "engine unknown")
    yield f"tier T{report.tier}"
    yield many(report.requests, "request")
    yield f"{many(report.steps, 'step')} (mapping {report.mapping})" if report.steps else "no steps"
    error = "unknown" if report.clock_error_ns is None else f"{report.clock_error_ns / 1e3:,.1f} us"
    yield f"{ranks_of(report)} (clock error {error})" if report.ranks else "no ranks"
    kernels, took = report.kernels, milliseconds(report.kernel_time_ns / 1e6)
    yield f"{many(kernels, 'kernel')} ({took})" if kernels else "no kernels"
    yield many(report.log_lines, "log line") if report.log_lines else "no log lines"
    if report.redactions:
        yield f"{many(report.redactions, 'redaction')} (prompts, keys or addresses taken out of them)"


def _identity(one: IdentityReport) -> str:
    left = sum(one.unchecked.values())
    more = f"; {many(left, 'request')} could not be asked" if left else ""
    return f"What was scheduled adds up for {one.holds:,} of {many(one.checked, 'request')}{more}"


def _joined(one: JoinReport) -> str:
    if one.kind == "execution_trace":
        shapes = (
            f"it tells what {one.used:,} of them were called with"
            if one.used
            else "all told themselves what they were called with"
        )
        return f"Execution trace: {one.matched:,} of its {many(one.of, 'operator')} found among the spans; {shapes}"
    graph = f"the graph {plain(one.name, LONGEST_NAME)}" if one.name else "a graph without a name"
    how = "" if one.by_name else ", told by their order alone"
    replays = many(one.launches, "replay")
    return (
        f"{one.matched:,} of {one.of:,} kernels in {replays} of {graph} have the operator they were captured under{how}"
    )


def _captures(report: ImportReport | CapturesReport, style: Style) -> list[str]:
    if not report.captures:
        return ["Nothing is imported yet. Start with: teller import PATH"]
    lines = [line for capture in report.captures for line in (*_capture(capture, style), "")]
    if isinstance(report, ImportReport):
        return [*lines[:-1], *_next_calls(report, style)]
    return [*lines, *wrap(report.note, style)] if report.note else lines[:-1]


def _next_calls(report: ImportReport, style: Style) -> list[str]:
    lines = ["", style.head("Ask next")]
    for call, why in next_calls(report.captures):
        lines += wrap(f"teller {call}  ({why})", style, "  ", "      ")
    return lines


def _formats(report: FormatsReport, style: Style) -> list[str]:
    lines = [style.head(f"What can be read: {many(len(report.formats), 'format')}, plain or packed (gzip, zstd)")]
    for known in report.formats:
        tier = "adds to others" if known.tier is None else f"T{known.tier}"
        tried = "" if known.tried else ", no real file of it was ever read"
        lines += ["", *map(style.head, wrap(f"{known.name} ({tier}{tried})", style))]
        lines += [*wrap(known.what, style, "  "), *wrap(known.files, style, "  files: ")]
    return lines


def _compare(report: CompareReport, style: Style) -> list[str]:
    before, after = (_brief(side) for side in (report.before, report.after))
    lines = [style.head(f"{report.kind.capitalize()}: {after} against {before}")]
    lines += ["", *wrap(report.explanation, style)] if report.explanation else []
    rows: list[list[Cell]] = [
        [d.what, d.layer, d.before, d.after, d.unit, d.ratio, d.low, d.high, "yes" if d.sure else "no"]
        for d in report.differences
    ]
    columns = ["what", "layer", "before", "after", "unit", "ratio", "low", "high", "sure"]
    lines += ["", *table(columns, rows, style)] if rows else []
    lines += ["", *wrap(report.note, style)] if report.note else []
    return [*lines, "", style.dim(f"Look further: teller {_further(report)}")]


def _further(report: CompareReport) -> str:
    capture, _, request = report.after.partition("/")
    verb = f"why {request}" if request else "slow"
    return f"{verb} --capture {capture[:12]}"


def _brief(side: str) -> str:
    """``CAPTURE/REQUEST`` or a capture's id, with the id cut to what tells it apart."""
    capture, slash, request = side.partition("/")
    return plain(f"{capture[:12]}{slash}{request}", 40)


def _written(report: WrittenReport, style: Style) -> list[str]:
    size = f"{report.bytes / 1000:,.0f} kB" if report.bytes >= 1000 else many(report.bytes, "byte")
    return wrap(f"{report.file}: {report.what}, {size}. Open it with {report.open_with}.", style)


PAGES: dict[type[Model], Callable[[Any, Style], list[str]]] = {
    ImportReport: _captures,
    CapturesReport: _captures,
    FormatsReport: _formats,
    SearchReport: search_page,
    SlowReport: slow_page,
    FleetReport: fleet_page,
    WhyReport: _why,
    SliceReport: slice_page,
    OperatorReport: operator_page,
    CompareReport: _compare,
    DoctorReport: doctor_page,
    MergeReport: merge_page,
    TokensReport: tokens_page,
    WhatIfReport: what_if_page,
    LearnReport: learned_page,
    WrittenReport: _written,
}
