"""What an answer costs in which the model has a part, from a server that lives: CPU, before it is loaded, with it, and once kept.

Run: python tests/bench/model_bench.py WEIGHTS PATH... [--calls 40]

The paths are imported together into a new store. A new process serves it: the first call is made before the weights are loaded;
then each request is asked about once, and again from what was kept. Prints the median and the 95th percentile, and the most
memory of the serving process.
"""

import argparse
import logging
import multiprocessing
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter, process_time

import anyio
from answers_bench import imported, spread
from mcp import Client

from teller_core.store.store import Store
from teller_mcp.server import build_server

PATIENCE = 600
"""Looks a tenth of a second apart at whether the weights are loaded."""


async def asked(path: Path, weights: Path, calls: int) -> None:
    """Ask of a server in this process, and print what it cost."""
    with Store.open(path, read_only=True) as store:
        requests = len(store.requests(store.resolve()).number)
    async with Client(build_server(path, [], weights=weights)) as client:

        async def ask(request: int) -> tuple[float, str]:
            before = process_time()
            answer = await client.call_tool("run_rca", {"request": str(request)})
            assert not answer.is_error and answer.structured_content is not None, answer
            return process_time() - before, str(answer.structured_content["model"])

        begin = perf_counter()
        _, said = await ask(1)
        print(f"first call             {1e3 * (perf_counter() - begin):7.2f} ms on the clock; model: {said}")
        for _ in range(PATIENCE):
            if not said.startswith("loading"):
                break
            await anyio.sleep(0.1)
            _, said = await ask(1)
        print(f"loaded after           {perf_counter() - begin:7.2f} s on the clock")
        for name in ("with the model", "once kept"):
            found = [await ask(request) for request in range(2, min(requests, calls + 1) + 1)]
            spread(name, [each for each, _ in found])
            print(f"  {len(found)} requests; without it: {dict(Counter(why for _, why in found if why))}")
    status = Path("/proc/self/status").read_text("utf-8")
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    print(f"most memory            {int(peak.split()[1]) / 1024:7.1f} MB")


def serve(path: Path, weights: Path, calls: int) -> None:
    """What the new process does."""
    logging.disable(logging.INFO)  # the gate tells of every call
    anyio.run(asked, path, weights, calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("weights", type=Path)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--calls", type=int, default=40)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        print(imported(given.paths, path))
        one = multiprocessing.get_context("spawn").Process(target=serve, args=(path, given.weights, given.calls))
        one.start()
        one.join()
        raise SystemExit(one.exitcode)


if __name__ == "__main__":
    main()
