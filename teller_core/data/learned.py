"""What was learned of a service from captures in which all was well: what others of it are held against."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from teller_core.data.assessment import Baselines
from teller_core.data.table import Float64, Int32, Text, check_columns

FORMAT = 2
"""Of what is learned now."""
READABLE = (1, FORMAT)
"""Formats that are used; another one is not, and says so. 1 knows claims and who is slow by the time from end to end alone."""
STEP_WORK = ("context_tokens", "generation_requests", "kv_tokens")
"""The work of a step that its costs may be of."""
REQUEST_WORK = ("uncached_tokens", "decoded_tokens")
"""And that of a request."""


@dataclass(frozen=True)
class Costs:
    """What work costs. ``used``: its kinds, behind the first cost, that of a step or a request as such; ``cost`` float64: ns for
    each unit of each, none negative; ``spread``: the robust standard deviation of log time about what they predict; ``inverse``
    float64 [costs, costs]: the covariance of the costs in units of the spread; ``peers``: how many they rest on.
    """

    used: Sequence[str]
    cost: Float64
    spread: float
    inverse: Float64
    peers: int

    def check(self) -> None:
        """Raise ValueError where the shapes do not fit, or a number is none."""
        many = 1 + len(self.used)
        if self.cost.shape != (many,) or self.inverse.shape != (many, many):
            raise ValueError("costs: the shapes do not fit")
        numbers = np.concatenate([self.cost, self.inverse.ravel(), [self.spread]])
        if not np.isfinite(numbers).all() or (self.cost < 0).any() or self.spread <= 0:
            raise ValueError("costs: a number is out of bounds")


@dataclass(frozen=True)
class StepCosts:
    """``costs`` of a step; by phase (prefill, decode, mixed) the ``shift`` of its steps in log time, and their ``spread``."""

    costs: Costs
    shift: Mapping[str, float]
    spread: Mapping[str, float]


@dataclass(frozen=True)
class HealthyClaims:
    """What rules claim of requests of which all is well, a row a ``metric`` and a ``cause`` of the taxonomy. ``rate`` float64: of
    how many of them; ``share`` float64: of the time that the metric measures, of 99 in 100 of them, it costs no more than this.
    """

    metric: Text
    cause: Text
    rate: Float64
    share: Float64

    def check(self) -> None:
        """Raise ValueError where columns differ in length or a share is none."""
        check_columns(self)
        if not ((self.rate >= 0) & (self.rate <= 1) & (self.share >= 0)).all():
            raise ValueError("claims: a share is out of bounds")

    def of(self, cause: str, metric: str) -> tuple[float, float]:
        """The rate and the share of a cause by a metric, 0 where nothing claims it. A promise is one of e2e."""
        named = "e2e" if metric == "slo" else metric
        for at, key in enumerate(zip(self.metric, self.cause, strict=True)):
            if key == (named, cause):
                return float(self.rate[at]), float(self.share[at])
        return 0.0, 0.0


def no_claims() -> HealthyClaims:
    """Where nothing was claimed of a healthy request."""
    return HealthyClaims([], [], np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Learned:
    """What is usual for one service.

    ``name``: what people call it; ``service``: by which facts it is told from others (see ``service``); ``learned_at``:
    ISO 8601; ``captures``: the ids of those learned from, with so many ``requests`` and ``steps`` together. ``step_costs`` None
    and a metric that ``request_costs`` lacks: too few were known. ``rest``: ns a step, by metric, that requests take beyond what
    their steps do; ``operators``: as in an assessment; ``levels``: usual ns or growth a second, by name (see ``judge.levels``).
    """

    name: str
    service: Mapping[str, str]
    learned_at: str
    captures: Text
    requests: int
    steps: int
    step_costs: StepCosts | None
    request_costs: Mapping[str, Costs]
    rest: Mapping[str, float]
    operators: Baselines
    levels: Mapping[str, float]
    claims: HealthyClaims = field(default_factory=no_claims)

    @property
    def called(self) -> str:
        """How answers call it: another one of the same name is another one."""
        return called(self.name, self.learned_at)

    def check(self) -> None:
        """Raise ValueError where it contradicts itself."""
        for costs in (*self.request_costs.values(), *([] if self.step_costs is None else [self.step_costs.costs])):
            costs.check()
        self.operators.check()
        self.claims.check()


def called(name: str, learned_at: str) -> str:
    """How answers call the baseline of this name that was learned then: two of one name differ by the thousandth of a second."""
    return f"the baseline {name} of {learned_at.partition('+')[0].replace('T', ' ')}"


def no_baselines() -> Baselines:
    """A table without rows."""
    few: Int32 = np.empty(0, np.int32)
    many, shares = np.empty(0, np.int64), np.empty(0)
    return Baselines([], [], [], np.empty(0, np.uint8), few, many, shares, many, shares, shares, shares)
