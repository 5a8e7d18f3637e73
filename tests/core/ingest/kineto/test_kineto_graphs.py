"""Launches of whole graphs: hundreds of kernels share the correlation of one call, and of it alone."""

import json
from collections import defaultdict
from pathlib import Path
from random import Random
from typing import Any

from teller_core.ingest.kineto.reader import read
from teller_core.rebuild.nest import nest

LAUNCHES = {
    9: ("cudaGraphLaunch", 425),
    12: ("hipGraphLaunch", 413),
    13: ("cudaGraphLaunch", 0),
    40: ("cuGraphLaunch", 87),
}


def events() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for at, (correlation, (name, kernels)) in enumerate(LAUNCHES.items()):
        args: dict[str, Any] = {"correlation": correlation}
        cat = "cuda_driver" if name.startswith("cuG") else "cuda_runtime"
        made.append({"ph": "X", "cat": cat, "name": name, "pid": 5, "tid": 5, "ts": 100 * at, "dur": 50, "args": args})
        for kernel in range(kernels):
            stream = 7 + kernel % 2
            args = {"stream": stream, "correlation": correlation}
            start = f"{1000 * at + 60 + kernel}.{kernel % 1000:03}"
            row = {"ph": "X", "cat": "kernel", "name": f"k{correlation}.{kernel}", "pid": 2, "tid": stream}
            made.append({**row, "ts": float(start), "dur": 3, "args": args})
    Random(7).shuffle(made)
    return made


def test_each_kernel_of_a_graph_hangs_under_its_launch_in_the_order_of_their_starts(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events()}))
    tree = nest(read(path))
    tree.check()
    assert tree.unlaunched == 0
    below: dict[int, list[str]] = defaultdict(list)
    for row in range(len(tree)):
        if tree.parent[row] >= 0:
            below[int(tree.trace.link[tree.parent[row]])].append(tree.trace.names[int(tree.trace.name[row])])
    assert below == {link: [f"k{link}.{n}" for n in range(count)] for link, (_, count) in LAUNCHES.items() if count}
