"""What judging found by numbers: baselines, residuals, candidates, and what each request should have taken."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from teller_core.data.table import Float64, Int32, Int64, Text, UInt8, check_columns

if TYPE_CHECKING:
    from teller_core.data.learned import Learned

SURPRISING = 3.5
"""Robust standard deviations: the cut that Iglewicz and Hoaglin (1993) give for the modified z-score."""
MATERIAL = 0.05
"""A span is a candidate only where it adds at least this share of its step's time: less cannot be felt."""


@dataclass(frozen=True)
class Baselines:
    """What is normal for an operator in its context (DESIGN rule 8), in log time. One row a key.

    ``name``, ``place`` (the operator's parent chain), ``phase`` text; ``layer`` uint8; ``count`` int32 of spans it rests
    on; ``median`` int64 ns of own time; ``spread`` float64: the robust standard deviation of log duration; ``total`` int64
    ns; ``calls`` float64: the median number of calls in a step of the phase, NaN outside steps; ``slope`` float64: how log
    duration grows with the log of the step's tokens (KV tokens for attention), NaN where it could not be learned;
    ``pivot`` float64: the log tokens at which ``median`` holds, NaN where tokens are not known.
    """

    name: Text
    place: Text
    phase: Text
    layer: UInt8
    count: Int32
    median: Int64
    spread: Float64
    total: Int64
    calls: Float64
    slope: Float64
    pivot: Float64

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class StepExpectations:
    """One row a step: what it took (``took`` int64 ns, UNKNOWN), what its work predicts (``expected`` int64 ns, UNKNOWN),
    ``residual`` float64: (log took - log expected) in robust standard deviations, NaN where not known, and ``excess``
    int64 ns: took - expected, UNKNOWN where not known.
    """

    took: Int64
    expected: Int64
    residual: Float64
    excess: Int64

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Candidates:
    """Spans that numbers find suspicious. ``step`` int32, ``rank`` int32, ``row`` int32 of that rank's tree.

    ``value``, ``normal`` int64 ns: the span's own time and its baseline's median; ``residual`` float64 as in
    :class:`StepExpectations`; ``excess`` int64 ns: what it adds to the step; ``method``: which localizer found it.
    """

    step: Int32
    rank: Int32
    row: Int32
    name: Text
    layer: UInt8
    value: Int64
    normal: Int64
    residual: Float64
    excess: Int64
    baseline: Int32
    method: Text

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class RequestExpectations:
    """One row a request and metric: its ``value`` int64 ns, what its work predicts (``by_work``) and what its load predicts
    (``by_load``), int64 ns, UNKNOWN where it cannot be said. ``metric``: ttft, tpot, itl_max, e2e.
    """

    request: Int32
    metric: Text
    value: Int64
    by_work: Int64
    by_load: Int64
    residual: Float64
    """Of the value against ``by_work``, in robust standard deviations of log time; NaN where not known."""

    def check(self) -> None:
        """Raise ValueError where columns differ in length."""
        check_columns(self)


@dataclass(frozen=True)
class Assessment:
    """The numbers of one capture."""

    baselines: Baselines
    steps: StepExpectations
    candidates: Candidates
    requests: RequestExpectations
    reference: str = ""
    """The named outside reference (a saved baseline) that allows the answer ``normal``, empty for none."""
    learned: "Learned | None" = None
    """What it is: the levels and claims that judging holds against this capture's. It is kept beside captures, not with them."""
    left_out: str = ""
    """Why there are no baselines and candidates although there is a profile; empty where that is not so."""
