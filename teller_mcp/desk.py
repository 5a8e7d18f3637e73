"""What a tool is, and what it works with."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from teller_core.cli import Verbs
from teller_mcp.answers import Answer

DEADLINE_S = 20.0
"""Hosts give up after 60 s, and people before."""


@dataclass(frozen=True)
class Desk:
    """Where the answers come from: the database, the folders that may be read, and the verbs of the core.

    ``verbs`` is called when the first tool runs, so that a server that is only listed pays for nothing else.
    """

    store_path: Path
    roots: tuple[Path, ...]
    verbs: Callable[[], Verbs]

    @contextmanager
    def store(self, *, read_only: bool = True) -> Generator[tuple[Verbs, Any]]:
        """The verbs and an open store, closed afterwards. Calls run side by side in threads, so each opens its own."""
        verbs = self.verbs()
        with verbs.open_store(self.store_path, read_only, DEADLINE_S if read_only else None) as store:
            yield verbs, store


@dataclass(frozen=True)
class ToolSpec:
    """One tool: ``run(desk, **arguments)`` answers with ``answer``. Its docstring is what the model reads."""

    title: str
    run: Callable[..., Answer]
    answer: type[Answer]
    read_only: bool = True
    deadline_s: float = DEADLINE_S

    @property
    def name(self) -> str:
        """The name the model calls: that of the function."""
        return self.run.__name__
