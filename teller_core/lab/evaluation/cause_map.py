"""From suspicious steps to a cause: what a method that only scores steps is given, so that it can answer why a request was slow.

A multinomial logistic regression, learned on the training side alone, from what was recorded of a request's most suspicious steps
and of the request itself, to the cause that struck it or to none. All such methods get the same one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from teller_core.data.table import UNKNOWN, Float64, Int64
from teller_core.judge.step_numbers import NAMES
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, Episode
from teller_core.lab.evaluation.learners import logistic, probabilities
from teller_core.lab.evaluation.method import CANNOT, CAUSE, TYPICAL, Claim
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.evaluation.training import MOST_ROWS, Scale, fresh_requests, scale_of, some

MOST_SUSPICIOUS = 3
"""Steps of a request that are looked at: one may be chance."""
STRENGTH = 0.3
MOST_CLAIMS = 5
LEAST_CLAIM = 0.01


@dataclass(frozen=True)
class CauseMap:
    """``model`` None: the training side holds one class alone."""

    scale: Scale
    model: Any


class Served(NamedTuple):
    """Steps and the requests that they served: a row a pair, by request, each request's in the order of :func:`steps_of`.
    ``request``, ``step`` int64: positions; ``first`` int64, one more than there are requests: where the pairs of each begin.
    """

    request: Int64
    step: Int64
    first: Int64


def served(seen: Seen) -> Served:
    """The pairs of a capture."""
    return seen.once("served", _served)


def _served(seen: Seen) -> Served:
    steps = steps_of(seen)
    count = np.array([len(mine) for mine in steps], dtype=np.int64)
    first = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(count)])
    request = np.repeat(np.arange(len(steps), dtype=np.int64), count)
    return Served(request, np.concatenate([np.empty(0, dtype=np.int64), *steps]), first)


def request_rows(seen: Seen, score: Float64) -> Float64:
    """float64 [requests, columns]: of each request's most suspicious steps the mean of what was recorded, their largest and mean
    score, and what was recorded of the request. A request whose steps are not known has those alone.
    """
    pairs = served(seen)
    scored = score[pairs.step]
    told = np.where(np.isnan(scored), -np.inf, scored)
    order = np.lexsort((-told, pairs.request))  # each request's pairs stay together, the most suspicious first
    worst = order[np.arange(len(order)) - pairs.first[pairs.request] < MOST_SUSPICIOUS]
    requests = len(pairs.first) - 1
    rows = np.full((requests, len(NAMES) + 2), np.nan)
    mine, groups = np.unique(pairs.request[worst], return_index=True)
    if len(mine):
        rows[mine, :-2] = _means(seen.steps.value[pairs.step[worst]], groups)
    known = ~np.isnan(scored)
    count = np.bincount(pairs.request[known], minlength=requests)
    total = np.bincount(pairs.request[known], weights=scored[known], minlength=requests)
    largest = np.full(requests, -np.inf)
    np.maximum.at(largest, pairs.request[known], scored[known])
    rows[:, -2] = np.where(count > 0, largest, np.nan)
    rows[:, -1] = np.divide(total, count, out=np.full(requests, np.nan), where=count > 0)
    return np.column_stack([rows, seen.requests])


def _means(value: Float64, groups: "npt.NDArray[np.intp]") -> Float64:
    """float64: the mean of what is known in each column, of the rows from each of ``groups`` to the next one; NaN for nothing."""
    known = ~np.isnan(value)
    total = np.add.reduceat(np.where(known, value, 0.0), groups, axis=0)
    count = np.add.reduceat(known.astype(np.float64), groups, axis=0)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def steps_of(seen: Seen) -> list[Int64]:
    """The positions of the steps that served each request; where nobody says, of those that ran while it was there."""
    case = seen.case
    step = case.capture.participation.step
    known = [step[case.rows[low:high]].astype(np.int64) for low, high in zip(case.first, case.first[1:], strict=False)]
    return [mine if len(mine) else _beside(seen, request) for request, mine in enumerate(known)]


def _beside(seen: Seen, request: int) -> Int64:
    case = seen.case
    low, high = int(case.starts[request]), int(case.ends[request])
    if UNKNOWN in (low, high):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero((case.stop > low) & (case.begin < high) & (case.begin != UNKNOWN))


def learn(episodes: Sequence[Episode], scores: Sequence[Float64]) -> CauseMap:
    """The map for a method that gave these scores to the steps of the training side."""
    return learned(
        episodes, [request_rows(episode.seen, score) for episode, score in zip(episodes, scores, strict=True)]
    )


def learned(episodes: Sequence[Episode], values: Sequence[Float64]) -> CauseMap:
    """The map from rows of numbers, one a request of each episode, to causes: of at most MOST_ROWS requests, each once."""
    rows: list[Float64] = []
    truth: list[str] = []
    for episode, value, mine in zip(episodes, values, fresh_requests(episodes), strict=True):
        judged = [at for at, label in enumerate(episode.labels.request) if label != NOT_JUDGED and mine[at]]
        rows.append(value[judged])
        truth += [episode.labels.request[at] for at in judged]
    if not truth:
        return fitted(np.empty((0, 1)), [])
    drawn = some(np.arange(len(truth), dtype=np.float64), MOST_ROWS, 0).astype(np.int64)
    return fitted(np.concatenate(rows)[drawn], [truth[at] for at in map(int, drawn)])


def fitted(value: Float64, truth: Sequence[str]) -> CauseMap:
    """The map from any rows of numbers to causes."""
    scale = scale_of(value)
    model = logistic(scale(value), truth, strength=STRENGTH) if len(set(truth)) > 1 else None
    return CauseMap(scale, model)


def claims(given: CauseMap, value: Float64) -> tuple[list[list[Claim]], list[str], Float64]:
    """(causes, verdict, how sure) a row: causes by probability, of rows that are not held for healthy."""
    if given.model is None or not len(value):
        return [[] for _ in value], [CANNOT] * len(value), np.zeros(len(value))
    classes, probability = probabilities(given.model, given.scale(value))
    order = np.argsort(-probability, axis=1, kind="stable")
    named: list[list[Claim]] = []
    verdict: list[str] = []
    for row, ranks in zip(probability, order, strict=True):
        places = [int(at) for at in ranks]
        healthy = classes[places[0]] == HEALTHY
        verdict.append(TYPICAL if healthy else CAUSE)
        likely = [at for at in places if classes[at] != HEALTHY and row[at] >= LEAST_CLAIM]
        named.append([] if healthy else [Claim(classes[at], min(float(row[at]), 1.0)) for at in likely[:MOST_CLAIMS]])
    return named, verdict, np.minimum(probability.max(axis=1), 1.0)
