"""One rank of a small tensor-parallel loop over Gloo, as a served program would run it: it knows nothing of any recorder.

Reads RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT and GLOO_SOCKET_IFNAME as torch does. STEPS: passes through the loop. SLOW_MS,
SLOW_FROM: how much longer this rank computes in every pass, from which pass on. HANG: before this pass it stands still. HALT_AT,
HALT: before this pass it makes this file and goes on once that is gone.
"""

import os
import time
from pathlib import Path

import torch
import torch.distributed as dist

LAYERS, WIDTH = 4, 256


def main() -> None:
    """Run all passes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    weight = torch.ones(WIDTH, WIDTH) / WIDTH
    slow, slow_from = float(os.environ.get("SLOW_MS", "0")) / 1e3, int(os.environ.get("SLOW_FROM", "0"))
    hang = int(os.environ.get("HANG", "-1"))
    halt_at, halt = int(os.environ.get("HALT_AT", "-1")), Path(os.environ.get("HALT", ""))
    dist.barrier()
    for step in range(int(os.environ["STEPS"])):
        if step == hang:
            time.sleep(600)
        if step == halt_at:
            halt.touch()
            while halt.exists():
                time.sleep(0.01)
        value = torch.ones(8, WIDTH)
        for _ in range(LAYERS):
            value = value @ weight
            _compute(slow / LAYERS if step >= slow_from else 0.0)
            dist.all_reduce(value)
            value /= dist.get_world_size()
        time.sleep(0.005)
    dist.barrier()
    dist.destroy_process_group()


def _compute(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


if __name__ == "__main__":
    main()
