"""The model of the answer of ``what-if``: what a request would have gained had something taken another time."""

from typing import Literal

from pydantic import Field

from teller_core.data.report_findings import Model


class Gain(Model):
    """How much sooner it would have come, between two bounds. Null: no claim is made, and ``saving_assumes`` says why."""

    saving_ms: float | None
    saving_low_ms: float | None
    saving_high_ms: float | None
    saving_assumes: str = Field(description="what the saving takes for granted, or why there is none")


class ScheduleCheck(Model):
    """How well a simulation of the engine's scheduler reproduces what was recorded. Shares are from 0 to 1."""

    decisions: float = Field(description="made as recorded, from what was there before each of them")
    prompts: float = Field(description="the same of those about prompts")
    batches: float = Field(description="that come out as recorded where only the arrivals are given")
    first_tokens: float = Field(description="that come then within 10 % of their time")
    corrected: float = Field(description="of the requests, those of which the admission corrected when they came")
    bias: float = Field(
        description="of first-token times as a rule where steps take what the others teach: 0.05 is 5 % late"
    )


class Neighbor(Model):
    """Another request, and what one cost the other."""

    request: int
    beside_ms: float = Field(description="in steps that served both")
    before_ms: float = Field(description="in steps that served the one while the other waited")


class WhatIfReport(Model):
    """The answer of ``what-if``."""

    capture: str
    request: int
    metric: Literal["e2e", "ttft"]
    value_ms: float | None
    supposed: list[str] = Field(description="what is taken to have been otherwise, all of it together")
    steps: int = Field(description="steps that would have taken another time")
    same_schedule: Gain = Field(description="with the batches as they were recorded")
    rescheduled: Gain = Field(description="with batches that the engine would have made anew")
    check: ScheduleCheck | None = Field(description="null: too little was recorded to simulate the scheduler")
    slowed_by: list[Neighbor] = Field(description="who slowed the request down, the worst first")
    slowed: list[Neighbor] = Field(description="whom it slowed down")
    note: str
