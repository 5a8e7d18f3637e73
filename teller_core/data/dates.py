"""Times as people read them."""

from datetime import UTC, datetime

from teller_core.data.table import UNKNOWN

FIRST = 946_684_800_000_000_000
"""ns: the year 2000. Times before it count from the start of a machine or a program, and name no day."""


def date_of(time: int | None) -> str | None:
    """``2026-08-01 10:15:24.900`` of int ns since 1970, None for a time that nobody recorded or that names no day."""
    if time is None or time == UNKNOWN or time < FIRST:
        return None
    return datetime.fromtimestamp(time // 1_000_000 / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
