"""An answer made better by a second opinion: that of a model which has read the request's sheet.

How likely each cause is follows from both (:mod:`teller_core.data.pooling`). Evidence is never made up: a cause is named only
where its rule found something, whatever the model says; what the model alone suspects becomes something to check next.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.causes import cause
from teller_core.data.opinion import Opinion, Pointed
from teller_core.data.pooling import FIRST, NONE, chosen, evident, one, pooled
from teller_core.data.report import EvidenceItem, Finding, Together, WhyReport
from teller_core.data.said import SURE, capital
from teller_core.data.sheets import cause_ids
from teller_core.data.table import Float64, Int64, Mask
from teller_core.data.trace import Layer
from teller_core.judge.clues import clues_of
from teller_core.judge.diagnose import finding_of, plain_ms, verdict_of
from teller_core.judge.evidence import Clue, cost
from teller_core.judge.prepare import Case
from teller_core.judge.questions import Answers, ask
from teller_core.judge.rules import SAYS_WHY
from teller_core.judge.savings import by_saving, together
from teller_core.judge.scene import Scene, scene

TOGETHER = "numbers, rules and model"
LEAST = 0.05
"""A cause that rules would not tell is told beside another one from here on."""
HEDGED = SURE - 0.01
"""A cause that rules alone would not tell is told no more surely than this: it does not sound certain."""
SUSPECTED = 0.15
"""What is at least so likely and is not told is worth a look."""
MOST_SUSPECTED = 2
POINTED = 0.5
"""An operator is blamed that is at least so likely to be the one."""
UNDECIDED = "because what was recorded of it is unusual, and nothing tells surely enough why"
OVERRULED = "because what rules would name and what the model holds for likely do not agree"


class _Seen(NamedTuple):
    """A request with both opinions. ``found``: clues by cause; ``told``: causes that rules would tell; ``may`` bool [causes]."""

    view: Scene
    answers: Answers
    opinion: Opinion
    found: Mapping[str, Clue]
    told: frozenset[str]
    may: Mask
    likely: Float64


def refined(case: Case, request: int, report: WhyReport, opinion: Opinion, slo_ns: int | None = None) -> WhyReport:
    """``report``, which numbers and rules gave for the request at position ``request``, with the model's ``opinion`` taken into
    account; the explanation is left empty. What was measured stays as it is.
    """
    seen = _seen(case, request, report, opinion, slo_ns)
    said = int(chosen(seen.likely[None], seen.may[None], opinion.fusion.threshold)[0])
    changed = _named(seen, said, report) if said >= FIRST else _unnamed(seen, report, calm=said == NONE)
    return changed.model_copy(update={"judged_by": TOGETHER, "model": "", "explanation": ""})


def _seen(case: Case, request: int, report: WhyReport, opinion: Opinion, slo_ns: int | None) -> _Seen:
    view, answers = scene(case, request, report.metric), ask(case, request, report.metric, slo_ns)
    clues = clues_of(view, answers)
    found = {clue.cause: clue for clue in clues.found}
    tiers = np.array([cause(key).tier <= case.capture.tier for key in cause_ids()])
    may = evident(clues.number[None])[0] & tiers
    likely = pooled(one(clues.number, opinion.likely, opinion.abnormal, opinion.known), opinion.fusion.weights)[0]
    had = {finding.cause for finding in report.findings}
    told = had | {key for key, number in zip(cause_ids(), clues.number.tolist(), strict=True) if number[2] > 0}
    may |= np.array([key in had for key in cause_ids()])  # found while more was at hand
    return _Seen(view, answers, opinion, found, frozenset(told), may, likely)


def _named(seen: _Seen, said: int, report: WhyReport) -> WhyReport:
    best = cause_ids()[said - FIRST]
    others = [key for key in _order(seen) if key != best and _beside(seen, best, key)]
    findings, both = _findings(seen, [best, *others], report)
    findings[0] = _with_operator(seen, findings[0])
    first = findings[0]
    reason = first.title if first.cost_ms is None else f"{first.title}: {plain_ms(first.cost_ms)} ms of it"
    change = {"verdict": "cause", "reason": reason, "confidence": first.confidence, "findings": findings}
    checks = _checks(seen, {finding.cause for finding in findings})
    return report.model_copy(update={**change, "together": both, "next_checks": checks})


def _beside(seen: _Seen, best: str, key: str) -> bool:
    """Whether ``key`` is told beside the cause ``best``: rules tell it, or it is likely and not what that brings about."""
    if key in seen.told:
        return bool(seen.may[_class(key) - FIRST])
    likely = seen.likely[_class(key)] >= LEAST and key not in SAYS_WHY.get(best, ())
    return bool(likely and seen.may[_class(key) - FIRST])


def _findings(seen: _Seen, keys: Sequence[str], report: WhyReport) -> tuple[list[Finding], Together | None]:
    """One finding a cause of ``keys``, as sure as both opinions make it, and what the end of all would save."""
    had = {finding.cause: finding for finding in report.findings}
    clues = [seen.found[key] for key in keys if key in seen.found]
    found = [] if all(key in had for key in keys) else by_saving(seen.view, clues, report)
    saved = {clue.cause: said for clue, said in found}
    made = [had.get(key) or finding_of(seen.view, seen.found[key], clues, saved[key]) for key in keys]
    both = together(seen.view, found, None) if found else report.together
    return [one.model_copy(update={"confidence": _sure(seen, one.cause)}) for one in made], both


def _sure(seen: _Seen, key: str) -> float:
    likely = float(seen.likely[_class(key)])
    return round(likely if key in seen.told else min(likely, HEDGED), 2)


def _with_operator(seen: _Seen, finding: Finding) -> Finding:
    """``finding`` with the operator that the model points at, where that is of the step to blame and rules name none."""
    opinion = seen.opinion
    best = opinion.pointed[0] if opinion.pointed else None
    if best is None or best.likely < POINTED or not 0 <= best.normal < best.value:
        return finding
    if finding.operator is not None or finding.view != "vertical" or finding.step not in (None, opinion.step):
        return finding
    where = {"operator": best.name, "step": opinion.step, "layer": Layer(best.layer).name.lower()}
    return finding.model_copy(update={**where, "evidence": [*finding.evidence, _span(best, opinion.step)]})


def _span(one: Pointed, step: int) -> EvidenceItem:
    """What was measured of a suspect."""
    item = cost("all its calls in the step", one.value, one.normal, kind="span", scope="its_steps")
    called = {"name": one.name, "span": f"{one.rank}:{one.row}"} if one.row >= 0 else {}
    return item.model_copy(update={"step": step, **called})


def _unnamed(seen: _Seen, report: WhyReport, *, calm: bool) -> WhyReport:
    said = verdict_of(seen.view, seen.answers, [])
    verdict, reason, sure = said.verdict, said.reason, round(float(seen.likely[NONE]), 2)
    if verdict == "could_not_tell":
        reason, sure = OVERRULED if report.findings and seen.answers.slow else reason, 0.0
    elif not calm:
        verdict, reason, sure = "could_not_tell", UNDECIDED, 0.0
    change = {"verdict": verdict, "reason": reason, "confidence": sure, "together": None}
    nothing: list[Finding] = []
    return report.model_copy(update={**change, "findings": nothing, "next_checks": _checks(seen, set())})


def _checks(seen: _Seen, told: Collection[str]) -> list[str]:
    """What is likely enough to be looked at and is not told, the likeliest first."""
    left = [key for key in _order(seen) if key not in told and seen.likely[_class(key)] >= SUSPECTED]
    by = {True: "which rules alone would name", False: "which the model alone suspects"}
    return [
        capital(f"{cause(key).called}, {by[key in seen.told]}: {cause(key).next_check}")
        for key in left[:MOST_SUSPECTED]
    ]


def _order(seen: _Seen) -> list[str]:
    """The causes, the likeliest first."""
    order: Int64 = np.argsort(-seen.likely[FIRST:], kind="stable")
    return [cause_ids()[at] for at in order.tolist()]


def _class(key: str) -> int:
    return FIRST + cause_ids().index(key)
