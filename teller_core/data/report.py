"""Every answer that leaves TELLER: one set of models for ``--json``, the store, MCP and the HTML report.

A measurement that was not made is null, with a reason beside it, never 0. Durations are integer nanoseconds (``_ns``) where
they must sum, and milliseconds (``_ms``) where people read them. Text from traces and logs stands in fields named
``untrusted_text`` and nowhere else, save names of operators, requests and files, which are cleaned and cut.
"""

from typing import Literal

from pydantic import Field

from teller_core.data.report_captures import (
    CaptureReport,
    CapturesReport,
    FileReport,
    FormatReport,
    FormatsReport,
    IdentityReport,
    ImportReport,
    JoinReport,
    MappingWord,
    RankReport,
)
from teller_core.data.report_findings import EvidenceItem, Finding, Model, Scope, Together, View

__all__ = [
    "CaptureReport",
    "CapturesReport",
    "EvidenceItem",
    "FileReport",
    "FormatReport",
    "FormatsReport",
    "IdentityReport",
    "ImportReport",
    "JoinReport",
    "MappingWord",
    "RankReport",
    "Scope",
    "Together",
]  # what is part of answers and is written down elsewhere

Verdict = Literal["cause", "normal", "typical_here", "could_not_tell"]
JudgedBy = Literal["numbers and rules", "numbers, rules and model"]
Metric = Literal["e2e", "ttft", "tpot", "itl_max", "slo"]
Cell = str | int | float | bool | None


class LongWait(Model):
    """A collective in which ranks waited for one that came late. Null: the clocks do not allow to tell."""

    handle: str = Field(
        description="its span on the rank that came last, or on one that met: RANK:ROW; empty without a trace"
    )
    kind: str
    untrusted_text: str = Field(description="the group it is of, as its producer calls it")
    ranks: int
    late_rank: int | None = Field(description="the number of the rank that came last, null where nobody may be named")
    late_by_ms: float | None = Field(description="how long after the one before it")
    waited_ms: float = Field(description="by all other ranks together")
    transfer_ms: float | None = Field(description="the shortest time that a rank needed without waiting")
    kept_by: str | None = Field(description="what took most of that time on the late rank")
    kept_handle: str | None
    matched_by: str = Field(description="why these calls are one collective: sequence, recorder, step or order")


class RankShare(Model):
    """One rank's part in collectives. Null: no collective allows to tell."""

    rank: int = Field(description="its number, -1 where it has none")
    position: int | None = Field(description="what handles of its spans begin with, null without a trace")
    host: str
    collectives: int
    waited_ms: float | None = Field(description="that it waited for others")
    waited_for_ms: float | None = Field(description="that others waited for it, where it came last")
    times_late: int | None
    transfer_ms: float | None = Field(description="in collectives whose waiting can be told, without it")
    missing: int = Field(description="collectives to which it did not come while others waited")
    clock_error_us: float | None = Field(description="bound of the error of its clock in the recorded window")


class Bound(Model):
    """Where a quantile of a histogram lies: above one bound and at most at the other, null where its last bucket has none."""

    above_ms: float
    at_most_ms: float | None


class ServiceMeasure(Model):
    """A time that the service measured of all its requests: quantiles of a histogram, which knows bounds and no points."""

    name: str = Field(description="e2e, ttft, itl, tpot, queue, prefill, decode")
    count: int
    start: int | None = Field(description="Unix ns: counted from then, null where nothing tells")
    stop: int | None
    p50: Bound
    p90: Bound
    p99: Bound


class ServiceLevel(Model):
    """A gauge or a counter of the service or its machine over the pages of /metrics. Null: not of this kind, or not told."""

    name: str
    unit: str
    lowest: float | None = None
    highest: float | None = None
    last: float | None = None
    early: float | None = Field(default=None, description="mean of the first third of the readings, from six on")
    late: float | None = Field(default=None, description="mean of the last third")
    growth: float | None = Field(default=None, description="of a counter: between the first and the last page")
    per_second: float | None = None
    readings: int


class Ask(Model):
    """A question that has an answer where the one that was asked has none."""

    verb: Literal["slow", "slice", "captures"]
    capture: str
    view: View | None = None
    target: str | None = Field(default=None, description="of slice")
    why: str


class Contrast(Model):
    """The slowest quarter of the requests beside the others, a row a respect in which they were compared, what is claimed first.

    Columns: ``what``, ``unit`` (``share``: of those of whom it is so), ``slow`` and ``fast`` (medians, or shares), ``effect``
    (Cliff's delta, -1 to 1: the chance that a slow one has more, less the chance that it has less), with a confidence of 95 %
    from ``low`` to ``high``, ``of_slow`` and ``of_fast`` requests, ``claimed`` (clear, and no chance among all that were tried),
    and ``untrusted_text`` of log lines.
    """

    slow: int
    fast: int
    tried: int
    columns: list[str]
    rows: list[list[Cell]]
    note: str = ""


class SlowReport(Model):
    """The answer of ``slow``: a table, slowest first; in the horizontal view one row a rank, who was waited for most first."""

    capture: str
    view: Literal["vertical", "horizontal", "fleet"] = Field(
        default="vertical", description="fleet: of `list_slow_requests` alone"
    )
    metric: Metric
    columns: list[str]
    rows: list[list[Cell]]
    total: int
    next_cursor: str | None
    note: str = Field(description="what the slow ones have that the others have not, or why that cannot be said")
    contrast: Contrast | None = Field(
        default=None, description="first page: what that rests on; null for too few requests"
    )
    waits: list[LongWait] = Field(
        default=[], description="horizontal view: the collectives that were waited in longest"
    )
    service: list[ServiceMeasure] = Field(
        default=[], description="first page: times by the service's own histograms, of all its requests"
    )
    levels: list[ServiceLevel] = Field(
        default=[], description="first page: gauges and counters of its /metrics or its log"
    )
    instead: list[Ask] = Field(default=[], description="where no request was recorded: what can be asked instead")


class Part(Model):
    """One part of a whole. Null where it has no source: its time is then inside ``unexplained``."""

    part: str
    ns: int | None
    source: str = Field(description="what it was measured from, or why it is null")


class Coverage(Model):
    """How much of the request was seen in detail."""

    steps: int | None = Field(description="steps it took part in, null where that is unknown")
    profiled: int
    mapping: MappingWord
    lost: dict[str, int] = Field(
        default_factory=dict, description="what was lost on the way and could change this answer, by the problem's name"
    )


class WhyReport(Model):
    """The answer of ``why``."""

    capture: str
    request: int
    engine_id: str | None
    metric: Metric
    began: str | None = Field(default=None, description="its earliest time, UTC where the files tell their zone")
    value_ms: float | None
    verdict: Verdict
    reason: str
    tier: int
    coverage: Coverage
    confidence: float
    over_slo: float | None
    over_work: float | None
    over_load: float | None
    phases: list[Part]
    resources: list[Part]
    findings: list[Finding]
    together: Together | None = Field(
        default=None, description="what the end of all findings that save something would save; null for fewer than two"
    )
    explanation: str
    next_checks: list[str]
    not_seen: list[str]
    ranks: list[RankShare] | None = Field(default=None, description="the ranks in the collectives of its steps")
    ranks_note: str = Field(default="", description="why ranks is null, or what it leaves open")
    finish_reason: str | None = Field(default=None, description="why its answer ended, by the engine's word")
    reference: str = Field(
        default="", description="the saved baseline that it was held against, empty: what is usual in its own capture"
    )
    judged_by: JudgedBy = Field(default="numbers and rules", description="what the verdict comes from")
    model: str = Field(default="", description="why the model has no part in it; empty where it has, or was not asked")
    unsaid: dict[str, int] = Field(
        default_factory=dict, description="sentences of the model that were dropped, by what was wrong with them"
    )


class SliceLine(Model):
    """One line of a causal slice."""

    handle: str
    depth: int
    text: str
    layer: str
    start_ms: float
    dur_ms: float
    self_ms: float | None = Field(description="null: of a step, a stage of it or a request, whose time its spans hold")
    residual: float | None = Field(
        description="how unusual its own time is, in standard deviations; null: not known to be"
    )
    count: int = Field(default=1, description="spans the line stands for")


class SliceReport(Model):
    """The answer of ``slice``."""

    capture: str
    step: int | None
    request: int | None
    rank: int | None
    lines: list[SliceLine]
    events: int
    tokens: int
    budget: int
    cut: int = Field(description="spans of the step that the budget left out")
    note: str


class Difference(Model):
    """One thing that differs."""

    what: str
    layer: str
    before: float | None
    after: float | None
    unit: str
    ratio: float | None
    low: float | None = Field(description="the ratio lies between low and high with a confidence of 95 %")
    high: float | None
    sure: bool = Field(description="chance does not explain it")


class CompareReport(Model):
    """The answer of ``compare``."""

    before: str
    after: str
    kind: Literal["captures", "requests"]
    differences: list[Difference]
    explanation: str
    note: str


class ErrorBody(Model):
    """A refusal."""

    kind: str
    message: str
    next: str


class ErrorReport(Model):
    """What ``--json`` prints on a refusal."""

    error: ErrorBody


class TruthReport(Model):
    """What the demo did to the service."""

    cause: str | None
    struck: list[str]


class DemoReport(Model):
    """The answer of ``demo --json``."""

    truth: TruthReport
    answer: WhyReport
