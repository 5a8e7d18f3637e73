"""Ours with the model that ships: what numbers and rules answer, made better by what it says of the same sheets."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np

from teller_core.context.linking import step_linked
from teller_core.judge.diagnose import judge as answer
from teller_core.judge.fusing import refined
from teller_core.judge.reschedule.findings import LEFT
from teller_core.lab.evaluation.method import Claim, Judged, Method, nothing
from teller_core.lab.evaluation.methods import model, ours
from teller_core.lab.evaluation.seen import Seen
from teller_core.model.judging import Model, opinions
from teller_core.sheets import request_sheets

Named = TypeVar("Named", str, int)


def judge(given: Model, seen: Seen) -> Judged:
    """What ``why --model`` would say of the requests that are asked about; of steps what the model says, and what it points at
    behind what numbers suspect.
    """
    steps, late = model.of_steps(given, seen), ours.late(seen)
    return replace(
        _answered(given, seen),
        step_score=steps.step_score,
        step_flag=steps.step_flag,
        operators=[_both(*each) for each in zip(ours.suspected(seen), steps.operators, strict=True)],
        ranks=[_both(*each) for each in zip(late, steps.ranks, strict=True)],
    )


def _answered(given: Model, seen: Seen) -> Judged:
    empty = nothing(seen.capture)
    causes, verdict, sure = [*empty.causes], [*empty.verdict], empty.sure.copy()
    asked = np.arange(len(verdict)) if seen.asked is None else np.flatnonzero(seen.asked)
    may = given.card.learned_at(seen.capture.tier)
    said = opinions(given, request_sheets(seen.case, asked.astype(np.int64))) if may else [None] * len(asked)
    case = replace(seen.case, link=partial(step_linked, seen.capture), measured={LEFT: 0})
    for request, opinion in zip(asked.tolist(), said, strict=True):
        rules = answer(case, request)
        report = rules if opinion is None else refined(case, request, rules, opinion)
        causes[request] = [Claim(finding.cause, finding.confidence) for finding in report.findings]
        verdict[request], sure[request] = report.verdict, report.confidence
    return replace(empty, causes=causes, verdict=verdict, sure=sure)


def _both(first: Sequence[Named], then: Sequence[Named]) -> list[Named]:
    """Each once, those of ``first`` first."""
    return list(dict.fromkeys([*first, *then]))


METHOD = Method(
    "fused",
    "numbers, rules and the model that ships, as `why --model` answers: weighed as its card says",
    model.loaded,
    judge,
    learns=False,
)
