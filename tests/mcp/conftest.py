from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from teller_core.cli import Verbs
from teller_mcp.server import build_server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def connect(traces: Path, verbs: Callable[..., Verbs]) -> Callable[..., Client]:
    """A client of a server over the sample verbs: ``connect(why=...)`` replaces one of them."""

    def make(*, roots: list[Path] | None = None, mode: str = "auto", **changes: Any) -> Client:
        given = verbs(**changes)
        server = build_server(traces / "none.db", [traces] if roots is None else roots, verbs=lambda: given)
        return Client(server, mode=mode)

    return make
