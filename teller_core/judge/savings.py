"""What the end of each cause would save, and that of all of them at once: in a request's own steps, and with new batches."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from teller_core.data.report import Together, WhyReport
from teller_core.data.table import Int32, Int64
from teller_core.data.unclaimed import Whose, why_unclaimed
from teller_core.judge.evidence import Clue, ms
from teller_core.judge.overtime import Overtime, overtime
from teller_core.judge.replay.steps import ELSEWHERE, NO_CLAIM, NO_PROFILE, OWN_STEPS, StepSavings, step_savings
from teller_core.judge.reschedule.findings import Anew, anew, simulations_left
from teller_core.judge.scene import Scene

UNSEEN = frozenset({ELSEWHERE, NO_CLAIM, NO_PROFILE})
"""Why replay says nothing where no profile could tell it more."""


class Saved(NamedTuple):
    """What is said of the end of one or several causes, in ms; None where nothing is claimed, and ``assumes`` says why."""

    middle: float | None
    low: float | None
    high: float | None
    assumes: str
    anew: Anew


def by_saving(view: Scene, clues: list[Clue], earlier: WhyReport | None) -> list[tuple[Clue, Saved]]:
    """The clues with what their end would save, most first: where steps were re-timed, a cause counts by the part of what it took
    that its end saves. Where the spans are not at hand, what was said of the same time ``earlier`` holds.
    """
    ranked: list[tuple[float, Clue, Saved]] = []
    for clue in clues:
        found = step_savings(view, [clue])
        weight = float(clue.ns)
        if len(found.step) and found.removed.sum() > 0:
            weight *= min(float(found.middle.sum() / found.removed.sum()), 1.0)
        ranked.append((weight, clue, _earlier(view, clue, earlier) or _saved(view, [clue], clues, found)))
    ranked.sort(key=lambda one: -one[0])
    return [(clue, said) for _, clue, said in ranked]


def together(view: Scene, found: Sequence[tuple[Clue, Saved]], earlier: WhyReport | None) -> Together | None:
    """What the end of all causes would save of which one by itself saves something; None for fewer than two of them."""
    if earlier is not None and earlier.together is not None and _alike(view, earlier):
        return earlier.together
    clues = [clue for clue, said in found if said.middle is not None]
    if len(clues) < 2:
        return None
    said = _saved(view, clues, [clue for clue, _ in found], step_savings(view, clues))
    return Together(
        causes=[clue.cause for clue in clues],
        saving_ms=said.middle,
        saving_low_ms=said.low,
        saving_high_ms=said.high,
        saving_assumes=said.assumes,
        rescheduled_ms=said.anew.middle,
        rescheduled_low_ms=said.anew.low,
        rescheduled_high_ms=said.anew.high,
        rescheduled_assumes=said.anew.assumes,
    )


def _earlier(view: Scene, clue: Clue, earlier: WhyReport | None) -> Saved | None:
    """What an answer said of the same time that was made while the trees were at hand."""
    for said in earlier.findings if earlier is not None and _alike(view, earlier) else ():
        if said.cause == clue.cause:
            new = Anew(said.rescheduled_ms, said.rescheduled_low_ms, said.rescheduled_high_ms, said.rescheduled_assumes)
            return Saved(said.saving_ms, said.saving_low_ms, said.saving_high_ms, said.saving_assumes, new)
    return None


def _alike(view: Scene, earlier: WhyReport) -> bool:
    """Whether it is of the same time, and was held against the same: what a step would take without a cause depends on both."""
    return view.metric in ("e2e", "slo") and earlier.reference == view.case.assessment.reference


def _saved(view: Scene, clues: Sequence[Clue], named: Sequence[Clue], retimed: StepSavings) -> Saved:
    """By what was ``retimed``, and in other steps by what they took beyond their work: all that is ``named`` has a part of it."""
    more = _why_not(clues, "steps") or overtime(view, clues, named)
    if _why_not(clues, "profiled") or (isinstance(more, Overtime) and _why_not(clues, "work_first")):
        retimed = step_savings(view, [])
    if isinstance(more, str) and not len(retimed.step):
        return _nothing(more if retimed.assumes in UNSEEN else retimed.assumes)
    life = view.life
    own = np.unique(life.step[(life.start >= view.low) & (life.start < view.high)])
    low, middle, high = (ms(min(float(column.sum()), view.span)) for column in _of(own, retimed, more))
    return Saved(
        middle, low, high, _assumes(retimed, len(own), isinstance(more, Overtime)), _anew(view, clues, retimed, more)
    )


def _of(step: Int32 | Int64, retimed: StepSavings, more: Overtime | str) -> tuple[Int64, Int64, Int64]:
    """int64 ns each ``step`` (in order) saves: by what was ``retimed``, else by what it took beyond its work; with bounds."""
    zero = np.zeros((3, len(step)), dtype=np.int64)
    low, middle, high = more.of(step) if isinstance(more, Overtime) else (zero[0], zero[1], zero[2])
    place = np.searchsorted(step, retimed.step)
    for column, told in zip((low, middle, high), (retimed.low, retimed.middle, retimed.high), strict=True):
        column[place] = told
    return low, middle, high


def _anew(view: Scene, clues: Sequence[Clue], retimed: StepSavings, more: Overtime | str) -> Anew:
    """With new batches, without the causes in all steps of the engine: others are spared as well."""
    if why := _why_not(clues, "requests"):
        return Anew(None, None, None, why)
    life, step = view.life, retimed.step
    if isinstance(more, Overtime):
        step = np.sort(life.engine.step) if life.engine and simulations_left(view.case) else np.unique(life.step)
    low, middle, high = _of(step, retimed, more)
    return anew(view.case, view.life.request, view.metric, step=step, low=low, middle=middle, high=high)


def _why_not(clues: Sequence[Clue], whose: Whose) -> str:
    """Why a saving of all of ``clues`` is not claimed; empty where one is."""
    return next(filter(None, (why_unclaimed(clue.cause, whose) for clue in clues)), "")


def _assumes(retimed: StepSavings, own: int, modeled: bool) -> str:
    told = [OWN_STEPS]
    if len(retimed.step):
        told.append(f"re-timed: {len(retimed.step)} of its {own} steps, with what it took there as usual")
    if modeled and own > len(retimed.step):
        told.append(f"{own - len(retimed.step)} without what it took of them beyond what their work predicts")
    return "; ".join(told)


def _nothing(why: str) -> Saved:
    return Saved(None, None, None, why, Anew(None, None, None, ""))
