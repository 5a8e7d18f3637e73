"""What reading a log costs: CPU time and peak memory, against a checkout from before where one is named.

    python tests/bench/log_bench.py --work DIR [--before CHECKOUT] [--lines 600000] [--rounds 3]

Each reading is a process of its own that has read a short log before the clock starts: imports and compiled expressions are
not counted. ``--before`` names a checkout whose reader is run in turn.
"""

import argparse
import os
import random
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
READ = """
import resource, sys, time
from pathlib import Path
from teller_core.ingest.logs.reader import read
from teller_core.ingest.found import Place
place = Place(near=1_795_961_987_000_000_000, salt=b"x")
read(Path(sys.argv[2]), place, None)
begun = time.process_time()
found = read(Path(sys.argv[1]), place, None)
took = time.process_time() - begun
print(found.events / took, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def lines(count: int, rng: random.Random, known: bool) -> "list[str]":
    """A busy vLLM's log: 55 % lines of a step, 10 % statistics, 15 % access lines, 10 % added; else prompts and unknown lines."""
    made: list[str] = []
    seconds = 0.0
    for step in range(count):
        seconds += rng.random() * 0.02
        whole = int(seconds)
        stamp = f"11-29 {8 + whole // 3600 % 12:02}:{whole // 60 % 60:02}:{whole % 60:02}"
        made.append(_line(rng.random() * (0.9 if known else 1), rng, step, stamp))
    return made


def _line(kind: float, rng: random.Random, step: int, stamp: str) -> str:
    front = f"(APIServer pid=29061) INFO {stamp} "
    request = f"cmpl-{rng.getrandbits(64):016x}-0"
    if kind < 0.55:
        return (
            f"{front}[loggers.py:199] Engine 000: Iteration({step}): {rng.randrange(3)} context requests, "
            f"{rng.randrange(4096)} context tokens, {rng.randrange(64)} generation requests, {rng.randrange(64)} generation "
            f"tokens, iteration elapsed time: {rng.random() * 30:.2f} ms, GPU KV cache usage: {rng.random() * 100:.1f}%"
        )
    if kind < 0.65:
        return (
            f"{front}[loggers.py:236] Engine 000: Avg prompt throughput: {rng.random() * 9000:.1f} tokens/s, Avg generation "
            f"throughput: {rng.random() * 900:.1f} tokens/s, Running: {rng.randrange(64)} reqs, "
            f"Waiting: {rng.randrange(9)} reqs, GPU KV cache usage: "
            f"{rng.random() * 100:.1f}%, Prefix cache hit rate: {rng.random() * 100:.1f}%"
        )
    if kind < 0.8:
        client = f"10.0.{rng.randrange(255)}.{rng.randrange(255)}:{rng.randrange(65535)}"
        return f'(APIServer pid=29061) INFO:     {client} - "POST /v1/completions HTTP/1.1" 200 OK'
    if kind < 0.9:
        return f"{front}[async_llm.py:578] Added request {request}-{rng.getrandbits(32):08x}."
    if kind < 0.95:
        return f"(EngineCore_DP0 pid=29430) DEBUG {stamp} [core.py:{rng.randrange(900)}] no rule knows {rng.getrandbits(40)}"
    return (
        f"{front}[request_logger.py:65] Received request {request}: prompt: 'tell me about {rng.getrandbits(100)} please', "
        f"params: SamplingParams(n=1, stop=['END'], max_tokens={rng.randrange(512)}), lora_request: None."
    )


def measured(checkout: Path, log: Path, short: Path) -> "tuple[float, float]":
    """Lines a CPU second and MB at most."""
    env = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", READ, str(log), str(short)]
    said = subprocess.run(command, env=env, capture_output=True, text=True, check=True, cwd=checkout).stdout.split()
    return float(said[0]), float(said[1])


def main() -> None:
    """Print one line a kind of log and checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--lines", type=int, default=600_000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    short = given.work / "short.log"
    short.write_text("\n".join(lines(300, random.Random(1), False)) + "\n")
    checkouts = {"now": ROOT, **({"before": given.before} if given.before else {})}
    for name, known in (("mixed", False), ("known lines only", True)):
        log = given.work / f"{name.replace(' ', '_')}.log"
        log.write_text("\n".join(lines(given.lines, random.Random(7), known)) + "\n")
        rounds = [{which: measured(root, log, short) for which, root in checkouts.items()} for _ in range(given.rounds)]
        for which in checkouts:
            speed, peak = ([one[which][k] for one in rounds] for k in (0, 1))
            size = log.stat().st_size / 1e6
            print(f"{name}, {size:.0f} MB, {which}: {statistics.median(speed):,.0f} lines a CPU s, {max(peak):,.0f} MB")


if __name__ == "__main__":
    main()
