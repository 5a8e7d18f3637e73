"""What replay costs on a long capture: linking its rows, making the network, re-timing all of it, charging its waits.

    python tests/bench/replay_bench.py --traces DIR --work DIR [--base FILE] [--events 1000000] [--rounds 5]

``--traces`` holds the base trace (an SGLang prefill, mostly Python), ``--work`` gets the long one. Reading, nesting, imports and
compilation are not counted. CPU seconds, the median of the rounds.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402 - the checkout is put on the path first

from teller_core.context.linking import linked  # noqa: E402
from teller_core.data.linked import StepSpans  # noqa: E402
from teller_core.ingest.kineto import reader as kineto  # noqa: E402
from teller_core.judge.replay import charged, network, retime  # noqa: E402
from teller_core.rebuild.nest import nest  # noqa: E402
from tests.bench.generate_kineto import generate  # noqa: E402

BASE = "sglang_rocm_qwen3_8b_extend/extend.json.gz"
Made = TypeVar("Made")


def timed(work: Callable[[], Made], spent: list[float]) -> Made:
    """What ``work`` makes; its CPU seconds are added to ``spent``."""
    began = time.process_time()
    made = work()
    spent.append(time.process_time() - began)
    return made


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--traces", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--base", default=BASE)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    path = asked.work / f"{asked.base.partition('/')[0]}_{asked.events}.json.gz"
    if not path.exists():
        generate(asked.traces / asked.base, path, asked.events)
    tree = nest(kineto.read(path))
    parts = ("link", "network", "re-time", "charge waits of 1 ms and more")
    spent: dict[str, list[float]] = {part: [] for part in parts}
    for turn in range(asked.rounds + 1):
        if turn == 1:
            spent = {part: [] for part in parts}
        rows = timed(lambda: linked([StepSpans(0, 0, tree)]), spent["link"])
        graph = timed(lambda rows=rows: network(rows), spent["network"])
        half = np.floor(graph.kept.owned * 0.9).astype(np.int64)
        timed(lambda graph=graph, half=half: retime(graph, half), spent["re-time"])
        waits = timed(lambda graph=graph: charged(graph, least=1_000_000), spent[parts[3]])
    print(
        f"{len(tree)} spans, {len(graph.time)} moments, {len(graph.source)} arcs, {len(waits.row)} waits; cut: {graph.cut}"
    )
    for part in parts:
        print(f"{part:32s} {statistics.median(spent[part]):6.2f} s CPU")
    print(f"{'all':32s} {sum(statistics.median(spent[part]) for part in parts):6.2f} s CPU")


if __name__ == "__main__":
    main()
