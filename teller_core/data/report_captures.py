"""The models of what was imported and what can be, for :mod:`teller_core.data.report`."""

from typing import Literal

from pydantic import Field

from teller_core.data.report_findings import Finding, Model

MappingWord = Literal["recorded", "inferred", "unknown"]


class FileReport(Model):
    """How one file was read."""

    name: str
    format: str
    clock: str
    events_in_file: int
    events_kept: int
    events_other: dict[str, int] = Field(description="records that are no events of their own, by kind")
    problems: dict[str, int] = Field(description="events that could not be kept as they are, by name")
    kernels: int = 0
    kernel_time_ns: int = 0


class RankReport(Model):
    """One process of the service."""

    rank: int
    host: str
    pid: int
    role: str
    spans: int
    kernels: int
    kernel_time_ns: int
    clock_error_ns: int | None
    problems: dict[str, int]
    start: int | None = Field(default=None, description="Unix ns of its first span, null without a trace")
    stop: int | None = Field(default=None, description="Unix ns of the end of its last span")


class JoinReport(Model):
    """How much of one recording of a process was found again in another one."""

    kind: Literal["graph", "execution_trace"]
    name: str = Field(description="of a graph: the annotation that it was captured under")
    rank: int | None = Field(description="position in ranks")
    matched: int = Field(
        description="kernels of replays that have an operator; operators of an execution trace found among the spans"
    )
    of: int
    used: int = Field(description="operators whose shapes, or collective's name, come from the execution trace")
    launches: int = Field(description="replays of the graph")
    by_name: bool = Field(description="names agreed; else the order alone told which kernel is which")


class IdentityReport(Model):
    """Whether what was scheduled for each request adds up, every term recorded by itself, in tokens:
    scheduled = prompt - cached - remote + recomputed + rejected + surplus + unused + output - 1.
    """

    checked: int = Field(description="requests whose terms were all recorded")
    holds: int = Field(description="those of them for which the sum holds")
    terms: dict[str, int] = Field(description="the sums of the terms over the requests that were checked")
    unchecked: dict[str, int] = Field(description="requests that could not be checked, by why")


class CaptureReport(Model):
    """What one capture holds."""

    id: str
    name: str
    engine: str | None
    files: list[FileReport]
    ranks: list[RankReport]
    steps: int
    requests: int
    log_lines: int
    kernels: int
    kernel_time_ns: int
    clock_error_ns: int | None
    mapping: MappingWord
    steps_with_requests: int | None = Field(
        default=None, description="steps whose requests are known, null in captures of before this was counted"
    )
    identity: IdentityReport | None = Field(default=None, description="null where outcomes of steps were not recorded")
    tier: int
    problems: dict[str, int]
    joined: list[JoinReport] = Field(default=[], description="what execution traces and captures of graphs gave")
    redactions: int
    findings: list[Finding] = Field(
        default=[],
        description="what the capture tells without any request: ranks that others wait for, calls that do not fit",
    )
    reference: str = Field(
        default="", description="the saved baseline that it was held against at import, empty: what is usual in itself"
    )
    already_known: bool
    imported_at: str


class ImportReport(Model):
    """The answer of ``import``."""

    captures: list[CaptureReport]


class CapturesReport(Model):
    """The answer of ``captures``."""

    captures: list[CaptureReport]
    note: str = Field(default="", description="what has changed since they were imported, empty for nothing")


class FormatReport(Model):
    """One kind of file that can be read."""

    name: str
    what: str = Field(description="what it is")
    files: str = Field(description="names or endings that such files usually have; the content decides")
    tier: int | None = Field(description="the best tier that such files alone give, null where they only add to others")
    tried: bool = Field(description="real files of it were read")


class FormatsReport(Model):
    """The answer of ``formats``."""

    formats: list[FormatReport]
