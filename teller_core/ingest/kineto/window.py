"""A sliding window over a stream: the bytes the scanner works on, at least one record of them, never the whole file."""

from dataclasses import dataclass

import numpy as np

from teller_core.errors import LimitError
from teller_core.ingest.files.source import Source
from teller_core.ingest.scanning.tokens import PADDING, QUOTE, Bytes

WINDOW_BYTES = 4 << 20

MAX_RECORD_BYTES = 64 << 20
"""One event or one member of the header may not be longer than this."""


@dataclass
class Window:
    """``data[low:high]`` is what has been read and not yet used; PADDING quotation marks follow ``high``."""

    source: Source
    data: Bytes
    low: int = 0
    high: int = 0
    ended: bool = False

    def more(self) -> None:
        """Drop what was used and read on; ``ended`` becomes true where nothing was left to read.

        Errors: LimitError for a record over MAX_RECORD_BYTES; those of :meth:`Source.fill`.
        """
        kept = self.high - self.low
        room = len(self.data) - PADDING
        if kept > room // 2:
            room *= 2
            if room > 2 * MAX_RECORD_BYTES:
                raise LimitError(
                    self.source.path.name, f"a record is over {MAX_RECORD_BYTES >> 20} MiB", "Check the file"
                )
        moved = self.data if room == len(self.data) - PADDING else np.empty(room + PADDING, dtype=np.uint8)
        moved[:kept] = self.data[self.low : self.high]
        got = self.source.fill(moved[kept:room].data)
        self.data, self.low, self.high, self.ended = moved, 0, kept + got, got == 0
        self.data[self.high : self.high + PADDING] = QUOTE


def window_on(source: Source) -> Window:
    """An empty window on ``source`` of WINDOW_BYTES, which grows where a record needs it."""
    return Window(source, np.full(WINDOW_BYTES + PADDING, QUOTE, dtype=np.uint8))
