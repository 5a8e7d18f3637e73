"""What the store costs: bytes an event, CPU to write, time to read a subtree, a slow list and an answer.

    python tests/bench/store_bench.py [--events 1000000]

The tree is made here: decode steps of a model of 36 layers with Python frames, operators, launches and kernels, their times
drawn anew at every step (log-normal, to the nanosecond), so that nothing compresses better than in a real trace.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.data.trace import NO_LINK, Lane, Layer, Origin, Trace
from teller_core.data.tree import ROOT, Tree
from teller_core.store.store import Store
from tests.core.store.made import answer_of, assessment_of, capture_of, report_of

OPERATORS = (
    "linear",
    "rms_norm",
    "rotary",
    "unified_attention",
    "silu_and_mul",
    "add",
    "view",
    "reshape",
    "empty",
    "copy_",
)
CATEGORIES = ("user_annotation", "python_function", "cpu_op", "cuda_runtime", "kernel")
LAYERS = (Layer.ENGINE, Layer.PYTHON, Layer.OPERATOR, Layer.RUNTIME, Layer.KERNEL)
HOST, DEVICE = 0, 1


def step_shape(layers: int) -> list[tuple[int, str, int, str]]:
    """(depth, name, category, argument) of the spans of one step, in pre-order."""
    rows = [(0, "execute_context_0(0)_generation_24(24)", 0, ""), (1, "model.py(310): forward", 1, "")]
    for layer in range(layers):
        rows.append((2, f"nn.Module: DecoderLayer_{layer}", 1, ""))
        for place, operator in enumerate(OPERATORS * 2):
            shape = f'{{"Input Dims": [[24, {2048 + 64 * place}], []], "Input type": ["c10::BFloat16", ""]}}'
            rows += [(3, f"layers/{operator}.py({40 + place}): forward", 1, ""), (4, f"aten::{operator}", 2, shape)]
            if operator not in ("view", "reshape", "empty"):
                grid = f'{{"grid": [{place + 1}, 24, 1], "block": [128, 1, 1], "stream": 7}}'
                rows += [(5, "cudaLaunchKernel", 3, ""), (6, f"void {operator}_kernel<bf16, {place}>(...)", 4, grid)]
    return rows


def made(events: int, seed: int = 7) -> Tree:
    """A tree of ``events`` spans."""
    random = np.random.default_rng(seed)
    shape = step_shape(36)
    size, steps = len(shape), -(-events // len(shape))
    depth = np.array([row[0] for row in shape])
    category = np.array([row[2] for row in shape], dtype=np.uint8)
    names, args = list(dict.fromkeys(row[1] for row in shape)), list(dict.fromkeys(row[3] for row in shape if row[3]))
    parent, stop, moments, opens, closes = clockwork(depth.tolist())
    gap = random.lognormal(7.0, 1.0, (steps, moments)).astype(np.int64) + 50
    clock = np.cumsum(gap, axis=1) + (np.arange(steps) * 60_000_000)[:, None] + 1_700_000_000_000_000_000
    start, dur = clock[:, opens], clock[:, closes] - clock[:, opens]
    kernel = category == 4
    start[:, kernel] += random.lognormal(11.0, 0.5, (steps, int(kernel.sum()))).astype(np.int64)
    dur[:, kernel] = random.lognormal(9.0, 1.2, (steps, int(kernel.sum()))).astype(np.int64)
    launched = np.where(category >= 3, np.cumsum(category == 3), 0)
    link = np.where(launched > 0, launched + (np.arange(steps) * (int(launched.max()) + 9))[:, None], NO_LINK)
    first = (np.arange(steps) * size)[:, None]

    def every(column: "np.ndarray[tuple[int], np.dtype[np.generic]]", dtype: type) -> "np.ndarray":
        return np.tile(column, steps)[:events].astype(dtype)

    trace = Trace(
        start=start.ravel()[:events],
        dur=dur.ravel()[:events],
        name=every(np.array([names.index(row[1]) for row in shape]), np.int32),
        lane=every(np.where(kernel, DEVICE, HOST), np.int32),
        category=every(category, np.uint8),
        layer=every(np.array(LAYERS)[category], np.uint8),
        link=link.ravel()[:events],
        arg=every(np.array([args.index(row[3]) if row[3] else -1 for row in shape]), np.int32),
        names=names,
        lanes=[Lane("1", "1", False), Lane("1", "stream 7", True)],
        categories=list(CATEGORIES),
        args=args,
        origin=Origin("kineto", "unix", rank=0),
        events_in_file=events,
    )
    up = np.where(parent == ROOT, ROOT, parent + first).ravel()[:events].astype(np.int32)
    return Tree(trace, up, np.minimum((stop + first).ravel()[:events], events).astype(np.int32))


def clockwork(depths: list[int]) -> tuple[np.ndarray, np.ndarray, int, np.ndarray, np.ndarray]:
    """Parent and stop of rows this deep, and at which of how many moments each opens and closes."""
    count = len(depths)
    parent, stop = np.full(count, ROOT), np.full(count, count)
    opens, closes = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    above: list[int] = []
    moment = 0
    for row, depth in enumerate([*depths, 0]):
        while len(above) > depth:
            done = above.pop()
            stop[done], closes[done], moment = row, moment, moment + 1
        if row < count:
            parent[row] = above[-1] if above else ROOT
            opens[row], moment = moment, moment + 1
            above.append(row)
    return parent, stop, moment, opens, closes


def timed(ask: Callable[[int], object], times: int) -> str:
    """p50 / p95 of ``ask(i)`` in ms: of the CPU, which others on the machine do not change much, and of the wall clock."""
    cpu: list[float] = []
    wall: list[float] = []
    for i in range(times):
        begin, now = time.process_time(), time.perf_counter()
        ask(i)
        cpu.append((time.process_time() - begin) * 1e3)
        wall.append((time.perf_counter() - now) * 1e3)
    middle, high = statistics.median, int(0.95 * times)
    return f"{middle(cpu):.2f} / {sorted(cpu)[high]:.2f} ms CPU, {middle(wall):.2f} / {sorted(wall)[high]:.2f} ms wall"


def peak_memory(work: Callable[[], object]) -> float:
    """The most MB that Python and numpy held at once for ``work()``."""
    tracemalloc.start()
    work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / 2**20


def cpu_of_process(code: str) -> float:
    """CPU seconds of a new process that runs ``code``, the least of seven."""

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    took: list[float] = []
    for _ in range(7):
        before = used()
        subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2])
        took.append(used() - before)
    return min(took)


def measure(path: Path, tree: Tree, requests: int = 1_000) -> None:
    """Save ``tree`` in a capture of 1,000 requests and ask for it back."""
    events = len(tree)
    values = np.random.default_rng(1).integers(10**8, 10**10, requests).tolist()
    bare, full = capture_of("00", requests=2), capture_of("0a1b", tree, requests=requests, steps=20)
    numbers = assessment_of(dict.fromkeys(("e2e", "ttft", "tpot", "itl_max"), values), ["aten::mm"] * 100)
    answers = [answer_of("0a1b", number) for number in range(1, requests + 1)]
    with Store.open(path) as store:
        store.save(bare, assessment_of({}), [], report_of(bare))  # so that loading sqlite-utils is not counted
    small = path.stat().st_size
    with Store.open(path) as store:
        begin, wall = time.process_time(), time.perf_counter()
        store.save(full, numbers, answers, report_of(full))
        cpu, wall = time.process_time() - begin, time.perf_counter() - wall
    with Store.open(path.with_name("again.db")) as store:
        memory = peak_memory(lambda: store.save(full, numbers, answers, report_of(full)))
    print(f"write {events} spans + {requests} requests: {cpu:.3f} s CPU, {wall:.3f} s, peak memory +{memory:.0f} MB")
    print(f"stored: {(path.stat().st_size - small) / events:.2f} bytes an event, the rest of the capture included")
    if events >= 3_000:
        places = np.random.default_rng(2).integers(0, events - 3_000, 200).tolist()
        print("3,000 spans, connection included:", timed(lambda i: rows(path, places[i], None), 200))
        few = ["start", "dur", "name"]
        print("  start, dur and name alone:", timed(lambda i: rows(path, places[i], few), 200))
    with Store.open(path, read_only=True) as store:
        print("the whole tree:", timed(lambda _: store.tree_rows("0a1b", 0), 3))
        print("slow list:", timed(lambda _: store.slow_rows("0a1b"), 50))
        print("an answer:", timed(lambda i: store.answer("0a1b", i + 1), 50))
        print("the small tables:", timed(lambda _: store.capture("0a1b"), 5))
    load = "import teller_core.data.report;"
    ask = "from pathlib import Path; from teller_core.store.store import Store;"
    ask += f"s = Store.open(Path({str(path)!r}), read_only=True); assert s.answer(s.resolve(), 1)"
    base, whole = cpu_of_process(load), cpu_of_process(load + ask)
    print(f"a new process reads one answer: {whole:.3f} s CPU, of which {base:.3f} s loads pydantic and the reports")


def rows(path: Path, low: int, columns: list[str] | None) -> Tree:
    """3,000 rows from a connection of their own."""
    with Store.open(path, read_only=True) as store:
        return store.tree_rows("0a1b", 0, low, low + 3_000, columns)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    given = parser.parse_args()
    tree = made(given.events)
    with TemporaryDirectory() as folder:
        measure(Path(folder) / "teller.db", tree)


if __name__ == "__main__":
    main()
