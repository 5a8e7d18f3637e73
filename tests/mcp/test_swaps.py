"""Files that are swapped for links between the check of their paths and their reading, through the server."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import TextContent

from teller_core.ingest.files import planning, recognizing
from teller_core.store.store import Store
from teller_mcp.server import build_server
from teller_mcp.tools import import_trace

pytestmark = pytest.mark.anyio
SECRET = "TopSecretOperator"


def a_trace(path: Path, name: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": 1.0, "dur": 5.0}
    path.write_text(json.dumps({"traceEvents": [event] * 3}))
    return path


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A folder that may be read, with run/rank.json in it, and a trace elsewhere."""
    root = tmp_path / "root"
    a_trace(root / "run" / "rank.json", "aten::mm")
    return root, a_trace(tmp_path / "elsewhere" / "rank.json", SECRET)


def swap_file(root: Path, secret: Path) -> None:
    (root / "run" / "rank.json").unlink()
    (root / "run" / "rank.json").symlink_to(secret)


def swap_folder(root: Path, secret: Path) -> None:
    (root / "run").rename(root / "was")
    (root / "run").symlink_to(secret.parent)


def after(function: Callable[..., Any], swap: Callable[[], None]) -> Callable[..., Any]:
    """``function``, with a swap as soon as it has answered for the first time."""
    left = [swap]

    def swapping(*given: Any, **named: Any) -> Any:
        answer = function(*given, **named)
        if left:
            left.pop()()
        return answer

    return swapping


@pytest.mark.parametrize("swap", [swap_file, swap_folder])
@pytest.mark.parametrize("asked", ["run/rank.json", "run", "run/*.json"])
@pytest.mark.parametrize(
    "moment",
    [(import_trace, "allowed"), (planning, "is_folder"), (recognizing, "read_head"), (recognizing, "_hash")],
    ids=lambda moment: moment[1],
)
async def test_what_was_swapped_for_a_link_is_not_read(
    places: tuple[Path, Path],
    monkeypatch: pytest.MonkeyPatch,
    moment: tuple[Any, str],
    asked: str,
    swap: Callable[[Path, Path], None],
) -> None:
    root, secret = places
    monkeypatch.setattr(*moment, after(getattr(*moment), lambda: swap(root, secret)))
    store = root.parent / "t.db"
    server = build_server(store, [root])
    async with Client(server) as client:
        result = await client.call_tool("import_trace", {"paths": [asked]})
        block = result.content[0]
        assert isinstance(block, TextContent)
        assert result.is_error, block.text
        assert "\n" not in block.text and "fault of TELLER" not in block.text
    server.close()
    assert (root / "run").is_symlink() or (root / "run" / "rank.json").is_symlink()
    if store.exists():
        with Store.open(store, read_only=True) as kept:
            assert kept.captures() == []
        assert SECRET.encode() not in store.read_bytes()


async def test_what_is_in_an_archive_is_read_where_folders_are_named(places: tuple[Path, Path], tmp_path: Path) -> None:
    root, _ = places
    with zipfile.ZipFile(root / "run.zip", "w") as archive:
        archive.write(root / "run" / "rank.json", "rank.json")
    server = build_server(tmp_path / "t.db", [root])
    async with Client(server) as client:
        result = await client.call_tool("import_trace", {"paths": ["run.zip"]})
    server.close()
    assert not result.is_error
    assert result.structured_content is not None
    assert result.structured_content["captures"][0]["files"][0]["events_kept"] == 3
