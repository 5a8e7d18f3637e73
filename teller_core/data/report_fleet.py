"""The model of the answer of ``fleet``: what makes the slowest requests of many captures slower than those in the middle."""

from typing import Literal

from pydantic import Field

from teller_core.data.report import Cell
from teller_core.data.report_findings import Model


class Cohort(Model):
    """Some of the requests, by how long they took."""

    what: str
    requests: int
    captures: int
    from_ms: float
    to_ms: float | None = Field(description="null: the slowest one is among them")
    mean_ms: float


class TailPart(Model):
    """What one phase adds: its mean in the tail less its mean in the middle."""

    part: str
    ns: int | None = Field(description="null: no source in any request, its time is in unexplained")
    low_ms: float | None = Field(description="with a confidence of 95 %, requests of a capture taken to be alike")
    high_ms: float | None
    tail_ms: float | None = Field(description="mean")
    middle_ms: float | None = Field(description="mean")
    share: float | None = Field(description="of gap_ns; below 0 where the tail has less of it")
    named: bool = Field(description="at least a tenth of the gap, and no chance")


class TailExample(Model):
    """A request of the tail, to be asked about."""

    capture: str
    request: int
    value_ms: float
    of: str = Field(description="what it is an example of")


class FleetReport(Model):
    """The answer of ``fleet``: the tail (from p99 on, or p95 or p90 where that would be too few requests) against the middle (p40
    to p60).

    ``gap_ns`` is the mean of the one less the mean of the other, and the sum of ``phases``. Of each kind (``of``) the ``ns`` of
    its ``rows`` sum to it as well: their share of the tail, times how much slower they are than the middle.
    """

    metric: Literal["e2e"]
    since: str | None = Field(description="UTC; null where no capture has dates")
    until: str | None
    service: str | None
    services: dict[str, int] = Field(description="of which services the captures are, and how many of each")
    captures: int
    replicas: int
    requests: int
    left_out: dict[str, int] = Field(description="captures that were not looked at, by why")
    verdict: Literal["explained", "nothing_stands_out", "could_not_tell"]
    reason: str
    quantile: float | None = Field(description="of the tail: 0.99, 0.95 or 0.9; null for too few requests")
    p50_ms: float | None
    quantile_ms: float | None
    tail: Cohort | None
    middle: Cohort | None
    gap_ns: int | None
    phases: list[TailPart]
    columns: list[str] = Field(
        description="of, what, in_tail, tail_share, in_middle, middle_share, effect (of shares) with low and high, ns, named"
    )
    rows: list[list[Cell]] = Field(
        description="by kind: cause, rank, replica, host, service, prompt, output, ended by; the largest, and the others together"
    )
    replica_columns: list[str] = Field(
        description="replica, name, requests, p50_ms, quantile_ms, in_tail, tail_share, share (of all), times, without_ms, named"
    )
    replica_rows: list[list[Cell]] = Field(
        description="those with most of the tail; times: of their share of all; without_ms: the quantile of all others"
    )
    examples: list[TailExample]
    explanation: str
