"""Run the demo for many seeds, without a head, and keep every episode: what episodes.py then scores.

    python tests/bench/run_episodes.py FOLDER --seeds 100 106

An episode that is there already is not run again, so an interrupted study goes on where it was. Run it on a machine that does
nothing else: a busy one strikes the service too, and nobody writes that truth down.
"""

import argparse
import subprocess
import sys
import time
from pathlib import Path


def run(seed: int, folder: Path) -> str:
    """Run one episode into ``folder``; its answer, as the demo printed it, stands in answer.json. Says how it went."""
    if (folder / "answer.json").exists():
        return "there already"
    if folder.exists():
        return "half there: remove its folder to run it again"
    began = time.monotonic()
    command = [sys.executable, "-m", "teller_core.cli", "demo", "--json", "--seed", str(seed), "--keep", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return f"failed: {done.stderr.strip()[-200:]}"
    (folder / "answer.json").write_text(done.stdout)
    return f"{time.monotonic() - began:.0f} s"


def main() -> None:
    """Run the episodes of a range of seeds, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs=2, required=True, metavar=("FIRST", "BEHIND_LAST"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(*given.seeds):
        print(f"seed {seed}: {run(seed, given.folder / f'seed-{seed}')}", flush=True)


if __name__ == "__main__":
    main()
