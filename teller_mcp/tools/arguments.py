"""Arguments that several tools take, described once. Descriptions are short: every client sends them to its model."""

from typing import Annotated, Literal

from pydantic import Field

Capture = Annotated[str | None, Field(description="id or prefix; default: the newest", max_length=64)]
Detail = Literal["concise", "normal", "full"]
MaxChars = Annotated[int | None, Field(ge=500, le=19_000)]
Metric = Annotated[
    Literal["e2e", "ttft", "tpot", "itl_max", "slo"],
    Field(description="end to end, first token, per output token, longest gap, against slo_ms"),
]
SloMs = Annotated[float | None, Field(description="the promised latency, ms", gt=0)]
When = Annotated[str | None, Field(description="fleet: UTC date, or 6h before the last", max_length=40)]
WhatIf = Annotated[
    list[Annotated[str, Field(max_length=200)]] | None,
    Field(description="'step 17=10ms', '0:123=1ms'"),
]
Request = Annotated[str | int, Field(description="its number, or the engine's, client's or trace id")]
