"""The local time of a process, as our recorder and our stat logger say it where they begin a file."""

from collections.abc import Mapping
from typing import Any

from teller_core.data.records import Process, Zone
from teller_core.ingest.decimals import NS_PER_S, whole
from teller_core.ingest.found import Found

MOST_S = 14 * 3600
"""No zone is further from Greenwich."""


def keep_zone(found: Found, process: Process, row: Mapping[str, Any]) -> None:
    """Add the zone that ``row`` tells (``zone``: seconds ahead of UTC), where it tells one."""
    ahead = whole(row.get("zone"))
    if ahead is not None and abs(ahead) <= MOST_S:
        found.zones.append(Zone(process, ahead * NS_PER_S))
