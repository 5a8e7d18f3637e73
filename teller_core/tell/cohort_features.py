"""In what requests can differ: what they asked for, where their time went, beside whom they ran, what was said of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from teller_core.data.outcomes import Outcomes
from teller_core.data.steps import Participation, Requests, Role
from teller_core.data.table import UNKNOWN, Float64, Int32, Int64, Mask

MOST_SORTS = 12
"""Causes, ranks, reasons to end and engines that are told apart, each the most frequent ones."""


class Lines(Protocol):
    """Lines of a log: when int64 ns, UNKNOWN where none is written; ``template``, an index of ``templates``: (the rule that knows
    such lines, or what lines have in common that none knows: text of the log); the position of the request that a line names, -1
    for none.
    """

    @property
    def time(self) -> Int64: ...
    @property
    def template(self) -> Int32: ...
    @property
    def request(self) -> Int32: ...
    @property
    def templates(self) -> Sequence[tuple[str, str]]: ...


@dataclass(frozen=True)
class Known:
    """What is known of the requests of a capture. ``outcomes`` are those from end to end; ``lines``: None where there are too
    many of them to look at.
    """

    requests: Requests
    participation: Participation
    outcomes: Outcomes
    lines: Lines | None


class Feature(NamedTuple):
    """``column`` float64 a request, NaN where it is unknown; where ``unit`` is SHARE, 1 for what is so and 0 for what is not."""

    what: str
    unit: str
    column: Float64
    untrusted_text: str | None = None


SHARE = "share"


def features(known: Known, longest: int) -> Iterator[Feature]:
    """All of them. ``longest`` int ns: for how long from the begin of a request on a line of the log is beside it."""
    yield from _asked(known.requests)
    yield from _beside(known)
    yield from _spent(known)
    yield from _named(known)
    if known.lines is not None:
        yield from _lines(known.requests, known.lines, longest)


def _asked(requests: Requests) -> Iterator[Feature]:
    yield Feature("prompt tokens", "tokens", _count(requests.prompt_tokens))
    yield Feature("output tokens", "tokens", _count(requests.output_tokens))
    yield Feature("cached tokens", "tokens", _count(requests.cached_tokens))
    yield Feature("preemptions", "times", _count(requests.preemptions))
    yield Feature("queue time", "ms", _ms(requests.queue()))
    yield Feature("longest token gap", "ms", _ms(requests.itl_max))


def _beside(known: Known) -> Iterator[Feature]:
    """The steps that served it: how many requests each of them had, and how much of the prompts of others."""
    part = known.participation
    size = len(known.requests.number)
    if not len(part.step):
        return
    steps = int(part.step.max()) + 1
    served = np.bincount(part.step, minlength=steps).astype(np.float64)
    prompt = np.where((part.role == Role.PREFILL) & (part.tokens > 0), part.tokens, 0).astype(np.float64)
    of_step = np.bincount(part.step, prompt, minlength=steps)
    turns = np.bincount(part.request, minlength=size)
    for what, unit, each in (
        ("batch", "requests", served[part.step]),
        ("prompts of others in its steps", "tokens", of_step[part.step] - prompt),
    ):
        total = np.bincount(part.request, each, minlength=size)
        yield Feature(what, unit, np.divide(total, turns, out=np.full(size, np.nan), where=turns > 0))


def _spent(known: Known) -> Iterator[Feature]:
    """Its time by phase; the queue is told already."""
    size = len(known.requests.number)
    for phase, ns in known.outcomes.phases().items():
        if phase != "queue" and len(ns):
            column = np.full(size, np.nan)
            column[known.outcomes.request - 1] = _ms(ns)
            yield Feature(f"time in {phase.replace('_', ' ')}", "ms", column)


def _named(known: Known) -> Iterator[Feature]:
    size, outcomes = len(known.requests.number), known.outcomes
    place = outcomes.request - 1
    if len(place):
        yield from _sorts("cause", outcomes.cause, place, size, {""})
        yield from _sorts("rank named", outcomes.rank.tolist(), place, size, {-1})
    every = np.arange(size)
    yield from _sorts("ended by", known.requests.finish_reason, every, size, {""})
    engines = known.requests.engine.tolist()
    if len(set(engines)) > 1:
        yield from _sorts("engine", engines, every, size, {-1})
    if known.requests.failed.any():
        yield Feature("failed", SHARE, (known.requests.failed > 0).astype(np.float64))


def _sorts(
    what: str, values: Sequence[str] | Sequence[int], place: npt.NDArray[Any], size: int, but: set[Any]
) -> Iterator[Feature]:
    for value, _ in sorted(Counter(values).items(), key=lambda one: (-one[1], str(one[0])))[:MOST_SORTS]:
        if value not in but:
            column = np.full(size, np.nan)
            column[place] = [float(one == value) for one in values]
            yield Feature(f"{what} {value}", SHARE, column)


def _lines(requests: Requests, lines: Lines, longest: int) -> Iterator[Feature]:
    """Whether a line of a template names a request; of templates that name none, whether one was written within ``longest`` of
    its begin: all are given the same time, else who takes longer would have more of everything.
    """
    begin = requests.begin()
    for at, (rule, text) in enumerate(lines.templates):
        mine = lines.template == at
        named = lines.request[mine & (lines.request >= 0)]
        if len(named):
            column = np.zeros(len(begin))
            column[named] = 1.0
        else:
            column = _written(np.sort(lines.time[mine & (lines.time != UNKNOWN)]), begin, longest)
        yield Feature(f"log line {rule}" if rule else "log line like", SHARE, column, text or None)


def _written(times: Int64, begin: Int64, longest: int) -> Float64:
    known: Mask = begin != UNKNOWN
    until = np.where(known, begin, 0) + longest
    some = np.searchsorted(times, until, "right") > np.searchsorted(times, begin, "left")
    return np.where(known, some.astype(np.float64), np.nan)


def _count(column: Int32) -> Float64:
    return np.where(column >= 0, column, np.nan).astype(np.float64)


def _ms(ns: Int64) -> Float64:
    return np.where(ns != UNKNOWN, ns / 1e6, np.nan)
