"""The official conformance suite: everything that a revision requires of a server, by this one over HTTP."""

import re
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.mcp.serving import Served, served
from tests.node.packages import needed

REQUIRED = {"2025-11-25": 30, "2026-07-28": 37}
"""By revision, how many scenarios it requires: those frozen in the suite. What it runs besides is not required of anybody."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[Served]:
    folder = tmp_path_factory.mktemp("conformance")
    with served(folder, "--db", str(folder / "t.db"), program=["tests.mcp.conformance.server"]) as found:
        yield found


@pytest.mark.parametrize("revision", REQUIRED)
def test_the_server_does_all_that_a_revision_requires(server: Served, tmp_path: Path, revision: str) -> None:
    command = [*needed("conformance"), "server", "--url", server.url, "--requirements", revision]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = done.stdout[-8_000:] + done.stderr[-2_000:]
    assert done.returncode == 0, said
    _, _, summary = done.stdout.partition("=== SUMMARY ===")
    passed = set(re.findall(r"^\u2713 ([a-z0-9-]+): \d+ passed, 0 failed", summary, re.MULTILINE))
    not_scored = set(re.findall(r"^ +\S ([a-z0-9-]+) \(", summary, re.MULTILINE))
    assert len(passed - not_scored) == REQUIRED[revision], said
