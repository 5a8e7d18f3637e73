"""Answers about recording a running service: what ``capture`` left, and what others say of recordings."""

from typing import Literal

from pydantic import Field

from teller_core.data.report_findings import Model


class ProfileLine(Model):
    """One thing that the server may record, with the most that may be asked of it."""

    name: str
    about: str
    kind: Literal["command", "attach", "endpoint"]
    seconds: float
    megabytes: int
    window_s: float
    consent: Literal["ask", "given"] = Field(description="ask: a person is asked each time")


class JobReport(Model):
    """A recording that the server runs, and what became of it."""

    id: str
    profile: str
    state: Literal["starting", "recording", "ending", "importing", "done", "failed", "canceled"]
    elapsed_s: float
    seconds: float = Field(description="the most it takes, importing aside")
    megabytes: float
    ended_by: Literal["time", "size", "itself", "asked", "owner_gone"] | None = Field(
        description="itself: the command or the window ended; null while it runs"
    )
    exit: int | None = Field(
        description="status of the recorded command, negative for a signal, null where there is none"
    )
    capture: str | None = Field(description="what it was imported as, null until it is done")
    recording: str = Field(description="name of its folder, which is kept")
    error: str | None


class JobsReport(Model):
    """The job that was asked for, and what may be recorded."""

    job: JobReport | None
    profiles: list[ProfileLine] = Field(description="what may be recorded")


class MergedMachine(Model):
    """One machine of a merged recording."""

    name: str = Field(description="of its folder, and of the machine in all answers")
    host: str = Field(description="what it calls itself")
    files: int
    bytes: int
    clock_error_ms: float | None = Field(description="by its own kernel, null where nothing disciplines its clock")


class MergeReport(Model):
    """Recordings of several machines that are one now."""

    folder: str
    machines: list[MergedMachine]
    same_clock: bool = Field(description="all were recorded on one machine")
    clock_error_ms: float | None = Field(description="by which two clocks may differ before collectives tell, or null")
    clock_note: str


class DroppedFile(Model):
    """What a bound took of one file of a recording."""

    file: str
    pieces: int = Field(description="whole pieces that are gone; 0 where its beginning was cut away")
    bytes: int
    until_ns: int = Field(description="Unix ns until when what is gone had been written")


class OffPart(Model):
    """A part of the recorder that was not switched on."""

    part: str
    why: str


class DoctorCheck(Model):
    """One thing that a recording may hold, or needs."""

    part: str
    state: Literal["yes", "partly", "no", "note"] = Field(
        description="yes: it will be, or was, recorded; no: it will not; note: it bears on what is recorded"
    )
    found: str = Field(description="what was looked at and how it is")
    next: str | None = Field(default=None, description="what to do about it, null where nothing is to be done")


class RecipeFile(Model):
    """A file that a recipe needs beside the engine."""

    name: str
    about: str
    content: str


class RecipeReport(Model):
    """How an engine is started so that it leaves what a tier needs, with no process of ours around it."""

    engine: str
    door: Literal["plugin", "flags", "capture"] = Field(
        description="plugin: a stat logger of ours that the engine loads; flags: what the engine has itself; "
        "capture: the engine has no door, our recorder is the way"
    )
    tier: int
    tested: str | None = Field(description="the version whose parser knows these arguments, null where none was run")
    environment: dict[str, str]
    arguments: list[str]
    helm: str | None = Field(default=None, description="values of the chart, where they were asked for")
    files: list[RecipeFile]
    gives: list[str] = Field(description="what is then recorded")
    then: list[str] = Field(description="what to do with it, in turn, from its start to reading what it left")
    notes: list[str]


class DoctorReport(Model):
    """The answer of ``doctor``: what can be recorded here, or what became of a recording, or a recipe."""

    subject: Literal["here", "recording", "recipe"]
    name: str = Field(description="the interpreter, the recording, or the engine that it is about")
    checks: list[DoctorCheck]
    recipe: RecipeReport | None = None


class CaptureRunReport(Model):
    """What `capture` left of a command that has ended."""

    folder: str
    engine: str = Field(description="empty where the command is no engine that is known")
    exit: int = Field(description="status of the command, negative for a signal")
    duration_ms: float
    bytes: int = Field(description="on disk")
    processes: int = Field(description="of the command, that the recorder ran in and that had something to say")
    requests: int | None = Field(description="that the hooks saw arrive; null without hooks for this engine")
    engine_steps: int | None = Field(description="that the hooks saw; null without hooks for this engine")
    windows: int = Field(description="of the profiler, that were asked for")
    on: list[str] = Field(description="parts of the recorder that were switched on")
    off: list[OffPart]
    dropped: list[DroppedFile] = Field(description="what the bounds in bytes and time took")
    lost: int = Field(description="counters and states that the disk did not take")
    recorder_cpu_ms: float = Field(description="processor time of the recording thread, outside of the command")
    checks: list[DoctorCheck] = Field(description="what `doctor` finds missing or worth a look in the recording")
    next_call: str
