"""What the sampler costs: twenty processes of twenty threads, of which none, three or all have threads that work.

Run: python tests/bench/sampler_bench.py. Prints processor time of the sampling thread as a share of one processor, and bytes
a second, for each. Ten seconds a row.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from teller_core.collect.sampler import INTERVAL_S, Sampler
from teller_core.collect.segments import Segments

PROCESSES = 20
SECONDS = 10.0
PROGRAM = """
import subprocess, sys, threading, time
def tick():
    while True: time.sleep(0.05)
def work():
    while True: sum(range(3000)); time.sleep(0.005)
for _ in range(16): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
for _ in range(3): threading.Thread(target=work if sys.argv[1] == "work" else tick, daemon=True).start()
children = [subprocess.Popen([sys.executable, "-c", sys.argv[3], kind, "", ""]) for kind in sys.argv[2].split()]
time.sleep(600)
"""


def measure(working: int) -> tuple[int, float, float]:
    """(processes, share of a processor, bytes a second) with so many ``working`` processes."""
    kinds = ["work"] * working + ["rest"] * (PROCESSES - working)
    command = [sys.executable, "-c", PROGRAM, kinds[0], " ".join(kinds[1:]), PROGRAM]
    service = subprocess.Popen(command, start_new_session=True)
    try:
        time.sleep(4.0)
        with tempfile.TemporaryDirectory() as folder:
            sampler = Sampler(service.pid, Segments(Path(folder), "samples", 64 << 20, 3600))
            for _ in range(12):  # until it knows who rests
                sampler.turn()
                time.sleep(INTERVAL_S)
            began, spent, size = time.monotonic(), time.thread_time(), _size(folder)
            while time.monotonic() < began + SECONDS:
                sampler.turn()
                time.sleep(INTERVAL_S)
            took = time.monotonic() - began
            share, written = (time.thread_time() - spent) / took, (_size(folder) - size) / took
            found = {line.split(b",")[1] for path in Path(folder).iterdir() for line in path.read_bytes().splitlines()}
            sampler.close()
        return len(found) - 1, share, written  # the machine counts as one
    finally:
        os.killpg(service.pid, signal.SIGKILL)
        service.wait()


def _size(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).iterdir())


if __name__ == "__main__":
    print("processes | of them working | share of one processor | bytes a second")
    for working in (0, 3, PROCESSES):
        processes, share, written = measure(working)
        print(f"{processes} | {working} | {share:.2%} | {written:,.0f}")
