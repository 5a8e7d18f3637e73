"""Files made to take all the memory, time or disk of whoever reads them, and what people said, through the server."""

import gzip
import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from mcp import Client
from mcp.types import CallToolResult, TextContent

from teller_core.ingest.files import archives, source
from teller_mcp.server import build_server
from tests.mcp.hostile import MARK

pytestmark = pytest.mark.anyio
MB = 1 << 20
BEGIN = (
    b'{"schemaVersion": 1, "traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "' + MARK.encode() + b'", "pid": 1, '
)
WIDE = BEGIN + b'"tid": 1, "ts": 1, "dur": 1}' + b" " * (8 * MB) + b"]}"


def text_of(result: CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, TextContent)
    return block.text


def zipped(name: str, content: bytes, times: int = 1) -> bytes:
    with io.BytesIO() as out:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for number in range(times):
                archive.writestr(f"{number}{name}", content)
        return out.getvalue()


def claiming(content: bytes) -> bytes:
    """A zip archive whose end says that it has 65,534 files in a list of 4 GB."""
    at = content.rindex(b"PK\5\6")
    return content[: at + 8] + struct.pack("<HHII", 65_534, 65_534, 2**32 - 2, 0) + content[at + 20 :]


def of_events(*events: str) -> bytes:
    return BEGIN + b'"tid": 1, "ts": 1, "dur": 1}, ' + ", ".join(events).encode() + b"]}"


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip": ("a.json.gz", lambda: gzip.compress(WIDE)),
    "gzip in gzip": ("a.json.gz", lambda: gzip.compress(gzip.compress(WIDE))),
    "zstd": ("a.json.zst", lambda: zstandard.compress(WIDE)),
    "zip": ("a.zip", lambda: zipped("a.json", WIDE)),
    "zip of many files": ("a.zip", lambda: zipped("a.json", b"", archives.MAX_MEMBERS + 1)),
    "zip in zip": ("a.zip", lambda: zipped("a.zip", zipped("a.json", WIDE))),
    "zip that claims many files": ("a.zip", lambda: claiming(zipped("a.json", b"{}"))),
    "zstd that claims 2^60 bytes": ("a.json.zst", lambda: b"\x28\xb5\x2f\xfd\xe0" + (2**60).to_bytes(8, "little") + WIDE[:99]),
    "zstd that wants 2 GB of memory": ("a.json.zst", lambda: b"\x28\xb5\x2f\xfd\x00\xa8" + b"\1\0\0"),
    "deep JSON": ("a.json", lambda: BEGIN + b'"args": ' + b'{"a": [' * 200_000),
    "deep JSON of one line": ("a.jsonl", lambda: b'{"ph": "P", "t": 1, "tid": 1, "name": ' + b"[" * 200_000),
    "numbers without end": (
        "a.json",
        lambda: of_events(
            *(f'{{"ph": "X", "name": "a", "pid": {n}, "tid": {n}, "ts": {n}, "dur": {n}}}' for n in ("9" * 5_000, "1e999"))
        ),
    ),
    "a name of 64 MB": ("a.json", lambda: BEGIN[:-3] + b"A" * (64 * MB) + b'"}]}'),
    "a database that claims 2^32 pages": (
        "a.sqlite",
        lambda: (b"SQLite format 3\0" + struct.pack(">HBBBBBBII", 4096, 1, 1, 0, 64, 32, 32, 1, 2**32 - 1)).ljust(4096, b"\xff"),
    ),
    "a line of 64 MB": ("server.log", lambda: b"INFO 11-29 12:00:00 [a.py:1] " + b"A" * (64 * MB)),
}  # fmt: skip


@pytest.mark.parametrize("bomb", BOMBS)
async def test_a_bomb_is_refused_or_counted_in_words_of_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bomb: str
) -> None:
    for module in (source, archives):
        monkeypatch.setattr(module, "EXPANSION_GRACE", MB)
    name, content = BOMBS[bomb]
    root = tmp_path / "root"
    root.mkdir()
    (root / name).write_bytes(content())
    async with Client(build_server(tmp_path / "t.db", [root])) as client:
        for asked in (name, "."):
            result = await client.call_tool("import_trace", {"paths": [asked]})
            text = text_of(result)
            assert MARK not in text and "AAAA" not in text and "\n" not in text
            assert "fault of TELLER" not in text and "not done after" not in text
            if result.is_error:
                assert name in text or "root" in text
    left = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != name]
    assert sum(path.stat().st_size for path in left) < MB


async def test_the_answer_says_how_much_of_what_people_said_was_taken_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    lines = [
        "INFO 11-29 12:00:00 [logger.py:39] Received request cmpl-1: prompt: 'my secret diary', params: SamplingParams(n=1)",
        "INFO 11-29 12:00:01 [api.py:1] called with Authorization: Bearer sk-abcdefghijklmnopqrstuvwx1234 by diary@example.org",
        "INFO 11-29 12:00:02 [api.py:1] an ordinary line",
    ]
    (root / "server.log").write_text("\n".join(lines) + "\n")
    async with Client(build_server(tmp_path / "t.db", [root])) as client:
        result = await client.call_tool("import_trace", {"paths": ["server.log"]})
        assert result.structured_content is not None
        assert result.structured_content["captures"][0]["redactions"] == 3
        again = await client.call_tool("import_trace", {"paths": ["server.log"]})
        assert again.structured_content is not None
        assert again.structured_content["captures"][0]["redactions"] == 3
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("t.db*"))
    for secret in ("secret diary", "sk-abc", "diary@"):
        assert secret.encode() not in kept
        assert secret not in json.dumps(result.structured_content)
