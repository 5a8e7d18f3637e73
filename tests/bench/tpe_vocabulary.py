"""Learns the vocabulary of Trace Pair Encoding that comes with the project.

    python tests/bench/tpe_vocabulary.py --captures DIR [--out FILE.tpe]

``--captures`` holds recordings of this project. Beside the file stands ``.txt``, which says what each symbol stands for.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from teller_core.context.tpe.default import FILE  # noqa: E402 - the checkout is put on the path first
from teller_core.context.tpe.train import learned  # noqa: E402
from tests.bench.tpe_study import steps_of  # noqa: E402

SYMBOLS = 1024


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captures", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=FILE)
    chosen = parser.parse_args()
    folders = [path for path in sorted(chosen.captures.iterdir()) if path.is_dir()]
    found = {folder.name: [step.tree for step in steps_of(folder)] for folder in folders}
    trees = [tree for steps in found.values() for tree in steps]
    names = ", ".join(name for name, steps in found.items() if steps)
    made = replace(learned(trees, SYMBOLS), origin=f"learned from {len(trees)} steps of recordings on CPUs: {names}")
    made.write(chosen.out)
    print(f"{len(made):,} symbols, {made.origin}; {made.hash}")


if __name__ == "__main__":
    main()
