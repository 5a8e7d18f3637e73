"""The models of what is drawn: what a request and its worst step went through beside a usual one, and what was written."""

from typing import Literal

from pydantic import Field

from teller_core.data.report import Metric
from teller_core.data.report_findings import Model

Drawn = Literal[
    "found", "request", "engine", "host", "python", "operator", "runtime", "kernel", "communication", "log"
]  # fmt: skip
"""What a row shows: a layer, what stood still on the host, or what the findings blame."""
Kind = Literal[
    "found",
    "before_server",
    "front_end",
    "queue",
    "own_prefill",
    "decode",
    "delivery",
    "token",
    "prefill_step",
    "decode_step",
    "mixed_step",
    "step",
    "others_step",
    "stage",
    "pause",
    "rank",
    "wait",
    "annotation",
    "python",
    "operator",
    "runtime",
    "kernel",
    "communication",
    "log",
]
"""What a mark stands for: it decides the color."""


class TimelineRow(Model):
    """One row of marks, as columns with one entry a mark, by start."""

    group: str = Field(description="what it is a row of: the request, the engine, a rank")
    layer: Drawn
    label: str = Field(description="empty for a row that goes on with the one above: what is inside its marks")
    start_ms: list[float] = Field(description="from the beginning of the panel")
    dur_ms: list[float]
    kind: list[Kind]
    text: list[str]
    count: list[int] = Field(description="things the mark stands for: over 1, they were too short to be drawn alone")
    finding: list[int] = Field(description="number of the finding that blames it, from 1; 0 for none")
    untrusted_text: list[str] = Field(default=[], description="of a row of log lines: the lines")


class TimelinePanel(Model):
    """A stretch of time of one request, or of one step, row by row."""

    shows: Literal["request", "step"]
    side: Literal["asked", "beside"] = Field(description="what was asked about, or the usual one beside it")
    request: int | None
    step: int | None
    title: str
    length_ms: float
    rows: list[TimelineRow]
    merged: int = Field(description="things that are drawn together with others, too short to be drawn alone")
    left_out: int = Field(description="spans without a row: too deep, or on a thread or a rank that is not drawn")
    note: str


class TimelineReport(Model):
    """A request, and its worst step, beside usual ones of like work: data to draw. Panels of one kind share one scale."""

    capture: str
    request: int
    metric: Metric
    beside: int | None = Field(description="the request that it is set beside, null where none is like it")
    beside_why: str = Field(description="why that one, or why none")
    panels: list[TimelinePanel]
    note: str


class WrittenReport(Model):
    """The answer of ``report`` and of ``slice --chrome``: a file was written."""

    file: str
    bytes: int
    what: str
    open_with: str
    events: int | None = Field(default=None, description="of a trace: the spans in it")
    timeline: TimelineReport | None = Field(default=None, description="of a report: what its picture was drawn from")
