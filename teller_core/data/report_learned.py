"""The models of what was learned of services, for :mod:`teller_core.data.report`."""

from pydantic import Field

from teller_core.data.report_findings import Model


class HealthyClaim(Model):
    """A cause that is claimed of requests of which all is well."""

    metric: str = Field(default="e2e", description="by which it is claimed")
    cause: str
    rate: float = Field(description="of how many of them, 0 to 1: by so much such a claim is less sure")
    costs: float = Field(description="of their time it costs 99 in 100 of them no more than this: only more is told")


class LearnedReport(Model):
    """A baseline: what is usual for one service. Null: another version learned it, and it is not read."""

    name: str
    service: dict[str, str] = Field(description="by which recorded facts it is told from others")
    learned_at: str
    captures: list[str]
    requests: int | None = Field(description="of the captures that it was learned from")
    steps: int | None = Field(description="of known duration")
    operators: int | None = Field(description="places of operators of which it knows what they take")
    levels: int | None = Field(description="counters, threads and zones of which it knows the usual level")
    claims: list[HealthyClaim]
    stale: str = Field(description="why it is not used any more, empty where it is")


class LearnReport(Model):
    """The answer of ``learn``: the baselines that were learned, or with --list and --forget those that there are."""

    learned: list[LearnedReport]
