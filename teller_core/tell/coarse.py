"""Times that a log counts in whole seconds: what a list of requests says of them."""

from teller_core.data.steps import Requests
from teller_core.data.table import UNKNOWN

SECOND = 1_000_000_000
"""A time that is a multiple of this was stamped by a clock of whole seconds."""


def coarse_note(requests: Requests) -> str:
    """One sentence where requests of which both ends are known have them in whole seconds alone, and of how many; else empty."""
    begin, end = requests.begin(), requests.end()
    known = (begin != UNKNOWN) & (end != UNKNOWN)
    total, coarse = int(known.sum()), int((known & (begin % SECOND == 0) & (end % SECOND == 0)).sum())
    if not coarse:
        return ""
    whose = "Their times are" if coarse == total else f"Of {total:,} requests the times of {coarse:,} are"
    return f"{whose} whole seconds of a log: from end to end each may have taken up to a second more or less."
