"""One case of what CUPTI may do to a program, in a process of its own: a crash is an answer too.

python tests/gpu/cases.py CASE        prints a JSON line
"""

import ctypes
import faulthandler
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
faulthandler.enable()

import torch  # noqa: E402

from teller_core.collect.cupti.windows import close_window, open_window  # noqa: E402
from teller_core.ingest.recorder.cupti_file import read_blocks  # noqa: E402

CAP = Path(os.environ["TELLER_CAPTURE_DIR"])
OURS: Any = ctypes.PyDLL(os.environ["CUDA_INJECTION64_PATH"])
TOLD: dict[str, Any] = {}


def until(condition: Any) -> None:
    """Wait for it, ten seconds at most."""
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.0005)


def window(work: Any, **how: Any) -> dict[str, int]:
    """Counts of the records of ``work``, by kind."""
    ended = OURS.teller_windows_ended()
    open_window(CAP, 30, **how)
    until(lambda: OURS.teller_recording() or OURS.teller_windows_ended() > ended)
    work()
    torch.cuda.synchronize()
    close_window(CAP)
    until(lambda: OURS.teller_windows_ended() > ended)
    newest = max(CAP.glob("cupti-*.bin"), key=lambda path: int(path.stem.rpartition("-")[2]))
    blocks = read_blocks(newest)
    counts = {name: len(rows) for name, rows in blocks.rows.items()}
    reason = (blocks.footer or {}).get("reason")
    return counts if reason == "asked" else {**counts, str(reason): 1}


def profiler(work: Any) -> int:
    """Kernels that torch's profiler saw of ``work``."""
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    ) as found:
        work()
        torch.cuda.synchronize()
    path = CAP / "trace.json"
    found.export_chrome_trace(str(path))
    return sum(event.get("cat") == "kernel" for event in json.loads(path.read_text())["traceEvents"])


def make_graph() -> Any:
    """A graph of eight kernels."""
    x = torch.zeros(256, 256, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            torch.relu(torch.mm(x, x))
    side.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(4):
            x = torch.relu(torch.mm(x, x))
    return graph


def eager() -> None:
    """Twenty kernels."""
    x = torch.ones(256, 256, device="cuda")
    for _ in range(10):
        torch.relu(torch.mm(x, x))


def graphs(before: bool, nodes: bool) -> None:
    """Replays of a graph that was made before the first window, or after it."""
    graph = None if before is False else make_graph()
    TOLD["eager"] = window(eager)
    graph = graph or make_graph()
    TOLD["replays"] = window(lambda: [graph.replay() for _ in range(10)], nodes=nodes)
    TOLD["other"] = window(lambda: [graph.replay() for _ in range(10)], nodes=not nodes)


def graphs_profiler() -> None:
    """The same under torch's profiler."""
    graph = make_graph()
    TOLD["eager"] = window(eager, nodes=True)
    TOLD["profiler"] = profiler(lambda: [graph.replay() for _ in range(10)])


def repeated(count: int, load: bool) -> None:
    """Windows one after another, and whether kernels are still seen then, by us and by torch's profiler."""
    eager()
    done = threading.Event()

    def work() -> None:
        while not done.is_set():
            eager()
            torch.cuda.synchronize()

    thread = threading.Thread(target=work)
    if load:
        thread.start()
    for i in range(count):
        ended = OURS.teller_windows_ended()
        open_window(CAP, 0.004)
        until(lambda: OURS.teller_windows_ended() > ended)  # noqa: B023
        if i and i % 50 == 0 and "kernels_gone_at" not in TOLD and load:
            newest = max(CAP.glob("cupti-*.bin"), key=lambda path: int(path.stem.rpartition("-")[2]))
            if "kernel" not in read_blocks(newest).rows:
                TOLD["kernels_gone_at"] = i
    done.set()
    if load:
        thread.join()
    TOLD["window"] = window(eager)
    TOLD["profiler"] = profiler(eager)
    TOLD["refused"] = window(eager)
    TOLD["shared"] = window(eager, shared=True)
    TOLD["profiler_again"] = profiler(eager)


CASES = {
    "before_whole": lambda: graphs(True, False),
    "before_nodes": lambda: graphs(True, True),
    "after_whole": lambda: graphs(False, False),
    "after_nodes": lambda: graphs(False, True),
    "profiler_graph": graphs_profiler,
    "one_window": lambda: repeated(1, False),
    "many": lambda: repeated(300, False),
    "many_loaded": lambda: repeated(300, True),
}

eager()
(CAP / "CUPTI").unlink(missing_ok=True)
try:
    CASES[sys.argv[1]]()
except Exception as error:  # noqa: BLE001  # told, with what came before it
    TOLD["error"] = f"{type(error).__name__}: {error}"[:200]
sys.stdout.write(json.dumps(TOLD) + "\n")
sys.stdout.flush()
os._exit(0)
