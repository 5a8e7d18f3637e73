"""``capture_trace``: record a service, as the person who runs the server has allowed."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from mcp.server.mcpserver import Context, Elicit
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from teller_core.data.report import ImportReport
from teller_core.errors import InputError
from teller_mcp.answers import JobsAnswer, then
from teller_mcp.captures import Captures
from teller_mcp.consent import GIVEN, Consent, agreed, can_ask
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.profiles import Profile

ASKING_S = 300.0
"""A person may take a while to read what is to be started."""
audit = logging.getLogger("teller.audit")


def capture_trace(
    desk: Desk,
    *,
    profile: Annotated[str | None, Field(description="default: list them", max_length=40)] = None,
    seconds: Annotated[float | None, Field(gt=0)] = None,
    window_s: Annotated[float | None, Field(description="profiler detail", ge=0)] = None,
    consent: Any = None,
) -> JobsAnswer:
    """Record a service by a profile its operator defined, within its bounds; returns a job at once. Then call job."""
    captures = of(desk)
    if profile is None:
        calls = [then("capture_trace", "start it", profile=line.name) for line in captures.lines()[:2]]
        return JobsAnswer(job=None, profiles=captures.lines(), next=calls)
    known = captures.profile(profile)
    if not agreed(consent):
        audit.info("capture profile=%s consent=declined", profile)
        raise ToolError("The user did not agree. Nothing was started; do not ask again unless the user wants it.")
    job = captures.start(
        profile, seconds=seconds, window_s=window_s, consent=known.consent, read=lambda folder: _read(desk, folder)
    )
    return JobsAnswer(
        job=job, profiles=[], next=[then("job", "wait for it; again until it is done", id=job.id, wait_s=20)]
    )


def of(desk: Desk) -> Captures:
    """What may be recorded."""
    assert desk.captures is not None, "the tool is absent where nothing may be recorded"
    return desk.captures


def _read(desk: Desk, folder: Path) -> ImportReport:
    with desk.store(read_only=False) as (verbs, store):
        return verbs.import_paths([folder], store, together=True)


def _asks(desk: Desk) -> Callable[..., Any]:
    def ask(
        context: Context[Any, Any], profile: str | None, seconds: float | None, window_s: float | None
    ) -> Consent | Elicit[Consent]:
        if profile is None:
            return GIVEN
        known = of(desk).profile(profile)
        of(desk).check(known, seconds, window_s)
        if known.consent == "given":
            return GIVEN
        if not can_ask(context):
            raise InputError(
                f"The profile {profile}",
                "a person has to agree each time, and this client cannot ask one",
                'Whoever runs the server sets consent = "given" in the profile, or records on the command line',
            )
        return Elicit(_question(profile, known, seconds or known.seconds), Consent)

    return ask


def _question(name: str, known: Profile, seconds: float) -> str:
    what = {
        "command": f"run {' '.join(known.command or [])[:300]}",
        "attach": "open a profiler window in the capture that runs",
        "endpoint": f"let the engine at {known.endpoint} profile itself",
    }[known.kind]
    return f"Record with the profile {name}: {what}, for at most {seconds:g} s and {known.megabytes} MB?"


CAPTURE_TRACE = ToolSpec(
    title="Record a service",
    run=capture_trace,
    answer=JobsAnswer,
    read_only=False,
    deadline_s=ASKING_S,
    idempotent=False,
    open_world=True,
    asks=_asks,
)
