"""Log templates alone: which kinds of lines were written while a request was there."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from teller_core.data.log_templates import template
from teller_core.data.table import UNKNOWN, Float64, Int64, Mask
from teller_core.lab.evaluation.cause_map import CauseMap, claims, served
from teller_core.lab.evaluation.cause_map import learned as learned_map
from teller_core.lab.evaluation.episode import HEALTHY, Episode
from teller_core.lab.evaluation.learners import probabilities
from teller_core.lab.evaluation.method import Judged, Method, Options, nothing
from teller_core.lab.evaluation.scoring import flags, threshold
from teller_core.lab.evaluation.seen import Seen

GRID: Sequence[Options] = tuple({"most": most, "counted": how} for how in (0, 1) for most in (50, 200, 500))
"""How many templates are told apart, and whether it counts how often one was written."""


@dataclass(frozen=True)
class Templates:
    """``column`` by template, whether lines are counted, what was learned, and from which score on a step is flagged."""

    column: dict[str, int]
    counted: bool
    causes: CauseMap
    threshold: float


def train(episodes: Sequence[Episode], options: Options, seed: int) -> Templates:
    """The most frequent templates of the training side, and a logistic regression on them."""
    counts = Counter[str]()
    for episode in episodes:
        counts.update(_templates(episode.seen))
    ranked = sorted(counts, key=lambda name: (-counts[name], name))[: int(options["most"])]
    column = {name: at for at, name in enumerate(ranked)}
    counted = bool(options["counted"])
    causes = learned_map(episodes, [_rows(episode.seen, column, counted) for episode in episodes])
    learned = Templates(column, counted, causes, float("inf"))
    scores = [_step_score(learned, episode.seen) for episode in episodes]
    return replace(learned, threshold=threshold(episodes, scores))


def judge(learned: Templates, seen: Seen) -> Judged:
    """A step is as suspicious as the requests that it served."""
    causes, verdict, sure = claims(learned.causes, _rows(seen, learned.column, learned.counted))
    score = _step_score(learned, seen)
    return replace(
        nothing(seen.capture),
        step_score=score,
        step_flag=flags(score, learned.threshold),
        causes=causes,
        verdict=verdict,
        sure=sure,
    )


class Written(NamedTuple):
    """The lines that were written while a request was there: a row a line and request. ``names``: templates, ``name`` int64: the
    position of the line's; ``request`` int64.
    """

    names: Sequence[str]
    request: Int64
    name: Int64


def _templates(seen: Seen) -> list[str]:
    lines = seen.capture.lines
    return seen.once("templates", lambda seen: list(map(template, lines.rule, lines.untrusted_text)))


def _written(seen: Seen) -> Written:
    lines, requests = seen.capture.lines, seen.capture.requests
    number: dict[str, int] = {}
    of = np.array([number.setdefault(name, len(number)) for name in _templates(seen)], dtype=np.int64)
    begin, end = requests.begin(), requests.end()
    time = np.asarray(lines.time, dtype=np.int64)
    mine = [
        of[_during(time, lines.after, int(low), int(high))]
        for low, high in zip(begin.tolist(), end.tolist(), strict=True)
    ]
    request = np.repeat(np.arange(len(mine), dtype=np.int64), [len(each) for each in mine])
    return Written(list(number), request, np.concatenate([np.empty(0, dtype=np.int64), *mine]))


def _rows(seen: Seen, column: dict[str, int], counted: bool) -> Float64:
    """float64 [requests, templates]: the lines written while each request was there, as logged counts or 0 and 1."""
    found = seen.once("written", _written)
    requests, width = len(seen.capture.requests.number), max(len(column), 1)
    place = np.array([column.get(name, -1) for name in found.names], dtype=np.int64)[found.name]
    known = place >= 0
    cell = found.request[known] * width + place[known]
    out = np.bincount(cell, minlength=requests * width).reshape(requests, width).astype(np.float64)
    return np.log1p(out) if counted else (out > 0).astype(np.float64)


def _during(time: Int64, after: Int64, low: int, high: int) -> Mask:
    if UNKNOWN in (low, high):
        return np.zeros(len(time), dtype=np.bool_)
    return (time + np.maximum(after, 0) >= low) & (time <= high) & (time != UNKNOWN)


def _step_score(learned: Templates, seen: Seen) -> Float64:
    """float64 a step: the mean probability, over its requests, that a fault struck them; NaN where nobody knows its requests."""
    steps = len(seen.case.begin)
    if learned.causes.model is None or not len(seen.capture.requests.number):
        return np.full(steps, np.nan)
    value = learned.causes.scale(_rows(seen, learned.column, learned.counted))
    classes, probability = probabilities(learned.causes.model, value)
    healthy = probability[:, classes.index(HEALTHY)] if HEALTHY in classes else np.zeros(len(value))
    pairs = served(seen)
    count = np.bincount(pairs.step, minlength=steps)
    total = np.bincount(pairs.step, weights=1.0 - healthy[pairs.request], minlength=steps)
    return np.divide(total, count, out=np.full(steps, np.nan), where=count > 0)


METHOD = Method("logs", "templates of log lines, by logistic regression", train, judge, GRID)
