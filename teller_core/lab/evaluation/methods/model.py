"""The root-cause model that ships, alone: what it says of sheets of every step and request."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from teller_core.data.sheets import Kind, Sheets, View
from teller_core.data.table import Float64
from teller_core.lab.evaluation.episode import Episode
from teller_core.lab.evaluation.method import CANNOT, CAUSE, TYPICAL, Claim, Judged, Method, Options, nothing
from teller_core.lab.evaluation.seen import Seen
from teller_core.model.calibrating import ABNORMAL
from teller_core.model.classes import FIRST, key_of
from teller_core.model.judging import Model, judged, load
from teller_core.model.verdicts import Verdict, Verdicts
from teller_core.sheets import request_sheets, step_sheets

MOST_CAUSES = 5
"""Of a request: what is less likely than these is told by nobody."""
LEAST = 0.01
"""Of a cause, an operator or a rank, to be told at all."""
Named = TypeVar("Named", str, int)
WORDS = {Verdict.CAUSE: CAUSE, Verdict.CALM: TYPICAL, Verdict.UNTOLD: CANNOT}


def loaded(episodes: Sequence[Episode], options: Options, seed: int) -> Model:
    """It was trained before, on the training side; forks of this process share it, and have one thread each."""
    return load(threads=1)


def judge(model: Model, seen: Seen) -> Judged:
    """What the model says of the steps and requests that are asked about."""
    of_them, asked = of_steps(model, seen), seen.requests_asked
    if not len(asked):
        return of_them
    of_requests = judged(model, request_sheets(seen.case, asked))
    causes, verdict, certain = [*of_them.causes], [*of_them.verdict], of_them.sure.copy()
    certain[asked] = sure(of_requests)
    for at, request in enumerate(asked.tolist()):
        causes[request] = _claims(of_requests, at)
        verdict[request] = WORDS[Verdict(int(of_requests.verdict[at]))]
    return replace(of_them, causes=causes, verdict=verdict, sure=certain)


def of_steps(model: Model, seen: Seen) -> Judged:
    """What the model says of the steps that are asked about, and nothing of requests."""
    empty, asked = nothing(seen.capture), seen.steps_asked
    if not len(asked):
        return empty
    steps = step_sheets(seen.case, asked)
    return _of_steps(empty, steps, judged(model, steps))


def sure(said: Verdicts) -> Float64:
    """float64 a sheet, 0 to 1: of the verdict as a whole."""
    calm = 1.0 - said.abnormal
    found = np.where(
        said.verdict == Verdict.CAUSE, said.sure, np.where(said.verdict == Verdict.CALM, calm, said.abnormal)
    )
    return np.clip(found.astype(np.float64), 0.0, 1.0)


def _claims(said: Verdicts, at: int) -> list[Claim]:
    """The likeliest causes of a request that has one, the surest first."""
    if said.verdict[at] != Verdict.CAUSE:
        return []
    likely = said.likely[at]
    order = FIRST + np.argsort(-likely[FIRST:], kind="stable")[:MOST_CAUSES]
    return [Claim(key_of(int(each)), min(float(likely[each]), 1.0)) for each in order if likely[each] >= LEAST]


def _of_steps(empty: Judged, sheets: Sheets, said: Verdicts) -> Judged:
    """A step with two sheets is as suspicious as the more suspicious one; the one across ranks tells the rank."""
    score = np.full(len(empty.step_score), -np.inf)
    np.maximum.at(score, sheets.position, said.abnormal.astype(np.float64))
    operators = [list(names) for names in empty.operators]
    ranks = [list(each) for each in empty.ranks]
    for at in np.flatnonzero(sheets.kind == Kind.STEP).tolist():
        step = int(sheets.position[at])
        mine = sheets.of("together", at)
        ranks[step] = _best(sheets.together.rank[mine].tolist(), said.together[mine].tolist())
        if sheets.view[at] == View.VERTICAL or not operators[step]:
            operators[step] = _blamed(sheets, said, at)
    known = np.isfinite(score)
    return replace(
        empty,
        step_score=np.where(known, score, np.nan),
        step_flag=(known & (score >= ABNORMAL)).astype(np.uint8),
        operators=operators,
        ranks=ranks,
    )


def _blamed(sheets: Sheets, said: Verdicts, at: int) -> list[str]:
    """Names of a step's pieces and suspects, the likeliest to be to blame first."""
    pieces, suspects = sheets.of("pieces", at), sheets.of("suspects", at)
    names = [*sheets.pieces.name[pieces], *sheets.suspects.name[suspects]]
    return _best(names, [*said.pieces[pieces].tolist(), *said.suspects[suspects].tolist()])


def _best(names: Sequence[Named], likely: Sequence[float]) -> list[Named]:
    """Each name once, by what is likely of all that have it together."""
    total: dict[Named, float] = {}
    for name, each in zip(names, likely, strict=True):
        total[name] = total.get(name, 0.0) + each
    return sorted((name for name in total if total[name] >= LEAST), key=lambda name: -total[name])


METHOD = Method(
    "model",
    "the model that ships, alone: trained on the training side, as its card says",
    loaded,
    judge,
    learns=False,
    chances=True,
)
