"""Asking a person before something is recorded, in clients that can ask."""

from typing import Any

from mcp.server.mcpserver import Context
from pydantic import BaseModel, Field


class Consent(BaseModel):
    """What a person answers."""

    agreed: bool = Field(description="Start it now")


GIVEN = Consent(agreed=True)


def can_ask(context: Context[Any, Any]) -> bool:
    """Whether the client shows its user a form. One that names no kinds of questions, as old ones do, means forms."""
    capabilities = context.client_capabilities
    asking = None if capabilities is None else capabilities.elicitation
    return asking is not None and (asking.form is not None or asking.url is None)


def agreed(outcome: Any) -> bool:
    """Whether ``outcome``, the SDK's of a question for Consent, is that the person agreed."""
    return outcome.action == "accept" and outcome.data.agreed
