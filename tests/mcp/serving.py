"""The server over HTTP as a process of its own, for tests and measurements."""

import re
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.waiting import until

ROOT = Path(__file__).parents[2]
ENDED_BY_CTRL_C = 130


@dataclass(frozen=True)
class Served:
    """A server that listens: where, the token that it wants, its process and what it has logged so far."""

    url: str
    token: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def headers(self) -> dict[str, str]:
        """What a client that may come sends along."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def names(self) -> str:
        """Its host and port, as in the header Host."""
        return self.url.split("/")[2]

    def audited(self) -> list[str]:
        """The lines of the audit log, without their times."""
        return re.findall(r"teller\.audit INFO (.*)", self.log.read_text())


@contextmanager
def served(folder: Path, *arguments: str, program: Sequence[str] = ("teller_mcp",)) -> Generator[Served]:
    """The module ``program`` with ``arguments``, over HTTP on a free port; its token and its log are files of ``folder``."""
    token, log = folder / "token", folder / "log"
    command = [sys.executable, "-m", *program, "--http", "0", "--token-file", str(token), *arguments]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=errors) as process,
    ):
        try:
            until(lambda: "listening on" in log.read_text(), process)
            [url] = re.findall(r"listening on (\S+)", log.read_text())
            yield Served(url, token.read_text().strip(), process, log)
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == ENDED_BY_CTRL_C, log.read_text()
        finally:
            process.kill()


def client(server: Served, http: httpx2.AsyncClient, mode: str) -> Client:
    """A client of ``server`` that speaks the newest protocol (``auto``) or the one with sessions (``legacy``)."""
    return Client(streamable_http_client(server.url, http_client=http), mode=mode)
