"""What is usual for a service, from captures of it in which all was well: minutes of one processor, and no network.

First what predicts steps and requests, what operators take and what counters do when all is calm, over all captures together;
then what rules still claim of requests of which all is well, each held against what others taught: a cause must cost more than it
costs those.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from teller_core.data.assessment import Assessment
from teller_core.data.capture import Capture
from teller_core.data.learned import Costs, HealthyClaims, Learned, StepCosts, no_claims
from teller_core.data.report import Metric
from teller_core.data.steps import Requests, Steps
from teller_core.data.table import UNKNOWN, Mask
from teller_core.judge.claims import claimed, heard
from teller_core.judge.expectations import over, step_model, took, watched
from teller_core.judge.front import front_levels
from teller_core.judge.learned import costs_of, step_costs_of
from teller_core.judge.levels import TURNAROUND, counter_level, slow_level
from teller_core.judge.pooling import joined, pooled
from teller_core.judge.prepare import Case, prepare
from teller_core.judge.questions import ask
from teller_core.judge.regress import MIN_PEERS
from teller_core.judge.request_load import METRICS, measured, request_costs, rest_of, work_known
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
"""Requests of a capture of which it is asked what rules claim from end to end: more would say the same."""
MOST_OTHERWISE = 500
"""And by each other metric: what one in a hundred loses is five of them, and learning does not take four times as long."""
MOSTLY = 0.9
"""Of the requests of which all is well so many are not called slow: no more than that need be well."""
RARE = 0.99
"""Of the requests of which all is well: as much as a cause costs so many of them, it costs for no reason to be told."""


@dataclass(frozen=True)
class Healthy:
    """A capture in which all was well, and its numbers. Its trees are not needed. What it teaches is measured once: in turn each
    of several captures is held against what the others teach.
    """

    capture: Capture
    numbers: Assessment

    @cached_property
    def rest(self) -> dict[str, float]:
        """As in :class:`Learned`."""
        return rest_of(self.capture, self.numbers.steps)

    @cached_property
    def levels(self) -> dict[str, float]:
        """As in :class:`Learned`."""
        return levels_of(prepare(self.capture, replace(self.numbers, learned=None)))


def learned_from(several: Sequence[Healthy], name: str, service: Mapping[str, str], learned_at: str) -> Learned:
    """What the captures of one service say is usual, without claims (see :func:`with_claims`)."""
    captures = [one.capture for one in several]
    return Learned(
        name=name,
        service=dict(service),
        learned_at=learned_at,
        captures=[capture.id for capture in captures],
        requests=sum(len(capture.requests.number) for capture in captures),
        steps=sum(int((one.numbers.steps.took != UNKNOWN).sum()) for one in several),
        step_costs=_step_costs(captures),
        request_costs=_request_costs(
            captures,
            [np.ones(len(capture.requests.number), np.bool_) for capture in captures],
            LEAST_REQUESTS,
        ),
        rest=_middles([one.rest for one in several]),
        operators=pooled([one.numbers.baselines for one in several]),
        levels=_middles([one.levels for one in several]),
    )


def levels_of(case: Case) -> dict[str, float]:
    """What is usual in one capture, by name (see :mod:`levels`)."""
    gaps = [float(engine.turnaround) for engine in case.engines.values() if len(engine.step) > 1]
    counters = {counter_level(name): one.calm for name, one in case.counters.items()}
    between = {TURNAROUND: float(np.median(gaps))} if gaps else {}
    return between | counters | thread_levels(case) | front_levels(case) | cache_levels(case)


class Claimed(NamedTuple):
    """Of the requests that were ``asked`` about by a ``metric``: by cause the shares of its time that it is claimed to have cost
    them; and how many times what is predicted each took, where that is known.
    """

    shares: Mapping[str, Sequence[float]]
    asked: int
    ratios: Sequence[float] = ()
    metric: Metric = "e2e"


class Fold(NamedTuple):
    """What some of the ``requests`` of a capture (bool each) are held against: it was learned from others."""

    learned: Learned
    requests: Mask


def folds(several: Sequence[Healthy], at: int, whole: Learned) -> list[Fold]:
    """For the capture at a position what its requests are held against: the others of ``several``, whose ``whole`` this is; where
    it is alone, each half of it the costs of the other half.
    """
    capture = several[at].capture
    begin = capture.requests.begin()
    if len(several) > 1:
        rest = [one for number, one in enumerate(several) if number != at]
        taught = learned_from(rest, whole.name, whole.service, whole.learned_at)
        return [Fold(taught, np.ones(len(begin), np.bool_))]
    middle = np.median(begin[begin != UNKNOWN]) if (begin != UNKNOWN).any() else 0
    late, ended = begin >= middle, capture.steps.end() >= middle
    return [Fold(_half(capture, whole, ~late, ~ended), late), Fold(_half(capture, whole, late, ended), ~late)]


def _half(capture: Capture, whole: Learned, requests: Mask, steps: Mask) -> Learned:
    """``whole`` with the costs of these requests and steps alone, as far as they are enough to tell."""
    taken = took(capture.steps, over(capture))
    model = step_model(capture.steps, taken, ~watched(capture.steps, capture.pauses) & steps)
    costs = _request_costs([capture], [requests], MIN_PEERS)
    return replace(
        whole,
        step_costs=whole.step_costs if model is None else step_costs_of(model),
        request_costs={**whole.request_costs, **costs},
    )


def claims_on(case: Case, wanted: Mask | None = None, metric: Metric = "e2e") -> Claimed:
    """What rules claim by ``metric`` of the requests of a capture, or of those ``wanted``, bool each."""
    found: dict[str, list[float]] = {}
    ratios: list[float] = []
    asked = 0
    every = np.arange(len(case.capture.requests.number)) if wanted is None else np.flatnonzero(wanted)
    most = min(len(every), MOST_JUDGED if metric == "e2e" else MOST_OTHERWISE)
    place = np.unique(np.linspace(0, len(every) - 1, most).astype(np.int64))
    for request in every[place].tolist():
        view, answers = scene(case, request, metric), ask(case, request, metric, None)
        if not view.span:
            continue
        asked += 1
        ratios += [answers.worst] if np.isfinite(answers.worst) else []
        for clue in claimed(view, answers, heard(view)):
            found.setdefault(clue.cause, []).append(clue.ns / view.span)
    return Claimed(found, asked, ratios, metric)


def with_claims(learned: Learned, several: Sequence[Claimed]) -> Learned:
    """``learned`` with what is claimed of requests of which all is well, and from when on one is slow: :func:`claims_on` of each
    capture, by each metric that was asked about.
    """
    by_metric: dict[Metric, list[Claimed]] = {}
    for each in several:
        by_metric.setdefault(each.metric, []).append(each)
    tables = [_claims(metric, mine) for metric, mine in by_metric.items()]
    slow = [_slow(metric, mine) for metric, mine in by_metric.items()]
    return replace(
        learned,
        levels={**learned.levels, **{name: value for level in slow for name, value in level.items()}},
        claims=joined(tables, HealthyClaims) if tables else no_claims(),
    )


def _claims(metric: Metric, several: Sequence[Claimed]) -> HealthyClaims:
    asked = max(sum(each.asked for each in several), 1)
    shares: dict[str, list[float]] = {}
    for found in several:
        for key, each in found.shares.items():
            shares.setdefault(key, []).extend(each)
    names = sorted(shares)
    costs = [np.append(np.array(shares[key]), np.zeros(asked - len(shares[key]))) for key in names]
    return HealthyClaims(
        [metric] * len(names),
        names,
        np.array([len(shares[key]) / asked for key in names], np.float64),
        np.array([np.quantile(each, RARE, method="higher") for each in costs], np.float64),
    )


def _slow(metric: Metric, several: Sequence[Claimed]) -> dict[str, float]:
    """The level from which on a request is slow, by name; empty where too few tell."""
    ratios = np.array([ratio for each in several for ratio in each.ratios])
    if len(ratios) < LEAST_REQUESTS:
        return {}
    return {slow_level(metric): float(np.quantile(ratios, MOSTLY, method="higher"))}


def _step_costs(captures: Sequence[Capture]) -> StepCosts | None:
    if not captures:
        return None
    taken = [took(capture.steps, over(capture)) for capture in captures]
    usable = [~watched(capture.steps, capture.pauses) for capture in captures]
    steps = joined([capture.steps for capture in captures], Steps)
    model = step_model(steps, np.concatenate(taken), np.concatenate(usable))
    return None if model is None or model.costs.peers < LEAST_STEPS else step_costs_of(model)


def _request_costs(captures: Sequence[Capture], usable: Sequence[Mask], least: int) -> dict[str, Costs]:
    """By metric what the work of ``usable`` requests costs, where at least so many tell."""
    values = [measured(capture.requests, capture.tokens) for capture in captures]
    requests = joined([capture.requests for capture in captures], Requests)
    found: dict[str, Costs] = {}
    for metric in METRICS:
        used = [*work_known(requests, metric)]
        value = np.where(np.concatenate(usable), np.concatenate([each[metric] for each in values]), UNKNOWN)
        costs = request_costs(requests, value, used)
        if costs is not None and costs.peers >= least:
            found[metric] = costs_of(costs, used)
    return found


def _middles(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """By name the median over the captures that know it."""
    names = dict.fromkeys(name for each in several for name in each)
    return {name: float(np.median([each[name] for each in several if name in each])) for name in names}
