"""How much longer five times the events take: CPU time without start-up, paired and alternated.

    python tests/bench/growth_bench.py --traces DIR --work DIR [--rounds 9]

``--traces`` holds the base trace (an SGLang prefill), ``--work`` gets the generated ones and is asked for them first.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.bench.generate_kineto import generate  # noqa: E402 - the checkout is put on the path first
from tests.bench.ingest_bench import INPUTS, Files, cost, ours  # noqa: E402

SIZES = (1_000_000, 5_000_000)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=9)
    chosen = parser.parse_args()
    base = chosen.traces / INPUTS["sgl"]
    inputs = [chosen.work / f"sgl{events}.json.gz" for events in SIZES]
    for path, events in zip(inputs, SIZES, strict=True):
        if not path.exists():
            generate(base, path, events)
    for what in ("read + nest", "import"):
        command = ours()[what]
        found: list[tuple[float, float]] = []
        for _ in range(chosen.rounds):
            spent = [cost(command(Files(base, path, path))) for path in inputs]
            found.append(tuple(one.inside for one in spent if one is not None))  # pyright: ignore[reportArgumentType]
        short, long = (statistics.median(column) for column in zip(*found, strict=True))
        ratios = sorted(many / few for few, many in found)
        print(f"{what}: {short:.2f} and {long:.2f} CPU s, {statistics.median(ratios):.2f} times ", end="")
        print(f"({ratios[0]:.2f} to {ratios[-1]:.2f} in {len(ratios)} pairs)")
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
