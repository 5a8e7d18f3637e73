"""Answers made better by a second opinion: surer where it agrees, in doubt where it does not, and never without evidence."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from teller_core.data.causes import cause
from teller_core.data.opinion import Opinion, Pointed
from teller_core.data.pooling import FIRST, NONE, UNTOLD, Fusion, Weights
from teller_core.data.report import WhyReport
from teller_core.data.sheets import cause_ids
from teller_core.data.trace import Layer
from teller_core.judge.claims import heard
from teller_core.judge.diagnose import judge
from teller_core.judge.fusing import HEDGED, OVERRULED, UNDECIDED, refined
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.reschedule.findings import LEFT
from teller_core.judge.scene import scene
from teller_core.tell.explain import explain, unsupported
from tests.core.judge.serving import Ask, Trouble, serve

CROWD = [Ask(at * 60) for at in range(40)]
STRUCK, QUIET = 14, 2
GC, HANG = "host.gc_pause", "comm.collective_hang"
MEASURED = ("request", "value_ms", "over_work", "over_load", "phases", "resources", "tier", "coverage", "not_seen")


@cache
def crowd() -> Case:
    """Requests that come close together, of which some lived through half a second of long collections."""
    case = prepare(*serve(CROWD, [Trouble("gc", 800, 1300, 60)]))
    case.measured[LEFT] = 0
    return case


@cache
def apart() -> Case:
    """Requests one after the other, one of which lost to a collection what is too little to be told."""
    return prepare(*serve([Ask(at * 420.0) for at in range(16)], [Trouble("gc", 3460, 3465, 20)]))


def opinion(likely: dict[int | str, float], *, threshold: float = 0.4, step: int = -1, pointed: float = 0.0) -> Opinion:
    """One that holds these classes or causes for so likely, and all others for alike."""
    count = FIRST + len(cause_ids())
    given = {FIRST + cause_ids().index(key) if isinstance(key, str) else key: value for key, value in likely.items()}
    whole = np.full(count, (1.0 - sum(given.values())) / (count - len(given)))
    whole[list(given)] = list(given.values())
    suspect = Pointed("aten::mm", Layer.OPERATOR, 0, 7, 50_000_000, 5_000_000, pointed)
    return Opinion(
        likely=whole,
        abnormal=1.0 - float(whole[NONE]),
        known=np.ones(count, dtype=np.bool_),
        fusion=Fusion(Weights(), threshold),
        step=step,
        pointed=(suspect,) if pointed else (),
    )


def asked(request: int, likely: dict[int | str, float], case: Case | None = None, **more: float) -> WhyReport:
    case = case or crowd()
    return explain(refined(case, request, judge(case, request), opinion(likely, **more)))  # pyright: ignore[reportArgumentType]


def test_a_model_that_agrees_leaves_the_evidence_as_it_is_and_says_how_sure_both_are() -> None:
    rules, both = judge(crowd(), STRUCK), asked(STRUCK, {GC: 0.9})
    assert rules.findings[0].cause == both.findings[0].cause == GC and both.verdict == "cause"
    assert both.findings[0].evidence == rules.findings[0].evidence
    assert both.findings[0].saving_ms == rules.findings[0].saving_ms and both.together == rules.together
    assert both.judged_by == "numbers, rules and model" and rules.judged_by == "numbers and rules"
    assert both.confidence == both.findings[0].confidence > 0.9
    assert asked(STRUCK, {GC: 0.6, NONE: 0.3}).confidence < both.confidence
    assert "GC pause" in both.explanation and "62" not in both.reason.split(":")[0]


def test_a_claim_that_the_model_contradicts_is_not_told_and_stays_worth_a_look() -> None:
    both = asked(STRUCK, {NONE: 0.75, GC: 0.2})
    assert (both.verdict, both.reason, both.findings, both.together) == ("could_not_tell", OVERRULED, [], None)
    assert both.confidence == 0.0
    assert both.next_checks[0] == f"GC pause, which rules alone would name: {cause(GC).next_check}"
    assert OVERRULED in both.explanation


def test_what_the_model_alone_suspects_is_a_next_check_and_no_cause() -> None:
    assert judge(crowd(), QUIET).verdict == "typical_here"
    both = asked(QUIET, {HANG: 0.9, NONE: 0.05})
    assert (both.verdict, both.reason, both.findings) == ("could_not_tell", UNDECIDED, [])
    assert both.next_checks[0] == f"Collective hang, which the model alone suspects: {cause(HANG).next_check}"


def test_beside_a_cause_with_evidence_it_is_a_next_check_too() -> None:
    both = asked(STRUCK, {GC: 0.5, HANG: 0.45})
    assert both.verdict == "cause" and [finding.cause for finding in both.findings] == [GC]
    assert both.next_checks[0] == cause(GC).next_check and both.next_checks[1].startswith("Collective hang, which the")


def test_a_likelier_cause_without_evidence_leaves_the_one_with_it_untold() -> None:
    both = asked(STRUCK, {GC: 0.1, HANG: 0.85})
    assert both.verdict == "could_not_tell" and not both.findings
    assert [check.partition(",")[0] for check in both.next_checks[:2]] == ["Collective hang", "GC pause"]


def test_what_rules_heard_and_did_not_tell_is_told_with_a_hedge_where_the_model_is_sure_of_it() -> None:
    rules = judge(apart(), 8)
    assert not rules.findings
    [clue] = [clue for clue in heard(scene(apart(), 8, "e2e")) if clue.cause == GC]
    both = asked(8, {GC: 0.97}, apart())
    assert both.verdict == "cause" and both.findings[0].cause == GC
    assert both.findings[0].evidence == clue.evidence and both.confidence == HEDGED
    assert "Most likely" in both.explanation and not unsupported(both)


def test_of_a_calm_request_it_is_said_how_likely_that_is() -> None:
    both = asked(QUIET, {NONE: 0.9})
    assert both.verdict == "typical_here" and both.confidence == pytest.approx(0.9, abs=0.02) and not both.findings


def test_unusual_without_a_likely_cause_cannot_be_told() -> None:
    both = asked(QUIET, {UNTOLD: 0.8, NONE: 0.1})
    assert (both.verdict, both.reason) == ("could_not_tell", UNDECIDED)


def test_an_operator_that_the_model_points_at_comes_with_what_was_measured_of_it() -> None:
    step = judge(crowd(), STRUCK).findings[0].step
    assert step is not None
    sure = asked(STRUCK, {GC: 0.9}, step=step, pointed=0.8)
    assert (sure.findings[0].operator, sure.findings[0].layer) == ("aten::mm", "operator")
    item = sure.findings[0].evidence[-1]
    assert (item.span, item.value, item.normal, item.step) == ("0:7", 50.0, 5.0, step) and not unsupported(sure)
    assert asked(STRUCK, {GC: 0.9}, step=step, pointed=0.3).findings[0].operator is None
    assert asked(STRUCK, {GC: 0.9}, step=step + 1, pointed=0.8).findings[0].operator is None


@given(
    some.integers(0, 39),
    some.dictionaries(some.sampled_from([NONE, UNTOLD, *cause_ids()]), some.floats(0.05, 0.24), max_size=4),
    some.floats(0, 1),
)
@settings(max_examples=60, deadline=None)
def test_whatever_the_model_says_nothing_is_told_that_no_rule_found(
    request_at: int, likely: dict[int | str, float], threshold: float
) -> None:
    case, rules = crowd(), judge(crowd(), request_at)
    both = asked(request_at, likely, threshold=threshold)
    found = {clue.cause: clue.evidence for clue in heard(scene(case, request_at, "e2e"))}
    assert all(finding.evidence == found[finding.cause] for finding in both.findings)
    assert (both.verdict == "cause") == bool(both.findings) and 0.0 <= both.confidence <= 1.0
    assert all(0.0 <= finding.confidence <= 1.0 for finding in both.findings)
    assert all(getattr(both, name) == getattr(rules, name) for name in MEASURED)
    assert not unsupported(both)
