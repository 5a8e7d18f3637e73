"""Ours with the model that ships: what numbers and rules answer, made better by what it says of the same sheets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from typing import TypeVar

from teller_core.context.linking import step_linked
from teller_core.data.report import WhyReport
from teller_core.data.table import Int64
from teller_core.judge.clues import MOST_KEPT
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
    for request, report in reports(given, seen):
        causes[request] = [Claim(finding.cause, finding.confidence) for finding in report.findings]
        verdict[request], sure[request] = report.verdict, report.confidence
    return replace(empty, causes=causes, verdict=verdict, sure=sure)


def reports(given: Model, seen: Seen) -> Iterator[tuple[int, WhyReport]]:
    """The answer to each request that is asked about, with its position."""
    link = partial(step_linked, seen.capture)
    case = replace(seen.case, link=link, measured={LEFT: 0})
    for asked in _parts(seen.requests_asked):
        said = opinions(given, request_sheets(seen.case, asked)) if given.card.learned_at(seen.capture.tier) else []
        # As refining has it: the opinion is weighed against what the sheet was written by.
        held = replace(seen.case, link=link, measured={**seen.case.measured, LEFT: 0})
        for request, opinion in zip_longest(asked.tolist(), said):
            rules = answer(case, request)
            yield request, rules if opinion is None else refined(held, request, rules, opinion)


def _parts(requests: Int64) -> Iterator[Int64]:
    """As many at a time as it is kept of what rules say of them."""
    for low in range(0, len(requests), MOST_KEPT):
        yield requests[low : low + MOST_KEPT]


def _both(first: Sequence[Named], then: Sequence[Named]) -> list[Named]:
    """Each once, those of ``first`` first."""
    return list(dict.fromkeys([*first, *then]))


METHOD = Method(
    "fused",
    "numbers, rules and the model that ships, as `why --model` answers: weighed as its card says",
    model.loaded,
    judge,
    learns=False,
    chances=True,
)
