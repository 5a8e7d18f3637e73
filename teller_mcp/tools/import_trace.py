"""``import_trace``: files -> the store."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

from pydantic import Field

from teller_core.data.report import CaptureReport
from teller_core.errors import StoreError, TellerError
from teller_core.tell.next_calls import comparable
from teller_mcp.answers import ImportAnswer, NextCall, fit, is_plain, room, short, then
from teller_mcp.desk import Desk, ToolSpec
from teller_mcp.paths import allowed
from teller_mcp.tools.arguments import Detail, MaxChars

CUTS = (
    ("captures.files", 3),
    ("captures.ranks", 4),
    ("captures", 5),
    ("captures.files", 0),
    ("captures.ranks", 0),
    ("captures", 1),
)


def import_trace(
    desk: Desk,
    *,
    paths: Annotated[list[str], Field(description="files, folders, archives, patterns, in an allowed folder")],
    together: Annotated[
        bool | None, Field(description="true: one capture; false: one each; default: by folder")
    ] = None,
    detail: Detail = "normal",
    max_chars: MaxChars = None,
) -> ImportAnswer:
    """Read what an LLM service left behind: profiler traces, logs, metrics, request spans and records, packed or not.
    Files recorded together make one capture. Importing again is free and safe. Says what was read and what was not.
    Start here."""
    files = allowed(paths, desk.roots)
    with desk.store(read_only=False) as (verbs, store), _plainly_named():
        report = verbs.import_paths(files, store, together=together, only_below=desk.roots)
    having = sorted(report.captures, key=lambda capture: not capture.requests)
    calls = [_first(capture) for capture in having[:2]]
    if comparable(report.captures):
        before, after = (short(capture.id) for capture in report.captures)
        calls[1] = then("compare", "what differs, the first being before", before=before, after=after)
    return fit(ImportAnswer(**dict(report), next=calls), room(detail, max_chars), CUTS)


@contextmanager
def _plainly_named() -> Generator[None]:
    """A refusal does not call a file by a name that is no plain one: whoever gave it may have written it for the model."""
    try:
        yield
    except StoreError:
        raise
    except TellerError as error:
        if is_plain(error.what):
            raise
        raise type(error)("What was named, or a file in it", error.why, error.next_step) from None


def _first(capture: CaptureReport) -> NextCall:
    if not capture.requests and len(capture.ranks) > 1:
        why = "no request is recorded: the ranks side by side"
        return then("list_slow_requests", why, view="horizontal", capture=short(capture.id))
    why = "find the slow requests" if capture.requests else "no request is recorded: what it tells instead"
    return then("list_slow_requests", why, capture=short(capture.id))


IMPORT_TRACE = ToolSpec(
    title="Import traces and logs", run=import_trace, answer=ImportAnswer, read_only=False, deadline_s=25.0
)
