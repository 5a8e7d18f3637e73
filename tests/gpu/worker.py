"""A process with a model on a GPU, which does what it is asked, a JSON line each, and answers with a JSON line.

It is started under the injection library or without it: nothing in here depends on that but what it is asked.
"""

import ctypes
import faulthandler
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import torch

from teller_core.collect.cupti.windows import close_window, open_window

CPU = [torch.profiler.ProfilerActivity.CPU]
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
faulthandler.enable()
faulthandler.register(signal.SIGUSR1, all_threads=True)
LIBRARY = os.environ.get("CUDA_INJECTION64_PATH")
OURS: Any = ctypes.PyDLL(LIBRARY) if LIBRARY else None
if DEVICE == "cpu" and OURS is not None:  # nothing else would load it
    ctypes.CDLL(sys.argv[1])
    OURS.InitializeInjection()
CAP = Path(os.environ.get("TELLER_CAPTURE_DIR", "."))
(CAP / "CUPTI").unlink(missing_ok=True)  # what was asked of a worker that is gone
steps = {"number": 0, "marked": False, "times": []}


def make_model():
    """A small Llama with random weights, always the same ones."""
    transformers: Any = import_module("transformers")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=512 if DEVICE == "cuda" else 64,
        intermediate_size=1024,
        num_hidden_layers=8 if DEVICE == "cuda" else 1,
        num_attention_heads=8,
        num_key_value_heads=8,
        vocab_size=4096,
        max_position_embeddings=1024,
        attn_implementation="eager",
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = (
        transformers.LlamaForCausalLM(config).to(DEVICE, torch.bfloat16 if DEVICE == "cuda" else torch.float32).eval()
    )
    model.register_forward_pre_hook(before_step)
    model.register_forward_hook(after_step)
    return model


def before_step(module, args):
    """What a recorder does before a step: number it."""
    steps["times"].append(time.time_ns())
    if steps["marked"]:
        steps["number"] += 1
        if DEVICE == "cuda":
            torch.cuda.nvtx.range_push(f"step {steps['number']}")
        OURS.teller_step(ctypes.c_uint64(steps["number"]))


def after_step(module, args, output):
    """The end of what ``before_step`` began."""
    if steps["marked"]:
        OURS.teller_step_end()
        if DEVICE == "cuda":
            torch.cuda.nvtx.range_pop()


def make_graph():
    """A CUDA graph of some thirty kernels."""
    torch.manual_seed(0)
    layers = [
        torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256)) for _ in range(10)
    ]
    net = torch.nn.Sequential(*layers).to(DEVICE).eval()
    x = torch.zeros(16, 256, device=DEVICE)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.inference_mode():
        for _ in range(3):
            net(x)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.inference_mode(), torch.cuda.graph(graph):
        net(x)
    return graph, net, x


def synchronize():
    """Wait for the GPU."""
    if DEVICE == "cuda":
        torch.cuda.synchronize()


def generate(tokens):
    """``tokens`` tokens for four prompts: always the same work."""
    ids = torch.randint(2, 4000, (4, 64), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    with torch.inference_mode():
        MODEL.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, do_sample=False)
    synchronize()


def replay(times):
    """The graph, ``times`` times."""
    for _ in range(times):
        GRAPH[0].replay()
    synchronize()


def burn(seconds):
    """Generate for about ``seconds``."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        generate(8)


WORK = {"generate": generate, "replay": replay, "burn": burn}


def wait_until(condition, seconds=10.0):
    """Wait for ``condition``. Returns how long it took; raises TimeoutError."""
    start = time.monotonic()
    while not condition():
        if time.monotonic() - start > seconds:
            raise TimeoutError
        time.sleep(0.0005)
    return time.monotonic() - start


def timed(work, amount):
    """Wall and CPU seconds of the work."""
    wall, cpu = time.perf_counter(), time.process_time()
    WORK[work](amount)
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def in_window(ask):
    """The work in a window of our own: its times, the window's file, whether it was opened."""
    ended = OURS.teller_windows_ended()
    open_window(
        CAP,
        ask.get("seconds", 60),
        steps=ask.get("most_steps"),
        whole=ask.get("whole", False),
        shared=ask.get("shared", False),
    )
    wait_until(lambda: OURS.teller_recording() or OURS.teller_windows_ended() > ended)
    opened = bool(OURS.teller_recording())
    steps["marked"] = ask.get("marked", False)
    first = steps["number"] + 1
    begin = time.time_ns()
    with torch.profiler.profile(activities=CPU) if ask.get("host") else nullcontext() as profiler:
        found = timed(ask["work"], ask["amount"])
    end = time.time_ns()
    steps["marked"] = False
    operators = sum(event.count for event in profiler.key_averages()) if profiler is not None else 0
    close_window(CAP)
    closing = wait_until(lambda: OURS.teller_windows_ended() > ended)
    name = max(CAP.glob(f"cupti-{os.getpid()}-*.bin"), key=lambda path: int(path.stem.rpartition("-")[2])).name
    told = {"file": name, "opened": opened, "closing": closing, "operators": operators}
    return {**found, **told, "steps": [first, steps["number"]], "between": [begin, end]}


def profiled(ask):
    """The work under torch's profiler: counts of kernels by name, their time, and how long stopping and exporting took."""
    activities = [torch.profiler.ProfilerActivity.CPU]
    if DEVICE == "cuda":
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    profiler = torch.profiler.profile(activities=activities)
    profiler.start()
    found = timed(ask["work"], ask["amount"])
    start = time.perf_counter()
    profiler.stop()
    stopped = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        exported = time.perf_counter()
        events = json.loads(path.read_text())["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel"]
    counts = Counter(event["name"] for event in kernels)
    other = Counter(event.get("cat") for event in events)
    return {
        **found,
        "kernels": dict(counts),
        "kernel_ns": round(sum(event["dur"] for event in kernels) * 1000),
        "other": {key: other[key] for key in ("gpu_memcpy", "gpu_memset", "cuda_runtime", "cuda_driver") if other[key]},
        "stop": stopped - start,
        "export": exported - stopped,
        "events": len(events),
    }


def stall(ask):
    """Steps as fast as they go while a window opens and closes: when each began."""
    ended = OURS.teller_windows_ended()
    opener = threading.Timer(0.7, open_window, (CAP, ask["seconds"]))
    steps["times"].clear()
    opener.start()
    burn(ask["seconds"] + 1.6)
    wait_until(lambda: OURS.teller_windows_ended() > ended)
    name = max(CAP.glob(f"cupti-{os.getpid()}-*.bin"), key=lambda path: int(path.stem.rpartition("-")[2])).name
    return {"times": steps["times"][:], "file": name}


def many(ask):
    """Windows one after the other while the model works: how long each took, until ``most_seconds`` are over."""
    took, done = [], threading.Event()

    def windows():
        while len(took) < ask["windows"] and not done.is_set():
            start, ended = time.perf_counter(), OURS.teller_windows_ended()
            open_window(CAP, 0.004)
            wait_until(lambda: OURS.teller_windows_ended() > ended, 20)  # noqa: B023
            took.append(time.perf_counter() - start)
            for path in CAP.glob(f"cupti-{os.getpid()}-*.bin"):
                path.unlink()

    thread = threading.Thread(target=windows)
    thread.start()
    end, tokens = time.monotonic() + ask["most_seconds"], 0
    while thread.is_alive() and time.monotonic() < end:
        generate(8)
        tokens += 32
    done.set()
    thread.join()
    return {"took": took, "tokens": tokens}


def one_kernel(ask):
    """A single long kernel between two readings of the clock, in a window."""
    x = torch.randn(4096, 4096, device=DEVICE)
    torch.mm(x, x)
    synchronize()
    WORK["one"] = lambda amount: (torch.mm(x, x), synchronize())
    return in_window({"work": "one", "amount": 1})


DOES = {
    "time": lambda ask: timed(ask["work"], ask["amount"]),
    "window": in_window,
    "profile": profiled,
    "stall": stall,
    "many": many,
    "one_kernel": one_kernel,
    "about": lambda ask: {
        "pid": os.getpid(),
        "device": torch.cuda.get_device_name() if DEVICE == "cuda" else "cpu",
        "torch": torch.__version__,
        "injected": bool(LIBRARY),
    },
}

MODEL = make_model()
GRAPH: Any = make_graph() if DEVICE == "cuda" else None
for _ in range(6):
    generate(8)
for line in sys.stdin:
    question = json.loads(line)
    try:
        answer = DOES[question["do"]](question)
    except Exception as error:  # noqa: BLE001  # a check that fails is an answer, the next one goes on
        answer = {"error": f"{type(error).__name__}: {error}"[:500]}
    ANSWERS.write(json.dumps(answer) + "\n")
    ANSWERS.flush()
