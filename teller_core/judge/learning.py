"""What is usual for a service, from captures of it in which all was well: minutes of one processor, and no network.

First what predicts steps and requests, what operators take and what counters do when all is calm, over all captures together;
then, with that, what rules still claim of requests of which all is well: a cause must cost more than it costs those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from teller_core.data.assessment import Assessment, Baselines
from teller_core.data.capture import Capture
from teller_core.data.learned import HealthyClaims, Learned, StepCosts, no_baselines
from teller_core.data.steps import Requests, Steps
from teller_core.data.table import UNKNOWN, Float64, take
from teller_core.judge.baseline import MIN_SPANS
from teller_core.judge.claims import claimed, heard
from teller_core.judge.expectations import over, step_model, took, watched
from teller_core.judge.front import front_levels
from teller_core.judge.learned import costs_of, step_costs_of
from teller_core.judge.levels import SLOW_LEVEL, TURNAROUND, counter_level
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.questions import ask
from teller_core.judge.request_load import METRICS, measured, request_costs, rest_of, work_known
from teller_core.judge.robust import NORMAL_MAD, weighted
from teller_core.judge.rules_scheduler import cache_levels
from teller_core.judge.scene import scene
from teller_core.judge.step_threads import thread_levels

LEAST_REQUESTS = 40
"""Fewer of them say too little of what one in a hundred loses."""
LEAST_STEPS = 50
"""Fewer steps of known work teach no costs that others are held against."""
SICK = 0.1
"""Of the requests of a capture in which all is well no more have a cause."""
MOST_JUDGED = 2_000
"""Requests of a capture of which it is asked what rules claim: more would say the same."""
MOST_PLACES = 20_000
"""Places of operators that are kept, those first that take most time."""
MOSTLY = 0.9
"""Of the requests of which all is well so many are not called slow: no more than that need be well."""
RARE = 0.99
"""Of the requests of which all is well: as much as a cause costs so many of them, it costs for no reason to be told."""


class Healthy(NamedTuple):
    """A capture in which all was well, and its numbers. Its trees are not needed."""

    capture: Capture
    numbers: Assessment


def learned_from(several: Sequence[Healthy], name: str, service: Mapping[str, str], learned_at: str) -> Learned:
    """What the captures of one service say is usual, without claims (see :func:`with_claims`)."""
    cases = [prepare(capture, replace(numbers, learned=None)) for capture, numbers in several]
    found = _step_costs([capture for capture, _ in several])
    rest = [rest_of(capture, numbers.steps) for capture, numbers in several]
    levels = [levels_of(case) for case in cases]
    return Learned(
        name=name,
        service=dict(service),
        learned_at=learned_at,
        captures=[capture.id for capture, _ in several],
        requests=sum(len(capture.requests.number) for capture, _ in several),
        steps=sum(int((numbers.steps.took != UNKNOWN).sum()) for _, numbers in several),
        step_costs=found,
        request_costs=_request_costs([capture for capture, _ in several]),
        rest=_middles(rest),
        operators=pooled([numbers.baselines for _, numbers in several]),
        levels=_middles(levels),
    )


def levels_of(case: Case) -> dict[str, float]:
    """What is usual in one capture, by name (see :mod:`levels`)."""
    gaps = [float(engine.turnaround) for engine in case.engines.values() if len(engine.step) > 1]
    counters = {counter_level(name): one.calm for name, one in case.counters.items()}
    between = {TURNAROUND: float(np.median(gaps))} if gaps else {}
    return between | counters | thread_levels(case) | front_levels(case) | cache_levels(case)


class Claimed(NamedTuple):
    """Of the requests that were ``asked`` about: by cause the shares of their time that it is claimed to have cost them; and how
    many times what is predicted each took, where that is known.
    """

    shares: Mapping[str, Sequence[float]]
    asked: int
    ratios: Sequence[float] = ()


def claims_on(case: Case) -> Claimed:
    """What rules claim of the requests of a capture."""
    found: dict[str, list[float]] = {}
    ratios: list[float] = []
    asked = 0
    many = len(case.capture.requests.number)
    for request in np.unique(np.linspace(0, many - 1, min(many, MOST_JUDGED)).astype(np.int64)).tolist():
        view, answers = scene(case, request, "e2e"), ask(case, request, "e2e", None)
        if not view.span:
            continue
        asked += 1
        ratios += [answers.worst] if np.isfinite(answers.worst) else []
        for clue in claimed(view, answers, heard(view)):
            found.setdefault(clue.cause, []).append(clue.ns / view.span)
    return Claimed(found, asked, ratios)


def with_claims(learned: Learned, several: Sequence[Claimed]) -> Learned:
    """``learned`` with what is claimed of requests of which all is well, and from when on one is slow: :func:`claims_on` of each
    capture.
    """
    asked = max(sum(each.asked for each in several), 1)
    ratios = np.array([ratio for each in several for ratio in each.ratios])
    slow = {SLOW_LEVEL: float(np.quantile(ratios, MOSTLY, method="higher"))} if len(ratios) >= LEAST_REQUESTS else {}
    shares: dict[str, list[float]] = {}
    for found in several:
        for key, each in found.shares.items():
            shares.setdefault(key, []).extend(each)
    names = sorted(shares)
    costs = [np.append(np.array(shares[key]), np.zeros(asked - len(shares[key]))) for key in names]
    return replace(
        learned,
        levels={**learned.levels, **slow},
        claims=HealthyClaims(
            names,
            np.array([len(shares[key]) / asked for key in names], np.float64),
            np.array([np.quantile(each, RARE, method="higher") for each in costs], np.float64),
        ),
    )


def _step_costs(captures: Sequence[Capture]) -> StepCosts | None:
    if not captures:
        return None
    taken = [took(capture.steps, over(capture)) for capture in captures]
    usable = [~watched(capture.steps, capture.pauses) for capture in captures]
    steps = _joined([capture.steps for capture in captures], Steps)
    model = step_model(steps, np.concatenate(taken), np.concatenate(usable))
    return None if model is None or model.costs.peers < LEAST_STEPS else step_costs_of(model)


def _request_costs(captures: Sequence[Capture]) -> dict[str, Any]:
    values = [measured(capture.requests, capture.tokens) for capture in captures]
    requests = _joined([capture.requests for capture in captures], Requests)
    found: dict[str, Any] = {}
    for metric in METRICS:
        used = [*work_known(requests, metric)]
        costs = request_costs(requests, np.concatenate([each[metric] for each in values]), used)
        if costs is not None and costs.peers >= LEAST_REQUESTS:
            found[metric] = costs_of(costs, used)
    return found


def _joined(tables: Sequence[Any], kind: type[Any]) -> Any:
    """Tables of several captures as one. Requests keep their numbers: nobody is called by them here."""
    made: dict[str, Any] = {}
    for name in (each.name for each in fields(kind)):
        parts = [getattr(table, name) for table in tables]
        texts = not isinstance(parts[0], np.ndarray)
        made[name] = [cell for part in parts for cell in part] if texts else np.concatenate(parts)
    return kind(**made)


def _middles(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By name the median over the captures that know it."""
    names = dict.fromkeys(name for each in several for name in each)
    return {name: float(np.median([each[name] for each in several if name in each])) for name in names}


def pooled(tables: Sequence[Baselines]) -> Baselines:
    """The baselines of several captures as one: of each place the middle of their middles by their calls, at the tokens of the
    capture with most calls of it. What all captures together called too seldom is left out.
    """
    rows: dict[tuple[str, str, str, int], list[tuple[int, int]]] = {}
    for at, table in enumerate(tables):
        for row, key in enumerate(zip(table.name, table.place, table.phase, table.layer.tolist(), strict=True)):
            rows.setdefault(key, []).append((at, row))
    chosen = [found for found in rows.values() if sum(int(tables[at].count[row]) for at, row in found) >= MIN_SPANS]
    if not chosen:
        return no_baselines()
    made = _joined([_one([take(tables[at], np.array([row])) for at, row in found]) for found in chosen], Baselines)
    order = np.argsort(-made.total, kind="stable")[:MOST_PLACES]
    return take(made, np.sort(order))


def _one(several: Sequence[Baselines]) -> Baselines:
    """One place in several captures, a row each, as one row."""
    table = _joined(several, Baselines)
    if len(table.count) == 1:
        return table
    weight = table.count.astype(np.float64)
    most = int(np.argmax(table.count))
    level = _at_pivot(table, most)
    middle = weighted(level, weight, 0.5)
    apart = weighted(np.abs(level - middle), weight, 0.5) * NORMAL_MAD
    within = float((table.spread * weight).sum() / weight.sum())
    one = take(table, np.array([most]))
    return replace(
        one,
        count=np.array([table.count.sum()], np.int32),
        median=np.array([round(float(np.exp(middle)))], np.int64),
        spread=np.array([np.hypot(within, apart)]),
        total=np.array([table.total.sum()], np.int64),
    )


def _at_pivot(table: Baselines, most: int) -> Float64:
    """float64 a row: its log median at the tokens of row ``most``, as its own slope has it, else that one's."""
    slope = np.where(np.isnan(table.slope), table.slope[most], table.slope)
    moved = slope * (table.pivot[most] - table.pivot)
    return np.log(np.maximum(table.median, 1)) + np.nan_to_num(moved)
