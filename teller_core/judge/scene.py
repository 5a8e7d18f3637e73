"""What a rule looks at: one request of one capture, for one metric."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from teller_core.data.report import Metric, Part
from teller_core.data.table import UNKNOWN
from teller_core.judge.breakdown import phases
from teller_core.judge.front import WAYS, Zone, handed, zone
from teller_core.judge.holds import Holds, holds
from teller_core.judge.intervals import Spans, overlap
from teller_core.judge.life import Life, life
from teller_core.judge.prepare import Case
from teller_core.judge.resources import resources
from teller_core.judge.windows import Keyed, Windows, keyed, windows


@dataclass(frozen=True)
class Scene:
    """``low``, ``high`` int ns: the stretch of the request's time that the metric measures, UNKNOWN where it cannot be placed."""

    case: Case
    life: Life
    metric: Metric
    low: int
    high: int

    @property
    def span(self) -> int:
        """ns that the metric measures, 0 where unknown."""
        return 0 if UNKNOWN in (self.low, self.high) else max(self.high - self.low, 0)

    @cached_property
    def phases(self) -> list[Part]:
        """The phases of the stretch that the metric measures."""
        return phases(self.case, self.life, self.low, self.high)

    @cached_property
    def profiled(self) -> int:
        """How many of its steps a profile overlaps."""
        return int(self.case.profiled[self.life.step].sum()) if len(self.life.step) else 0

    @cached_property
    def resources(self) -> list[Part]:
        """The resources of its steps."""
        return resources(self.case, self.life)

    @cached_property
    def holds(self) -> Holds:
        """What held it up inside the metric's stretch."""
        return holds(self.case, self.life, self.low, self.high)

    @cached_property
    def front(self) -> dict[str, Zone]:
        """Its zones outside the engine, by name (see front.WAYS)."""
        return {
            way: zone(self.case, self.life, way, handed(self.case, self.life) if way == "in" else UNKNOWN)
            for way in WAYS
        }

    def lines(self, rule: str) -> list[int]:
        """Log lines that ``rule`` knows and that may have been written during the request or name it."""
        if rule not in self.case.lines or UNKNOWN in (self.low, self.high):
            return []
        by_time, by_request = self.case.once(f"lines {rule}", lambda case: _lines(case, rule))
        during = by_time.touching(self.low, self.high)
        return np.union1d(during, by_request.of(np.array([self.life.request], np.int64))).tolist()

    def during(self, spans: Spans) -> int:
        """ns of ``spans`` inside the metric's stretch."""
        return overlap(spans, self.low, self.high) if self.span else 0

    def counted(self, name: str) -> bool:
        """Whether anybody sampled the counter."""
        return name in self.case.counters

    def beyond_calm(self, name: str) -> float:
        """How much a counter grew in the metric's stretch beyond its calm level, in its own unit."""
        if not self.span:
            return 0.0
        return self.beyond(name, self.low, self.high)

    def beyond(self, name: str, low: int, high: int) -> float:
        """How much a counter grew from ``low`` to ``high`` beyond its calm level, in its own unit."""
        counter = self.case.counters.get(name)
        return 0.0 if counter is None else max(counter.grown(low, high) - counter.calm * (high - low) / 1e9, 0.0)


def scene(case: Case, request: int, metric: Metric) -> Scene:
    """The scene of the request at position ``request``."""
    one = life(case, request)
    return Scene(case, one, metric, *_stretch(case, one, metric))


def _lines(case: Case, rule: str) -> tuple[Windows, Keyed]:
    """The log lines that ``rule`` knows, by when they may have been written and by the request that they name."""
    lines, rows = case.capture.lines, case.lines[rule]
    time, named = lines.time[rows], keyed(lines.request[rows].astype(np.int64))
    low, high = time - lines.before[rows].clip(0), time + lines.after[rows].clip(0)
    return windows(rows, low, high), Keyed(named.key, rows[named.row])


def _stretch(case: Case, one: Life, metric: Metric) -> tuple[int, int]:
    table = case.capture.requests
    client = int(table.client_first[one.request])
    first = client if client != UNKNOWN else one.first
    match metric:
        case "ttft":
            return one.begin, first
        case "tpot":
            return first, max(one.last, one.end) if one.end != UNKNOWN else one.last
        case "itl_max":
            gap, at = int(table.itl_max[one.request]), int(table.itl_max_at[one.request])
            return (UNKNOWN, UNKNOWN) if UNKNOWN in (gap, at) else (at - gap, at)
        case _:
            return one.begin, one.end


def over_work(view: Scene) -> int:
    """ns of the metric beyond what its work predicts, 0 where that is unknown."""
    row = view.case.expectation(view.life.request, "e2e" if view.metric == "slo" else view.metric)
    if row is None:
        return 0
    table = view.case.assessment.requests
    value, work = int(table.value[row]), int(table.by_work[row])
    return max(value - work, 0) if UNKNOWN not in (value, work) else 0
