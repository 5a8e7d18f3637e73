"""Ours as it answers people: numbers and rules; and each of the two without the other."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from teller_core.context.linking import step_linked
from teller_core.data.assessment import Assessment
from teller_core.data.capture import processes
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, UInt8, take
from teller_core.judge.anatomy import suspects
from teller_core.judge.around import UNUSUAL, unusual
from teller_core.judge.awaited import waited_for
from teller_core.judge.diagnose import judge as answer
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.reschedule.findings import LEFT
from teller_core.judge.rules_comm import kept
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import Claim, Judged, Method, Options, nothing
from teller_core.lab.evaluation.scoring import Scorer, method_of
from teller_core.lab.evaluation.seen import Seen


def _nothing_learned(episodes: Sequence[Episode], options: Options, seed: int) -> None:
    """What is normal is learned from each capture itself, and no rule from labels."""


def judge(fitted: Any, seen: Seen) -> Judged:
    """All that an import of the capture and ``why`` of each request would say, but what new batches would save: that decides
    nothing of what is named.
    """
    case = replace(seen.case, link=partial(step_linked, seen.capture), measured={LEFT: 0})
    return replace(
        _answered(seen, case),
        step_score=unusual(seen.case),
        step_flag=_slow(seen),
        operators=suspected(seen),
        ranks=late(seen),
    )


def _without_numbers(fitted: Any, seen: Seen) -> Judged:
    """The rules on a capture of which no expectation is known and no span is suspected."""
    case = prepare(seen.capture, bare(seen.assessment), partial(step_linked, seen.capture))
    return _answered(seen, replace(case, measured={LEFT: 0}))


def bare(numbers: Assessment) -> Assessment:
    """``numbers`` with what was measured and without what is expected."""
    steps, requests = numbers.steps, numbers.requests
    unknown, nan = np.full(len(steps.took), UNKNOWN, dtype=np.int64), np.full(len(steps.took), np.nan)
    none = np.empty(0, dtype=np.int64)
    asked = np.full(len(requests.value), UNKNOWN, dtype=np.int64)
    return replace(
        numbers,
        baselines=take(numbers.baselines, none),
        steps=replace(steps, expected=unknown, residual=nan, excess=unknown),
        candidates=take(numbers.candidates, none),
        requests=replace(requests, by_work=asked, by_load=asked, residual=np.full(len(asked), np.nan)),
    )


def _answered(seen: Seen, case: Case) -> Judged:
    """What :func:`judge.diagnose.diagnose_each` says of the requests that are asked about."""
    empty = nothing(seen.capture)
    causes, verdict, sure = [*empty.causes], [*empty.verdict], empty.sure.copy()
    for request in seen.requests_asked.tolist():
        report = answer(case, request)
        causes[request] = [Claim(finding.cause, finding.confidence) for finding in report.findings]
        verdict[request], sure[request] = report.verdict, report.confidence
    return replace(empty, causes=causes, verdict=verdict, sure=sure)


def _slow(seen: Seen) -> UInt8:
    """uint8: the steps around which the engine was slow."""
    return (np.nan_to_num(unusual(seen.case), nan=-np.inf) >= np.log(UNUSUAL)).astype(np.uint8)


def suspected(seen: Seen) -> list[list[str]]:
    """The names of each step's operators and collectives that took longer than in calm ones, then of its suspected spans."""
    found, few = seen.assessment.candidates, suspects(seen.case)
    names = [list(few.get(step, ())) for step in range(len(seen.case.begin))]
    for at in map(int, np.lexsort((-found.excess, found.step))):
        mine, name = names[int(found.step[at])], found.name[at]
        if name not in mine:
            mine.append(name)
    return names


def late(seen: Seen) -> list[list[int]]:
    """The ranks of each step: those that others waited for or that were kept from running, the longest first; then those whose
    spans are suspected. None where there is one alone.
    """
    capture, found = seen.capture, seen.assessment.candidates
    steps = len(seen.assessment.steps.took)
    if len(capture.ranks) <= 1:
        return [[] for _ in range(steps)]
    waited = waited_for(seen.case, kept(seen.case))
    cost = [{rank: int(ns[step]) for rank, ns in waited.items()} for step in range(steps)]
    spans: list[dict[int, int]] = [{} for _ in range(steps)]
    _add(spans, found.step, processes(capture.ranks)[found.rank], found.excess)
    return [list(dict.fromkeys([*_dearest(others), *_dearest(own)])) for others, own in zip(cost, spans, strict=True)]


def _add(cost: list[dict[int, int]], step: Int32, rank: Int32, ns: Int64) -> None:
    for at, who, much in zip(map(int, step), map(int, rank), map(int, ns), strict=True):
        cost[at][who] = cost[at].get(who, 0) + much


def _dearest(cost: dict[int, int]) -> list[int]:
    return sorted(cost, key=lambda who: (-cost[who], who))


def _unusual(model: Any, seen: Seen) -> Float64:
    return unusual(seen.case)


OURS = Method("ours", "numbers and rules, as an import and `why` answer", _nothing_learned, judge, learns=False)
RULES = Method(
    "rules", "our rules alone: nothing is expected, no span suspected", _nothing_learned, _without_numbers, learns=False
)
NUMBERS = method_of(
    Scorer(
        "numbers",
        "our numbers alone: the steps around each one against what their work predicts; causes by the learned map",
        _nothing_learned,
        _unusual,
        operators=lambda model, seen: suspected(seen),
        ranks=lambda model, seen: late(seen),
    )
)
