"""The models of an operator explained: part of what :mod:`teller_core.data.report` says."""

from typing import Literal

from pydantic import Field

from teller_core.data.report import Model, SliceLine


class KernelName(Model):
    """A kernel's name taken apart. What it does not say is null."""

    library: str = Field(description="whose kernel it is")
    precision: str | None = Field(description="the element types that the name has, inputs first, as bf16/fp32")
    tile: str | None = Field(description="what one block works on, as 128x64x32")
    stages: int | None = Field(description="tiles in flight")
    architecture: str | None = Field(description="the device that it was made for, as sm90 or gfx942")
    layout: str | None = Field(
        description="which operands are transposed (T) or not (N), or the order of a tensor (NHWC)"
    )
    activation: str | None = Field(description="the function that is fused behind it")


class OperatorPlace(Model):
    """How an operator does in one context."""

    place: str
    phase: str
    count: int
    total_ms: float
    median_ms: float
    p95_ms: float | None
    slowest: list[SliceLine]


class Roofline(Model):
    """How near calls come to what their device can do. Bytes are the least that have to move; attention counts every key."""

    device: str
    flops: int
    bytes: int
    bound: Literal["compute", "memory"]
    least_ms: float = Field(description="what the device needs at best")
    reached: float = Field(description="share of the roof: the least over the median")
    source: str = Field(description="who says what the device can do")


class OperatorShapes(Model):
    """The calls of an operator with one set of inputs."""

    inputs: str = Field(description="type and sizes of each tensor, as float[32x16]")
    calls: int
    total_ms: float
    median_ms: float
    roofline: Roofline | None = None
    roofline_note: str = Field(default="", description="why there is none")


class LastRank(Model):
    """A rank that others waited for."""

    rank: int = Field(description="its position in ranks, from 0")
    calls: int = Field(description="in how many calls it was waited for")


class Waits(Model):
    """What the calls of a collective waited for the last rank: time that is not their own."""

    calls: int
    known: int = Field(description="of how many the clocks tell it")
    took_ms: float | None = Field(description="of those calls, from begin to end; null where no clock tells")
    waited_ms: float | None
    last: list[LastRank] = Field(description="for whom, most often first")


class UsualTrouble(Model):
    """A cause that often strikes operators of its kind. It says nothing of this capture."""

    cause: str
    title: str
    next_check: str
    fix: str


class OperatorReport(Model):
    """The answer of ``explain-op``."""

    capture: str
    name: str
    layer: str
    what_it_is: str
    kernel: KernelName | None = Field(
        default=None, description="what a kernel's name says; null for no kernel, or an unknown one"
    )
    calls: int
    total_ms: float
    share: float | None = Field(description="of all self time in its layer")
    places: list[OperatorPlace]
    shapes: list[OperatorShapes] = Field(
        default=[], description="what it is called with, where that was recorded, most time first"
    )
    waits: Waits | None = Field(default=None, description="of a collective; null for other operators")
    launched_by: list[str]
    launches: list[str]
    usual_troubles: list[UsualTrouble] = Field(description="what often troubles its kind, whether or not it did here")
    note: str
