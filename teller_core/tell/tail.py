"""What the slowest requests have that those in the middle have not: phases and groups whose parts sum to the gap, to the ns."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, sqrt
from typing import NamedTuple

import numpy as np

from teller_core.data.difference import SIGMAS, Difference, so_or_not
from teller_core.data.parts import PHASES
from teller_core.data.report_fleet import TailPart
from teller_core.data.table import Int64
from teller_core.data.tails import Bounds, Sums

QUANTILES = (0.99, 0.95, 0.9)
FEWEST = 10
"""Requests of a tail: of fewer each one is an anecdote."""
LOW, HIGH = 0.4, 0.6
"""The middle, by quantiles."""
CLUSTERS = 8
"""Captures from which on it is their means that are taken to differ by chance, and not single requests, which one event slows
together."""
MATERIAL = 0.1
"""Of the gap: less explains no tail."""
CLEAR = 0.2
"""By how much more of the tail than of the middle a group has to be."""
LEVEL = 0.05
FEW = 5
"""Requests of the tail of which something is said."""


class Cut(NamedTuple):
    """Where the tail begins and how far the middle goes; ns but for ``quantile``."""

    quantile: float
    p50: int
    bounds: Bounds


class Group(NamedTuple):
    """``tail`` and ``middle``: how many of either; ``ns``: its part of the gap; ``differs``: of the shares, None where either
    cohort is too small.
    """

    what: str
    tail: int
    middle: int
    ns: int
    differs: Difference | None


def cut(value: Int64) -> Cut | None:
    """The highest quantile with at least FEWEST requests from it on (by nearest rank), None where there is none."""
    count = len(value)
    quantile = next((one for one in QUANTILES if count - _rank(count, one) + 1 >= FEWEST), None)
    if quantile is None:
        return None
    at = [_rank(count, one) - 1 for one in (LOW, 0.5, HIGH, quantile)]
    low, middle, high, tail = (int(one) for one in np.partition(value, at)[at])
    return Cut(quantile, middle, Bounds(low, high, tail))


def quantile_of(value: Int64, quantile: float) -> int:
    """ns, by nearest rank."""
    at = _rank(len(value), quantile) - 1
    return int(np.partition(value, at)[at])


def _rank(count: int, quantile: float) -> int:
    return max(ceil(Fraction(str(quantile)) * count), 1)


def gap(sums: Iterable[Sums]) -> Fraction:
    """ns: the mean of the tail less that of the middle."""
    tail, middle = cohorts(sums)
    return _mean(tail, "value") - _mean(middle, "value")


def cohorts(sums: Iterable[Sums]) -> tuple[list[Sums], list[Sums]]:
    """The tail and the middle."""
    known = list(sums)
    return [one for one in known if one.tail], [one for one in known if not one.tail]


def phases(sums: Iterable[Sums]) -> list[TailPart]:
    """What each phase adds, in the order of PHASES; the ns sum to the gap."""
    tail, middle = cohorts(sums)
    means = [(_phase(tail, at), _phase(middle, at)) for at in range(len(PHASES))]
    known = [any(one.known[at] for one in (*tail, *middle)) for at in range(len(PHASES))]
    whole = rounded([mine - others for mine, others in means])
    told: list[TailPart] = []
    for at, phase in enumerate(PHASES):
        if not known[at]:
            told.append(_unseen(phase))
            continue
        mine, others = means[at]
        room = SIGMAS * sqrt(_variance(tail, at) + _variance(middle, at))
        ns, share = whole[at], whole[at] / total if (total := sum(whole)) else 0.0
        told.append(
            TailPart(
                part=phase,
                ns=ns,
                low_ms=_ms(ns - room),
                high_ms=_ms(ns + room),
                tail_ms=_ms(mine),
                middle_ms=_ms(others),
                share=round(share, 3),
                named=share >= MATERIAL and ns > room,
            )
        )
    return told


def groups(tail: Mapping[str, tuple[int, int]], middle: Mapping[str, tuple[int, int]]) -> list[Group]:
    """The groups that the requests of both cohorts fall into, each (how many, ns in all) by what it is; most of the gap first."""
    of_tail, of_middle = (sum(count for count, _ in side.values()) for side in (tail, middle))
    usual = Fraction(sum(ns for _, ns in middle.values()), of_middle)
    names = sorted(tail.keys() | middle.keys(), key=lambda one: (-tail.get(one, (0, 0))[1], one))
    counts = [(*tail.get(one, (0, 0)), middle.get(one, (0, 0))[0]) for one in names]
    parts = rounded([(ns - count * usual) / of_tail for count, ns, _ in counts])
    return [
        Group(name, count, beside, ns, so_or_not(count, of_tail, beside, of_middle))
        for name, (count, _, beside), ns in zip(names, counts, parts, strict=True)
    ]


def stands_out(group: Group, tried: int) -> bool:
    """Whether there is clearly more of it in the tail than in the middle, by no chance among all that were ``tried``."""
    differs = group.differs
    return differs is not None and group.tail >= FEW and differs.effect >= CLEAR and differs.chance * tried < LEVEL


def rounded(parts: Sequence[Fraction]) -> list[int]:
    """``parts`` as whole numbers that sum to their rounded sum: each is a difference of two rounded sums, and off by under 1."""
    ends = [round(sum(parts[: at + 1], Fraction(0))) for at in range(len(parts))]
    return [end - before for end, before in zip(ends, [0, *ends], strict=False)]


def _mean(cohort: Sequence[Sums], name: str) -> Fraction:
    return Fraction(sum(getattr(one, name) for one in cohort), sum(one.requests for one in cohort))


def _phase(cohort: Sequence[Sums], at: int) -> Fraction:
    return Fraction(sum(one.phases[at] for one in cohort), sum(one.requests for one in cohort))


def _variance(cohort: Sequence[Sums], at: int) -> float:
    """ns^2: of the mean of a phase. Between captures where there are enough of them (the estimator of a ratio, Cochran 1977,
    2.11), else between requests.
    """
    count, mean = sum(one.requests for one in cohort), float(_phase(cohort, at))
    by_capture: dict[int, list[Sums]] = {}
    for one in cohort:
        by_capture.setdefault(one.capture, []).append(one)
    if len(by_capture) >= CLUSTERS:
        off = [sum(one.phases[at] - one.requests * mean for one in several) for several in by_capture.values()]
        return sum(each**2 for each in off) / count**2 * len(off) / (len(off) - 1)
    squares = sum(one.squares[at] for one in cohort)
    return max(squares / count - mean**2, 0.0) / max(count - 1, 1)


def _unseen(phase: str) -> TailPart:
    return TailPart(
        part=phase, ns=None, low_ms=None, high_ms=None, tail_ms=None, middle_ms=None, share=None, named=False
    )


def _ms(ns: Fraction | float) -> float:
    return round(float(ns) / 1e6, 3)
