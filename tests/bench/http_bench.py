"""What clients wait for over HTTP, and what the server holds of what it has answered.

Run: python -m tests.bench.http_bench PATH... [--seconds 30] [--calls 20000]

The paths (a trace of a million events, and a recorded bundle with requests) are imported together into a new store, and a
server of its own process answers from it. First eight clients, four of each protocol revision, call two tools a second each: a
call counts from when it was due, so that one that waits for the one before waits, too. Then the same clients call as fast as
they can, and the server's resident memory is read after each twentieth of the calls.
"""

import argparse
import itertools
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median, quantiles
from time import monotonic

import anyio
import httpx2
from mcp import Client

from tests.bench.answers_bench import imported, investigation
from tests.mcp.serving import Served, client, served

CLIENTS = 8
EVERY_S = 0.5
Call = tuple[str, dict[str, object]]


async def ask(asked: Client, call: Call) -> None:
    """One call, which must be answered."""
    answer = await asked.call_tool(*call)
    assert not answer.is_error, (call, answer.content)


async def at_their_pace(clients: list[Client], calls: Iterator[Call], seconds: float) -> list[float]:
    """How long each call of ``clients`` took from when it was due, in s."""
    took: list[float] = []
    began = monotonic()

    async def one(asked: Client, first: float) -> None:
        due = began + first
        while due < began + seconds:
            await anyio.sleep(max(0.0, due - monotonic()))
            await ask(asked, next(calls))
            took.append(monotonic() - due)
            due += EVERY_S

    async with anyio.create_task_group() as group:
        for at, asked in enumerate(clients):
            group.start_soon(one, asked, at * EVERY_S / len(clients))
    return took


async def as_fast_as_they_can(
    clients: list[Client], calls: Iterator[Call], number: int, done: Callable[[], None]
) -> None:
    """``number`` calls, and ``done()`` after each twentieth of them."""
    due = iter(range(1, number + 1))

    async def one(asked: Client) -> None:
        for at in due:
            await ask(asked, next(calls))
            if at % (number // 20) == 0:
                done()

    async with anyio.create_task_group() as group:
        for asked in clients:
            group.start_soon(one, asked)


def resident_mb(server: Served) -> float:
    """What the server's process holds, in MB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+) kB", status)[0]) * 1024 / 1e6


async def measure(server: Served, database: Path, seconds: float, number: int) -> None:
    """Both measurements, by the same clients."""
    asked = investigation(database)
    calls = ((name, arguments(n)) for n in itertools.count() for name, arguments in asked.items())
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=server.headers, trust_env=False))
        clients = [
            await stack.enter_async_context(client(server, http, "auto" if at % 2 else "legacy"))
            for at in range(CLIENTS)
        ]
        took = sorted(await at_their_pace(clients, calls, seconds))
        print(
            f"{len(took)} calls of {CLIENTS} clients, 2 a second each, no error: median {1e3 * median(took):.1f} ms, "
            f"p99 {1e3 * quantiles(took, n=100)[-1]:.1f} ms, longest {1e3 * took[-1]:.1f} ms"
        )
        held: list[float] = []
        began = monotonic()
        await as_fast_as_they_can(clients, calls, number, lambda: held.append(resident_mb(server)))
        print(f"{number} calls as fast as possible, no error: {number / (monotonic() - began):.0f} a second")
        print("resident MB after each twentieth: " + ", ".join(f"{mb:.1f}" for mb in held))


def main() -> None:
    """Import, serve and measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--calls", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(imported(given.paths, folder / "t.db"))
        with served(folder, "--db", str(folder / "t.db"), "--root", str(folder)) as server:
            anyio.run(measure, server, folder / "t.db", given.seconds, given.calls)


if __name__ == "__main__":
    main()
