"""The answer of ``what-if``: the supposed durations as savings of steps, and what the request makes of these."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from teller_core.data.assessment import StepExpectations
from teller_core.data.capture import Capture
from teller_core.data.report import Metric
from teller_core.data.report_what_if import Gain, Neighbor, ScheduleCheck, WhatIfReport
from teller_core.data.table import UNKNOWN, Int64
from teller_core.data.unclaimed import why_unclaimed
from teller_core.errors import InputError, UnknownName
from teller_core.judge.reschedule.neighbors import Neighbor as Found
from teller_core.judge.reschedule.neighbors import slowed, slowed_by, weights
from teller_core.judge.reschedule.plan import Plan, Saving, plan, savings
from teller_core.store.store import Store
from teller_core.what_if.supposed import Supposed, supposed

NOTHING = "nothing that is supposed changes how long a step took"
NEIGHBORS = 5
"""Requests that are named on each side."""
MS = 1e6


class StepSavings(NamedTuple):
    """int64 ns a step of the capture: how much sooner it would have ended after the one before it, at ``least`` and at
    ``most``.
    """

    least: Int64
    most: Int64


def what_if(
    store: Store, request: str, texts: Sequence[str], *, capture: str | None = None, metric: Metric = "e2e"
) -> WhatIfReport:
    """How much sooner ``request`` would have ended, or have had its first token (``ttft``), had what ``texts`` name taken what
    they say: see :mod:`supposed`. All of it together. Raises TellerError.
    """
    if metric not in ("e2e", "ttft"):
        raise InputError(
            "the metric", "what would have been is told of the end and of the first token", "Use e2e or ttft"
        )
    said = supposed(texts)
    found, number = store.request_of(capture, request)
    tables = store.capture(found)
    numbers = store.rows(found, StepExpectations)
    saved, note = _with_spans(
        store, tables, request=number - 1, said=said, saved=_steps(tables, numbers, said), took=numbers.took
    )
    made = plan(tables)
    gains = savings(made, number - 1, saved.least, saved.most, "end" if metric == "e2e" else "first_token")
    by, whom = _neighbors(made, number - 1)
    note = "; ".join(filter(None, [note or ("" if saved.most.any() else NOTHING), *_doubts(store, found, number)]))
    return WhatIfReport(
        capture=found,
        request=number,
        metric=metric,
        value_ms=_value(store, found, number - 1, metric),
        supposed=[one.text for one in said],
        steps=int(((saved.most != 0) | (saved.least != 0)).sum()),
        same_schedule=_gain(gains.same_schedule, gains.why_not_same),
        rescheduled=_gain(gains.rescheduled, gains.why_not_new),
        check=_check(made, number - 1),
        slowed_by=by,
        slowed=whom,
        note=note,
    )


def _doubts(store: Store, capture: str, number: int) -> list[str]:
    """Which causes of the request would save what no prediction got right on real faults."""
    stored = store.answer(capture, number)
    causes = [finding.cause for finding in stored.findings] if stored is not None else []
    return [f"of {cause}: {why}" for cause in causes if (why := why_unclaimed(cause, "requests"))]


def _steps(tables: Capture, numbers: StepExpectations, said: Sequence[Supposed]) -> StepSavings:
    """What the steps named by ``said`` would have taken less."""
    saved = np.zeros(len(numbers.took), dtype=np.int64)
    known = (numbers.took != UNKNOWN) & (numbers.expected != UNKNOWN)
    excess = np.where(known, np.maximum(numbers.took - numbers.expected, 0), 0)
    for one in said:
        if one.kind == "steps":
            saved = excess.copy()
    for one in said:
        if one.kind == "step":
            at = _step(tables, one.target)
            if one.ns is not None and numbers.took[at] == UNKNOWN:
                raise InputError(
                    "the step", "how long it took is not known", "Take one that `slice` shows with its time"
                )
            saved[at] = excess[at] if one.ns is None else int(numbers.took[at]) - one.ns
    return StepSavings(saved, saved)


def _with_spans(
    store: Store, tables: Capture, *, request: int, said: Sequence[Supposed], saved: StepSavings, took: Int64
) -> tuple[StepSavings, str]:
    """``saved`` with what spans save in their steps, and what is not known of them. A step that is named itself takes what was
    said.
    """
    if not any(one.kind in ("span", "operator") for one in said):
        return saved, ""
    from teller_core.what_if.spans import (
        replayed,
    )  # replay is compiled: what is asked of steps alone pays nothing for it

    served = tables.participation
    own = np.unique(served.step[served.request == request]).astype(np.int64)
    found = replayed(store, tables, said, own, took)
    named = {_step(tables, one.target) for one in said if one.kind == "step"}
    least, most = saved.least.copy(), saved.most.copy()
    for step, (low, high) in found.saved.items():
        if step not in named:
            usual = int(most[step])
            least[step], most[step] = (max(usual, low), max(usual, high)) if usual else (low, high)
    return StepSavings(least, most), found.note()


def _step(tables: Capture, named: str) -> int:
    at, count = int(named), len(tables.steps.engine)
    if at >= count:
        has = f"the capture has the steps 0 to {count - 1}" if count else "the capture has no steps"
        raise UnknownName("the step", has, "Take one from an answer or a slice")
    return at


def _value(store: Store, capture: str, request: int, metric: Literal["e2e", "ttft"]) -> float | None:
    value = int(store.values(capture, metric)[request])
    return None if value == UNKNOWN else value / MS


def _gain(saving: Saving | None, why_not: str) -> Gain:
    if saving is None:
        return Gain(saving_ms=None, saving_low_ms=None, saving_high_ms=None, saving_assumes=why_not)
    low, high = saving.low / MS, saving.high / MS
    middle = (saving.low + saving.high) // 2 / MS
    return Gain(saving_ms=middle, saving_low_ms=low, saving_high_ms=high, saving_assumes=saving.assumes)


def _check(made: Plan, request: int) -> ScheduleCheck | None:
    found = made.checks.get(int(made.engine[request]))
    if found is None:
        return None
    shares = {name: round(value, 3) for name, value in found._asdict().items() if name != "why"}
    return ScheduleCheck(**shares) if np.isfinite(found.bias) else None


def _neighbors(made: Plan, request: int) -> tuple[list[Neighbor], list[Neighbor]]:
    setting = made.settings.get(int(made.engine[request]))
    if setting is None:
        return [], []
    weighed = weights(setting)
    sides = (slowed_by(setting, weighed, request), slowed(setting, weighed, request))
    return _told(sides[0]), _told(sides[1])


def _told(found: Sequence[Found]) -> list[Neighbor]:
    return [
        Neighbor(request=one.request + 1, beside_ms=one.beside / MS, before_ms=one.before / MS)
        for one in found[:NEIGHBORS]
    ]
