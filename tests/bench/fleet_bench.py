"""What it costs to explain the tail of many captures, from their stored outcomes.

    python tests/bench/fleet_bench.py [--captures 400] [--requests 2500]

The store is made here, in which one replica waits and one cause is named for it. Every answer is one of a new process: from
opening the store to the whole report, wall time, CPU time and the most memory it had.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.data.outcomes import Outcomes
from teller_core.data.parts import PHASES
from teller_core.store.connect import connect, create
from teller_core.store.migrations import migrate

NOON = 1_796_040_000_000_000_000
HOUR = 3_600_000_000_000
KNOWN = {"front_end": 3, "queue": 40, "own_prefill": 80, "decode": 900, "delivery": 4, "unexplained": 6}
"""Phases that have a source, with their median in ms."""
RUNS = 5


def rows(key: int, size: int, seed: int) -> Iterator[tuple[Any, ...]]:
    """Outcomes of one capture. Every 100th capture has a queue that is thirty times as long."""
    random = np.random.default_rng(seed)
    struck = key % 100 == 7
    spent = {
        phase: np.round(random.lognormal(0, 0.5, size) * ms * (30 if struck and phase == "queue" else 1) * 1e6)
        for phase, ms in KNOWN.items()
    }
    value = np.array(list(spent.values())).sum(axis=0)
    began = NOON + np.sort(random.integers(0, HOUR, size))
    prompt, output = random.integers(1, 9000, size), random.integers(1, 800, size)
    named = random.random(size) < (0.8 if struck else 0.02)
    columns: dict[str, list[Any]] = {
        "request": list(range(1, size + 1)),
        "metric": ["e2e"] * size,
        "began": began.tolist(),
        "value": value.astype(np.int64).tolist(),
        "verdict": ["cause" if one else "typical_here" for one in named],
        "cause": ["scheduler.queue_saturation" if one else "" for one in named],
        "rank": [-1] * size,
        "engine": [0] * size,
        "prompt_tokens": prompt.tolist(),
        "output_tokens": output.tolist(),
        "cached_tokens": [0] * size,
        "failed": [0] * size,
        "finish_reason": ["stop" if one % 3 else "length" for one in output.tolist()],
    }
    columns |= {one: spent[one].astype(np.int64).tolist() if one in spent else [None] * size for one in PHASES}
    ordered = [columns[field.name] for field in fields(Outcomes)]
    return ((key, at, *cells) for at, cells in enumerate(zip(*ordered, strict=True)))


def make(path: Path, captures: int, requests: int) -> None:
    create(path, migrate)
    con = connect(path, read_only=False)
    service = json.dumps({"engine": "vllm", "version": "0.32.0", "model": "llama"})
    marks = ", ".join("?" * (2 + len(fields(Outcomes))))
    con.execute("BEGIN")
    for key in range(1, captures + 1):
        known = (key, f"{key:040x}"[::-1], f"replica {key}", service, NOON, NOON + HOUR)
        con.execute("INSERT INTO captures (key, id, name, service, began, ended) VALUES (?, ?, ?, ?, ?, ?)", known)
        con.execute("INSERT INTO ranks (capture, position, host) VALUES (?, 0, ?)", (key, f"host-{key % 50}"))
        con.executemany(f"INSERT INTO outcomes VALUES ({marks})", rows(key, requests, key))
    con.execute("COMMIT")
    con.close()


def asked(path: Path) -> tuple[float, float, int, int, dict[str, Any]]:
    """Seconds of wall and of CPU, MB at most and MB before, and the answer: in a process of its own."""
    found = subprocess.run([sys.executable, __file__, "--ask", str(path)], capture_output=True, check=True)
    return tuple(json.loads(found.stdout))


def ask(path: Path) -> None:
    from teller_core.fleet import fleet
    from teller_core.store.store import Store

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    wall, cpu = time.perf_counter(), time.process_time()
    with Store.open(path, read_only=True) as store:
        report = fleet(store, since="2h")
    took = (time.perf_counter() - wall, time.process_time() - cpu)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    said = {
        "requests": report.requests,
        "named": [row[0] for row in report.replica_rows if row[-1]],
        "explanation": report.explanation,
    }
    print(json.dumps((*took, most, before, said)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--captures", type=int, default=400)
    parser.add_argument("--requests", type=int, default=2500)
    parser.add_argument("--ask", type=Path)
    given = parser.parse_args()
    if given.ask:
        ask(given.ask)
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "t.db"
        make(path, given.captures, given.requests)
        print(f"store of {path.stat().st_size / 1e6:.0f} MB")
        runs = [asked(path) for _ in range(RUNS)]
    wall, cpu = (median(run[at] for run in runs) for at in (0, 1))
    print(
        f"{runs[0][4]['requests']:,} requests: {wall:.2f} s wall, {cpu:.2f} s CPU, {runs[0][2]} MB ({runs[0][3]} before)"
    )
    print(runs[0][4]["named"], runs[0][4]["explanation"])


if __name__ == "__main__":
    main()
