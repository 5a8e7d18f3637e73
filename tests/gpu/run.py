"""What only a GPU can tell of the injection library: one command, under five minutes, a JSON line a check and a table.

    python tests/gpu/run.py [--smoke]

It needs numpy, torch with CUDA, transformers and cupti-python, and a C compiler. Three processes stay up: one under the
library, one without it, and one under it in which torch's profiler is used first. With OUT set, the files of some windows
and ``results.json`` are left there. Nothing stops at a check that fails; the exit status is 1 if one did.
``--smoke FAKE`` runs it without a GPU on the libcupti of the tests: its checks fail then, and only its own mistakes show.
"""

import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import costs
import dying
import seeing
from asking import OUT, SMOKE, Answer, Worker

RESULTS: list[Answer] = []


def check(name: str, function: Callable[..., Answer], *workers: Any) -> None:
    """Run one check and print what it found."""
    start = time.perf_counter()
    try:
        found = function(*workers)
    except (RuntimeError, TimeoutError, OSError, ValueError, KeyError, AssertionError) as error:
        found = {"ok": False, "error": f"{type(error).__name__}: {error}"[:300]}
    found = {"check": name, **found, "took_s": round(time.perf_counter() - start, 2)}
    RESULTS.append(found)
    print(json.dumps(found), flush=True)  # noqa: T201


def about(ours: Worker) -> Answer:
    """What this ran on."""
    found = ours.ask(150, do="about")
    return {"ok": found["device"] != "cpu", **found, "python": platform.python_version(), "cpus": os.cpu_count()}


def main() -> int:
    """Run everything. Returns the exit status."""
    with tempfile.TemporaryDirectory() as folder:
        names = ("ours", "other", "plain", "plain_too")
        workers = ours, other, plain, plain_too = [Worker(Path(folder) / name, "plain" not in name) for name in names]
        try:
            check("about", about, ours)
            if RESULTS[0].get("device") == "cpu" and not SMOKE:
                print("no CUDA device here: nothing was checked")  # noqa: T201
                return 0
            check("idle_overhead_before_any_window", costs.idle_overhead, ours, other, plain, plain_too)
            check("same_kernels", seeing.same_kernels, ours, plain)
            check("steps", seeing.steps, ours)
            check("bounded_by_steps", seeing.bounded_by_steps, ours)
            check("host_beside", seeing.host_beside, ours, plain)
            check("alive_after_host", seeing.alive, ours, plain)
            check("reading", seeing.reading, ours)
            check("stalls", costs.stalls, ours, plain)
            check("alive_after_stalls", seeing.alive, ours, plain)
            check("window_overhead", costs.window_overhead, ours)
            check("alive_after_window_overhead", seeing.alive, ours, plain)
            check("idle_overhead_after_windows", costs.idle_overhead, ours, other, plain, plain_too)
            check("profiler_overhead", costs.profiler_overhead, plain)
            check("profiler_first", seeing.profiler_first, other)
            check("many_windows", seeing.many_windows, ours)
            check("alive_after_many", seeing.alive, ours, plain)
            check("profiler_after_windows", seeing.profiler_after, ours, plain)
            check("graphs", seeing.graphs, ours, plain)
            check("cases", dying.cases, Path(folder))
        finally:
            for worker in workers:
                worker.process.kill()
                worker.process.wait()
    print(f"\n{'check':34}{'ok':5}{'s':>7}")  # noqa: T201
    for found in RESULTS:
        print(f"{found['check']:34}{'yes' if found['ok'] else 'NO':5}{found['took_s']:7}")  # noqa: T201
    if OUT:
        (Path(OUT) / "results.json").write_text(json.dumps(RESULTS, indent=1))
    return 0 if all(found["ok"] for found in RESULTS) else 1


if __name__ == "__main__":
    sys.exit(main())
