"""The faults that need to be inside the service: a full heap that is collected, an operator that does more, a slow disk.

The plan (JSON) says which fault and how hard. It strikes while a file beside the plan, ``PLAN.window``, written later,
says: "FROM UNTIL" in Unix ns. Each injection is one line "START STOP" in ``PLAN.log``.
"""

import gc
import json
import os
import random
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import teller_shim_imports  # pyright: ignore[reportMissingImports]  # the recorder's folder is on the path there

window = [2**63 - 1, 0]
POLL_S = 0.02
BLOCK = 64 * 1024
BLOCKS = 64


def install(plan_file: str) -> None:
    """Make this process one with the planned fault. Every plan, also one without a fault, starts the same thread."""
    plan = json.loads(Path(plan_file).read_text())
    log = os.open(plan_file + ".log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(start: int) -> None:
        os.write(log, b"%d %d\n" % (start, time.time_ns()))

    fault = plan["fault"]
    if fault == "slow_operator":
        _on_import("transformers.models.llama.modeling_llama", partial(_slow_operator, plan, note))
    elif fault == "disk_stall":
        engine = "transformers.generation.continuous_batching.continuous_api"
        _on_import(engine, partial(_disk_stall, plan, note))
    elif fault == "gc_pause":
        _fill_heap(plan["objects"])
    work = (lambda: _collect(plan["period_s"], note)) if fault == "gc_pause" else _nothing
    threading.Thread(target=_strike, args=(Path(plan_file + ".window"), work), daemon=True).start()


def _on_import(module: str, hook: Any) -> None:
    teller_shim_imports.when_imported(module, hook)  # pyright: ignore[reportUnknownMemberType]


def _strike(file: Path, work: Any) -> None:
    while not file.exists():
        time.sleep(POLL_S)
    window[:] = map(int, file.read_text().split())
    time.sleep(max(0.0, (window[0] - time.time_ns()) / 1e9))
    work()


def _active() -> bool:
    return window[0] <= time.time_ns() < window[1]


def _nothing() -> None:
    pass


_heap: list[Any] = []


def _fill_heap(objects: int) -> None:
    """Objects that a full collection must visit. Frozen: until the fault strikes, collections do not see them."""
    gc.disable()
    _heap.extend([number, [number]] for number in range(objects))
    gc.enable()
    gc.freeze()


def _collect(period_s: float, note: Any) -> None:
    gc.unfreeze()
    while _active():
        start = time.time_ns()
        gc.collect()
        note(start)
        time.sleep(period_s * random.uniform(0.8, 1.2))
    gc.freeze()


def _slow_operator(plan: dict[str, Any], note: Any, module: Any) -> None:
    """One layer's ``up_proj`` becomes one much wider product of which only the first columns are used."""
    ordinary = module.LlamaMLP.forward
    layers: list[Any] = []
    wide: list[Any] = []

    def forward(self: Any, x: Any) -> Any:
        if self not in layers:
            layers.append(self)
            if len(layers) - 1 == plan["layer"]:
                wide.append(self.up_proj.weight.repeat(plan["factor"], 1))
        if not _active() or layers.index(self) != plan["layer"]:
            return ordinary(self, x)
        start = time.time_ns()
        up = sys.modules["torch"].nn.functional.linear(x, wide[0])[..., : self.intermediate_size]
        note(start)
        return self.down_proj(self.act_fn(self.gate_proj(x)) * up)

    module.LlamaMLP.forward = forward


def _disk_stall(plan: dict[str, Any], note: Any, module: Any) -> None:
    """Every step's tokens are written down and forced to the disk before they go out, and the disk takes its time."""
    ordinary = module.ContinuousBatchProcessor.update_batch
    file = os.open(plan["file"], os.O_WRONLY | os.O_CREAT)
    os.unlink(plan["file"])
    block = os.urandom(BLOCK)
    os.write(
        file, block * BLOCKS
    )  # writing over what is there waits for the disk alone, not for the file system's books
    os.fsync(file)

    def update_batch(self: Any) -> None:
        if _active():
            start = time.time_ns()
            for turn in range(plan["most_writes"]):
                os.pwrite(file, block, turn % BLOCKS * BLOCK)
                os.fsync(file)
                if time.time_ns() - start > plan["stall_ms"] * 1e6:
                    break
            note(start)
        ordinary(self)

    module.ContinuousBatchProcessor.update_batch = update_batch
