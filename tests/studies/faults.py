"""Which injectors move a latency of a real engine, by how much, and whether the recording tells: one line an injector.

Run: python tests/studies/faults.py FOLDER [--vllm ENVIRONMENT/bin/vllm] [--seed N] [--severity WORD] [NAME...]. One server's
life, some 20 seconds an injector and a minute for the start; with the same words again it goes on where it ended. ``FOLDER``
keeps all.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from teller_core.lab import life
from teller_core.lab.blocks import HEALTHY, BlockTruth
from teller_core.lab.giveaways import in_recording
from teller_core.lab.injectors import SEVERITIES, injectors
from teller_core.lab.requests import REQUESTS
from tests.studies.engines import say

NEVER_HERE = ("device", "second_rank", "link", "small_cache")
"""Needs that a life of one rank on a CPU does not meet."""


def main() -> int:
    """Run the injectors that are asked for. Returns 1 where the recording tells what was done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--vllm", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--severity", choices=SEVERITIES, default="strong")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    engine = "vllm" if given.vllm else "transformers"
    names = given.names or [
        one.name for one in injectors().values() if engine in one.engines and not set(one.needs) & {*NEVER_HERE}
    ]
    wanted = [(name, given.severity) for name in names]
    setup = life.setup_for(engine, wanted)
    life.run_life(setup, given.seed, wanted, given.folder, say, vllm=given.vllm, requests=given.requests)
    say(f"{'injector':<24}{'judged by':<10}{'ratio':>7}{'interval':>15}{'window noise':>13}{'pressure':>10}  verdict")
    lines = [line for block in life.truths(given.folder) for line in _lines(block)]
    say("\n".join(sorted(lines)))
    told = [leak for bundle in sorted(given.folder.glob("bundle-*")) for leak in in_recording(bundle)]
    say("\n".join(told) if told else "No recording tells what was done.")
    return min(1, len(told))


def _lines(block: BlockTruth) -> list[str]:
    lines: list[str] = []
    for number, strike in enumerate(block.strikes):
        windows = [window for window in block.windows if window.strike in (HEALTHY, number)]
        pressed = sum(window.noise["machine_cpu_pressure_ns"] or 0 for window in windows)
        whole = sum(window.end - window.begin for window in windows)
        ratio = strike.moved.get(strike.judged_by)
        told = "" if ratio is None else f"{ratio.median:>7.2f}{f'{ratio.low:.2f} to {ratio.high:.2f}':>15}"
        lines.append(
            f"{strike.fault:<24}{strike.judged_by:<10}{told:<22}{strike.sigma:>13.2f}{pressed / whole:>10.2f}"
            f"  {strike.rejected or 'moved'}"
        )
    return lines


if __name__ == "__main__":
    sys.exit(main())
