"""Who wrote a file or a line."""

from typing import NamedTuple


class Process(NamedTuple):
    """A process that wrote one of the files. ``role``: frontend, engine, worker, client or unknown."""

    host: str
    """Tells processes of different machines apart: two nodes may use one pid."""
    pid: int
    role: str = "unknown"
    rank: int | None = None
