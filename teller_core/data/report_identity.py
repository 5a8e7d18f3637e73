"""The model of whether what was scheduled for each request adds up, for :mod:`teller_core.data.report`."""

from pydantic import Field

from teller_core.data.report_findings import Model


class IdentityReport(Model):
    """Whether what was scheduled for each request adds up, every term recorded by itself, in tokens:
    scheduled = prompt - cached - remote + recomputed + rejected + surplus + unused + output - 1.
    """

    checked: int = Field(description="requests whose terms were all recorded")
    holds: int = Field(description="those of them for which the sum holds")
    terms: dict[str, int] = Field(description="the sums of the terms over the requests that were checked")
    unchecked: dict[str, int] = Field(description="requests that could not be checked, by why")
