"""What an answer costs from a store that is there: CPU of the tools through a client in memory, and of a new process.

Run: python tests/bench/answers_bench.py PATH... [--calls 40]

The paths (a trace of a million events, and a recorded bundle with requests) are imported together into a new store. Prints
the median and the 95th percentile of each tool's CPU time, of a subtree of about 3,000 spans in process, and of the command line.
"""

import argparse
import logging
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median, quantiles
from time import process_time

import anyio
import numpy as np
from mcp import Client

from teller_core.pipeline import import_paths
from teller_core.store.store import Store
from teller_core.tell.names import shorten
from teller_mcp.server import build_server

SPANS = 3_000
PROCESSES = 9
TEXTS = ("gemm", "aten::", "AttentioN forward", "cmpl-", "e", "nothing like it")
"""What is searched for: much and little, in names, ids and lines."""


def spread(name: str, seconds: list[float]) -> None:
    """Print the median and the 95th percentile in ms."""
    print(f"{name:<22} {1e3 * median(seconds):7.2f} ms   p95 {1e3 * quantiles(seconds, n=20)[-1]:7.2f} ms")


def imported(paths: list[Path], path: Path) -> str:
    """Import ``paths`` together into the new store ``path``; what it holds then, in words."""
    with Store.open(path) as store:
        report = import_paths(paths, store, together=True)
    (capture,) = report.captures
    return f"{sum(rank.spans for rank in capture.ranks):,} spans, {capture.steps} steps, {capture.requests} requests"


def investigation(path: Path) -> dict[str, Callable[[int], dict[str, object]]]:
    """The tools that an investigation needs, and the arguments of the n-th call of each."""
    with Store.open(path, read_only=True) as store:
        capture = store.resolve()
        steps, requests = len(store.steps(capture).engine), len(store.requests(capture).number)
        operators = [shorten(name) for name in store.operator_names(capture).names]
    return {
        "search": lambda n: {"text": TEXTS[n % len(TEXTS)]},
        "list_slow_requests": lambda _: {"limit": 10},
        "run_rca": lambda n: {"request": str(1 + n % requests)},
        "get_causal_slice": lambda n: {"target": f"step {n % steps}"},
        "explain_operator": lambda n: {"name": operators[n % len(operators)]},
    }


async def tools(path: Path, calls: int) -> None:
    """Call the tools of an investigation, in turn."""
    async with Client(build_server(path, [])) as client:
        for name, arguments in investigation(path).items():
            spent: list[float] = []
            for n in range(calls):
                before = process_time()
                answer = await client.call_tool(name, arguments(n))
                spent.append(process_time() - before)
                assert not answer.is_error, answer
            spread(name, spent)


def subtree(path: Path, calls: int) -> None:
    """Read one subtree of about 3,000 spans, each time from a connection opened for it."""
    with Store.open(path, read_only=True) as store:
        capture = store.resolve()
        _, rank, row = min(_of_size(store, capture, at) for at in store.traced(capture))
    spent: list[float] = []
    for _ in range(calls):
        before = process_time()
        with Store.open(path, read_only=True) as store:
            spans = len(store.subtree(capture, rank, row))
        spent.append(process_time() - before)
    spread(f"subtree of {spans:,} spans", spent)


def _of_size(store: Store, capture: str, rank: int) -> tuple[int, int, int]:
    """How far from the wanted size the subtree nearest to it is, and where it stands."""
    tree = store.tree_rows(capture, rank, columns=())
    off = np.abs(tree.stop - np.arange(len(tree)) - SPANS)
    return int(off.min(initial=SPANS)), rank, int(off.argmin()) if len(off) else 0


def process(path: Path) -> None:
    """Ask from a new process."""
    spent: list[float] = []
    for _ in range(PROCESSES):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "teller_core.cli", "--db", str(path), "why", "1", "--json"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    spread("teller why, a process", spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--calls", type=int, default=40)
    given = parser.parse_args()
    logging.disable(logging.INFO)  # the gate tells of every call
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        print(imported(given.paths, path))
        anyio.run(tools, path, given.calls)
        subtree(path, given.calls)
        process(path)


if __name__ == "__main__":
    main()
