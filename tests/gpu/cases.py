"""One case of what CUPTI may do to a program, in a process of its own: a crash is an answer too.

python tests/gpu/cases.py CASE        prints a JSON line
"""

import ctypes
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from teller_core.collect.cupti.windows import close_window, open_window
from teller_core.ingest.recorder.cupti_file import read_blocks

CAP = Path(os.environ["TELLER_CAPTURE_DIR"])
OURS: Any = ctypes.PyDLL(os.environ["CUDA_INJECTION64_PATH"])
TOLD: dict[str, Any] = {}
if len(sys.argv) > 2:
    ctypes.CDLL(sys.argv[2]).tell_of_crashes()


def tell(**said: Any) -> None:
    """Note it, and say it at once: the next thing may be the last."""
    TOLD.update(said)
    print("TOLD", json.dumps(said), file=sys.stderr, flush=True)  # noqa: T201


def until(condition: Any) -> None:
    """Wait for it, ten seconds at most."""
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.0005)


def window(work: Any, **how: Any) -> dict[str, Any]:
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
    footer = blocks.footer or {}
    counts |= {
        key: footer[key]
        for key in ("dropped", "starved", "foreign", "late", "unknown", "not_enabled")
        if footer.get(key)
    }
    return counts if footer.get("reason") == "asked" else {**counts, str(footer.get("reason")): 1}


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


def graphs(before: bool, whole: bool) -> None:
    """Replays of a graph that was made before the first window, or after it."""
    graph = None if before is False else make_graph()
    tell(eager=window(eager))
    graph = graph or make_graph()
    tell(replays=window(lambda: [graph.replay() for _ in range(10)], whole=whole))
    if whole:
        tell(nodes_after=window(lambda: [graph.replay() for _ in range(10)]))


def graphs_profiler() -> None:
    """The same under torch's profiler."""
    graph = make_graph()
    tell(eager=window(eager))
    tell(profiler=profiler(lambda: [graph.replay() for _ in range(10)]))


def repeated(count: int, load: bool) -> None:
    """Windows one after another, and whether kernels are still seen then, by us and by torch's profiler."""
    eager()
    done, blind = threading.Event(), 0

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
        path = max(CAP.glob("cupti-*.bin"), key=lambda path: int(path.stem.rpartition("-")[2]))
        blind = 0 if "kernel" in read_blocks(path).rows or not load else blind + 1
        path.unlink()
        if blind == 5 and "kernels_gone_at" not in TOLD:
            tell(kernels_gone_at=i)
    done.set()
    if load:
        thread.join()
    tell(window=window(eager))
    tell(profiler=profiler(eager))
    tell(refused=window(eager))
    tell(shared=window(eager, shared=True))
    tell(profiler_again=profiler(eager))


CASES = {
    "before_whole": lambda: graphs(True, True),
    "before_nodes": lambda: graphs(True, False),
    "after_whole": lambda: graphs(False, True),
    "after_nodes": lambda: graphs(False, False),
    "profiler_graph": graphs_profiler,
    "one_window": lambda: repeated(1, False),
    "many": lambda: repeated(400, False),
    "many_loaded": lambda: repeated(400, True),
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
