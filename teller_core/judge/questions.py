"""Slow is three questions (DESIGN rule 3): over its limit, over what its work predicts, over what its load predicts."""

from typing import NamedTuple

from teller_core.data.report import Metric
from teller_core.data.table import UNKNOWN
from teller_core.judge.levels import level, slow_level
from teller_core.judge.prepare import Case

SLOW = 1.25
"""A ratio that people notice: a request that took a quarter longer than predicted."""


class Answers(NamedTuple):
    """``value``, ``by_work``, ``by_load`` int ns (UNKNOWN where nobody can say), and ratios of the value to them and to the
    limit, None where unknown, with the reasons in ``why``, by question.
    """

    value: int
    by_work: int
    by_load: int
    over_slo: float | None
    over_work: float | None
    over_load: float | None
    why: dict[str, str]
    least: float = SLOW
    """The ratio from which on it is slow."""

    @property
    def worst(self) -> float:
        """The larger of the ratios to its work and its load, infinite where neither is known: nothing speaks for it then."""
        known = [ratio for ratio in (self.over_work, self.over_load) if ratio is not None]
        return max(known, default=float("inf"))

    @property
    def slow(self) -> bool:
        """Whether any of the three says so by an amount that matters."""
        limit = self.over_slo is not None and self.over_slo > 1
        return limit or any(ratio is not None and ratio >= self.least for ratio in (self.over_work, self.over_load))


def ask(case: Case, request: int, metric: Metric, slo_ns: int | None) -> Answers:
    """The three questions for one request and metric; ``slo`` asks them of the end-to-end time."""
    named = "e2e" if metric == "slo" else metric
    row = case.expectation(request, named)
    table = case.assessment.requests
    value, work, load = UNKNOWN, UNKNOWN, UNKNOWN
    if row is not None:
        value, work, load = int(table.value[row]), int(table.by_work[row]), int(table.by_load[row])
    why: dict[str, str] = {}
    if value == UNKNOWN:
        why["value"] = f"{named} was not recorded"
    if slo_ns is None:
        why["over_slo"] = "no limit was given"
    if work == UNKNOWN:
        why["over_work"] = "too few requests of known work to say what this one should have taken"
    if load == UNKNOWN:
        why["over_load"] = "what ran beside it is not known well enough"
    least = max(SLOW, level(case.assessment, slow_level(metric), SLOW))
    return Answers(value, work, load, _ratio(value, slo_ns), _ratio(value, work), _ratio(value, load), why, least)


def _ratio(value: int, other: int | None) -> float | None:
    if other is None or UNKNOWN in (value, other) or other <= 0:
        return None
    return round(value / other, 2)
