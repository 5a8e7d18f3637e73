"""The lines of the server's log. A record begins a line and nothing else does: what a client sent, or a name out of a trace in
the text of a crash, can hold a line break and a line that looks like one of ours.
"""

import logging
import sys

from teller_core.tell.visible import visible


class Lines(logging.Formatter):
    """Records as lines: when, whose, how grave, and the message; its further lines are set in."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(name)s %(levelname)s %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        first, *others = super().format(record).splitlines() or [""]
        return "\n".join([visible(first), *(f"    {visible(line)}" for line in others)])


def log_to_stderr() -> None:
    """Before the SDK does it: its handler wraps lines at 80 columns, and an audit line is one line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.getLogger("mcp").setLevel(logging.WARNING)
