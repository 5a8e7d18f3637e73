"""The answers of the lab: what was done to a real service, which latency it moved by how much, and what a change saves."""

from typing import Literal

from pydantic import Field

from teller_core.data.report_findings import Model


class MovedLine(Model):
    """One latency of struck windows beside the same work in healthy windows of the same server's life."""

    latency: Literal["ttft", "itl_mean", "itl_max", "e2e"]
    ratio: float = Field(description="median over requests of struck / healthy")
    low: float = Field(description="lower end of its 95 % interval")
    high: float = Field(description="upper end")
    requests: int


class WindowLine(Model):
    """One window of the server's life, in the order of their running. Null: the system does not count it."""

    round: int
    kind: Literal["healthy", "struck"]
    profiled: bool = Field(description="some of its steps were: it is in none of the ratios")
    begin_ns: int
    end_ns: int = Field(description="in a struck one of the fault, as the injector itself told it")
    requests: int
    failed: int
    run_queue_wait_ms: float | None = Field(description="of the thread that computes")
    cpu_pressure_ms: float | None = Field(description="time in which some work on the machine waited for a processor")
    throttled_ms: float | None = Field(description="time for which a quota stopped the service")


class RejectedLine(Model):
    """Something that was done, and that moved nothing that can be told from noise."""

    fault: str
    severity: Literal["slight", "clear", "strong", "extreme"]
    why: str


class BuiltLine(Model):
    """What became of one life of the benchmark."""

    life: str
    side: Literal["train", "test"]
    bytes: int = Field(description="of its packed store")
    moved: int = Field(description="strikes that moved what they are judged by")
    rejected: list[RejectedLine]
    new: bool = Field(description="it was packed now")
    failed: str | None = Field(description="why it is not there, null where it is")


class LabBuildReport(Model):
    """What became of the lives that were asked for."""

    lives: list[BuiltLine]
    bytes: int = Field(description="of all that is packed, the truth included")


class LabRunReport(Model):
    """What one block of a server's life showed."""

    fault: str
    cause: str | None = Field(description="the one cause of the taxonomy, null for a hard negative")
    engine: Literal["vllm", "transformers"]
    severity: Literal["slight", "clear", "strong", "extreme"]
    seed: int
    knobs: dict[str, float]
    seconds: float
    window_noise: float = Field(
        description="standard deviation of a healthy window, of the logarithm of what it is judged by"
    )
    delays: int = Field(description="how many the injector saw")
    delayed_ms: float = Field(description="all of them together")
    judged_by: Literal["ttft", "itl_mean", "itl_max", "e2e"]
    moved: list[MovedLine]
    rejected: str | None = Field(description="why no latency counts as moved, null where one does")
    windows: list[WindowLine]
    bundle: str | None = Field(description="name of the recording that was kept")


class SavedLine(Model):
    """One latency of the same requests before and after one thing was changed."""

    latency: Literal["ttft", "itl_mean", "itl_max", "e2e"]
    ratio: float = Field(description="median over pairs of a request after / before")
    low: float = Field(description="lower end of its 95 % interval")
    high: float = Field(description="upper end")
    pairs: int
    faster: int = Field(description="requests whose own interval lies below 1")
    slower: int = Field(description="requests whose own interval lies above 1")
    undecided: int = Field(description="all others")
    saved_ms: float | None = Field(description="what the middle request saves, null for too few pairs of each")


class ForetoldLine(Model):
    """What requests would have taken under the other limit, foretold from windows under one: means a request, and shares off."""

    start: int
    learned: Literal["before", "after"] = Field(description="the change: whose windows alone were looked at")
    latency: Literal["ttft", "e2e"]
    requests: int
    took_ms: float | None
    saved_ms: float | None = Field(description="under the other limit, as measured; negative for longer")
    noise_ms: float | None = Field(
        description="how far that may be off, by what rounds differ by; null for a single one"
    )
    foretold_ms: float | None
    off: float | None = Field(
        description="share of what was saved, or lost; null where it is little, or beside the noise"
    )
    own_steps_off: float | None = Field(description="the same of what a request's own steps alone would say")
    scaled_off: float | None = Field(description="the same of its time, scaled as the limit is")
    silent: str | None = Field(description="why nothing is foretold")


class LabRerunReport(Model):
    """What one change of a real service saves, and what would have been foretold of it."""

    engine: Literal["vllm", "transformers"]
    changed: Literal["chunk", "seats"]
    before: int | None = Field(description="null: what the engine has by itself")
    after: int
    fault: str | None = Field(description="what was done in all windows, before and after")
    severity: Literal["slight", "clear", "strong", "extreme"] | None
    seed: int
    seconds: float
    starts: int
    failed: int = Field(description="requests without an answer")
    moved: list[SavedLine]
    foretold: list[ForetoldLine]


class LiftedLine(Model):
    """What the requests of struck windows would have saved without one fault of a life."""

    block: int
    fault: str
    cause: str | None = Field(description="the one cause of the taxonomy, null for a hard negative")
    severity: Literal["slight", "clear", "strong", "extreme"]
    rejected: str | None = Field(description="why no latency counts as moved, null where one does")
    requests: int = Field(description="whose time from end to end can be compared")
    saved: int = Field(description="of these, whose own interval lies below 1")
    saved_ms: float | None = Field(description="from end to end, of the middle one; null where there is none")
    ratio: float | None = Field(description="of the middle one, without the fault / with it")


class LabLiftedReport(Model):
    """What lifting each fault of a life saves."""

    life: str
    faults: list[LiftedLine]


class PredictedLine(Model):
    """How well the end of a cause is predicted. Shares of what it cost, medians over strikes; null without one."""

    cause: str = Field(description="of the taxonomy, or all")
    what: Literal["requests", "steps", "profiled", "told"] = Field(
        description="whose time: profiled are steps, by replay; told are requests, as why says"
    )
    pairs: int = Field(description="strikes that were felt and of which something is predicted")
    silent: int = Field(description="strikes of which nothing is predicted")
    error: float | None = Field(description="of the prediction")
    own_error: float | None = Field(description="of another one: each takes less by what it lost itself")
    scaled_error: float | None = Field(description="of another one: each is as much shorter as what it consists of")
    noise: float | None = Field(description="by which the truth itself may be off: healthy twins differ by it")
    not_claimed: str | None = Field(description="why no such saving is to be claimed, null where one is")


class PredictedPair(Model):
    """One strike: what its fault cost, and what its end was predicted to save, in all."""

    life: str
    engine: Literal["vllm", "transformers"]
    fault: str
    cause: str
    severity: Literal["slight", "clear", "strong", "extreme"]
    role: str = Field(description="whom it struck")
    what: Literal["requests", "steps", "profiled", "told"]
    count: int = Field(description="of them")
    felt: bool = Field(description="it took enough of their time to be compared")
    silent: str | None = Field(description="why nothing is predicted, null where something is")
    before_ms: float = Field(description="what they took with the fault")
    truth_ms: float = Field(description="by how much less their healthy twins took")
    noise_ms: float = Field(description="by which that may be off")
    predicted_ms: float
    own_ms: float
    scaled_ms: float


class LabPredictedReport(Model):
    """How well the end of faults is predicted, over packed lives."""

    side: Literal["train", "test"]
    lives: int
    causes: list[PredictedLine]
    pairs: list[PredictedPair]
