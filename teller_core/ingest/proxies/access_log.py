"""Access logs with durations: nginx, Envoy and Istio, HAProxy, Traefik, Caddy, AWS load balancers, as text or JSON lines.

Kept are the requests that may generate: those with POST. Of a request's line only its path stays, of headers only its id.
A duration is kept under its producer's name, as ``nginx.upstream_response_time``: its origin is the producer's (see
``access_log_lines``). Logs of nginx and HAProxy were read as these wrote them, those of the others as they are documented.
"""

from pathlib import Path

from teller_core.data.records import Interval, RequestSpan
from teller_core.ingest.files.source import open_source
from teller_core.ingest.found import Found, Place, Progress
from teller_core.ingest.jsonl import json_object, lines
from teller_core.ingest.proxies.json_lines import json_access
from teller_core.ingest.proxies.text_lines import Access, text_access

NAME = "access_log"
MAX_LINE = 1 << 14
"""Bytes of a line that may be an access line: servers refuse longer requests."""
LOOKED_AT = 20
"""Lines at the beginning of a file by which it is recognized."""
GENERATING = "POST"
FAILED = 400
"""HTTP statuses from here on, and those below 100, are failures."""


def sniff(head: bytes) -> bool:
    """Whether at least half of its first lines, and three at most are needed, are access lines with durations."""
    whole = head.split(b"\n")
    some = [line for line in (whole[:-1] if len(whole) > 1 else whole)[: 2 * LOOKED_AT] if line.strip()][:LOOKED_AT]
    known = sum(_access(line) is not None for line in some)
    return bool(some) and 2 * known >= len(some)


def read(path: Path, place: Place, progress: Progress | None = None) -> Found:
    """A request span of every POST, joined to an engine's request by ``x-request-id`` where both have it.

    Other methods are other (``not_generating``), and so are lines of another kind (``other_line``). Problems:
    ``line_too_long``, ``bad_record``: a request that took less than nothing. The clock is ``wall`` where stamps have no zone.
    """
    found = Found()
    with open_source(path) as source:
        for number, (line, skipped) in enumerate(lines(source), 1):
            found.events += 1
            if skipped or len(line) > MAX_LINE:
                found.problems["line_too_long"] += 1
            else:
                _add(found, _access(line), blank=not line.strip())
            if progress is not None and number % 10_000 == 0:
                progress(source.on_disk)
    return found


def _access(line: bytes) -> Access | None:
    if len(line) > MAX_LINE:
        return None
    text = line.strip()
    if text.startswith(b"{"):
        row = json_object(text)
        return None if row is None else json_access(row)
    return text_access(text.decode("utf-8", "replace"))


def _add(found: Found, access: Access | None, *, blank: bool) -> None:
    if access is None:
        found.other["blank" if blank else "other_line"] += 1
    elif access.method != GENERATING:
        found.other["not_generating"] += 1
    elif access.end < access.start or access.start < 0:
        found.problems["bad_record"] += 1
    else:
        found.kept += 1
        if not access.zoned:
            found.clock = "wall"
        found.spans.append(_span(access))


def _span(access: Access) -> RequestSpan:
    return RequestSpan(
        f"{access.method} {access.path}",
        access.request,
        access.trace,
        access.start,
        access.end,
        access.durations,
        {},
        access.producer,
        proxy=True,
        error=not 100 <= access.status < FAILED,
        resolution=access.resolution,
        leg="gateway",
        intervals=() if access.before is None else (Interval("sent", "received", access.before, "caller"),),
    )
