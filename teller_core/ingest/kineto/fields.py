"""The fields of one record of a trace, as the compiled reader passes them around: places in an int64 array, and codes."""

import numpy as np

from teller_core.data.compiled import inlined
from teller_core.ingest.scanning.tokens import BROKEN, Bytes, skip_space

PH, TS, TS_CODE, DUR, DUR_CODE, NAME, PID_KIND, PID, TID_KIND, TID, STREAM, CAT, LINK, LINK_CODE, ARG = range(15)
FIELDS = 15
LANE_FIELDS = 6
"""A lane key: PID_KIND, PID, TID_KIND, TID, STREAM, CAT."""

NUMBER, TEXT, MISSING = 0, 1, 3
"""What PID and TID hold: a number, a string's number, nothing. MISSING is a code of TS and DUR, too."""

ABSENT = -(2**63)
"""No stream."""

SHORT, NO_ROOM = -4, -3
"""Instead of an index, besides BROKEN and TOO_DEEP: the bytes ran out, a table is full."""


def key_word(text: bytes) -> np.uint64:
    """The first 8 bytes of ``text`` as :func:`words.load_word` reads them, zeros where it is shorter."""
    return np.uint64(int.from_bytes(text[:8].ljust(8, b"\0"), "little"))


@inlined
def value_start(data: Bytes, at: int, high: int) -> int:
    """Index of the value whose key ended before ``at``; SHORT or BROKEN."""
    at = skip_space(data, at)
    if at >= high:
        return SHORT
    if data[at] != 58:
        return BROKEN
    at = skip_space(data, at + 1)
    return at if at < high else SHORT
