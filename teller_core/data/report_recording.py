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
