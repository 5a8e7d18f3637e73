"""What the studies on real engines share: how these are set up on a small machine, and how their tables are printed."""

import socket
import sys


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def nothing() -> None:
    """What to do for each answer, where nothing is."""


def say(text: str) -> None:
    """Print one line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
