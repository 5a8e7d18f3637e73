"""What a tool is, and what it works with."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from teller_core.cli import Verbs
from teller_core.model.loading import Loader
from teller_mcp.answers import Answer
from teller_mcp.captures import Captures

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
    captures: Captures | None = None
    """What may be recorded, None where whoever started the server allowed nothing."""
    loader: Loader = field(default_factory=Loader)
    """Of the model: the first who asks has it loaded, in the background."""

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
    idempotent: bool = True
    open_world: bool = False
    asks: "Callable[[Desk], Callable[..., Any]] | None" = None
    """Makes the resolver that asks a person before ``run``, which gets the outcome as ``consent``."""
    progress: "Callable[..., tuple[float, float, str]] | None" = None
    """``progress(desk, **arguments)``: done, of how much, and what is done, while ``run`` waits."""

    @property
    def name(self) -> str:
        """The name the model calls: that of the function."""
        return self.run.__name__
