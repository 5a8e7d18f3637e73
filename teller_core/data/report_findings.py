"""The models of what is found and of what it stands on, for :mod:`teller_core.data.report`: part of every answer with a cause."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

View = Literal["vertical", "horizontal"]
Scope = Literal["this_request", "its_steps", "similar_steps", "capture"]


class Model(BaseModel):
    """A frozen answer that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class EvidenceItem(Model):
    """Something of the capture that a claim stands on."""

    kind: str = Field(description="span, log_line, step, pause, sample, decision, collective, count")
    scope: Scope
    span: str | None = Field(
        default=None, description="handle of a span: RANK:ROW, its rank by its position in ranks, from 0"
    )
    log_line: str | None = Field(default=None, description="FILE:LINE")
    step: int | None = None
    name: str | None = None
    value: float | None = None
    normal: float | None = None
    unit: str | None = None
    untrusted_text: str | None = None


class Finding(Model):
    """One cause, where it struck, and how sure that is."""

    cause: str
    title: str
    step: int | None
    rank: int | None
    view: View
    operator: str | None
    layer: str
    confidence: float
    cost_ms: float | None = Field(default=None, description="what it cost in all; null where that has no length")
    saving_ms: float | None
    saving_low_ms: float | None
    saving_high_ms: float | None
    saving_assumes: str = Field(description="what the saving takes for granted, or why there is none")
    rescheduled_ms: float | None = Field(default=None, description="the saving, had the engine batched anew")
    rescheduled_low_ms: float | None = None
    rescheduled_high_ms: float | None = None
    rescheduled_assumes: str = Field(default="", description="what that takes for granted, or why it is null")
    evidence: list[EvidenceItem]
    fix: str
    against: list[str] = Field(description="look-alikes that were considered, and what speaks against them")


class Together(Model):
    """What the end of several causes at once would save: it is computed anew, and is not the sum of what each saves."""

    causes: list[str]
    saving_ms: float | None
    saving_low_ms: float | None
    saving_high_ms: float | None
    saving_assumes: str = Field(description="what the saving takes for granted, or why there is none")
    rescheduled_ms: float | None = Field(description="the saving, had the engine batched anew")
    rescheduled_low_ms: float | None
    rescheduled_high_ms: float | None
    rescheduled_assumes: str = Field(description="what that takes for granted, or why it is null")
