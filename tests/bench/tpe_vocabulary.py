"""Learns the vocabulary of Trace Pair Encoding that comes with the project.

    python tests/bench/tpe_vocabulary.py --captures DIR [--lives FOLDER] [--held-out TRACES] [--out FILE.tpe]

``--captures`` holds recordings of this project; of the lives of the benchmark in ``--lives``, packed or as they were recorded,
those of the training side are learned from. Beside the file stands ``.txt``, which says what each symbol stands for. With
``--held-out``, folders of Kineto traces, nothing is written: it is measured what the lives would add, beside the vocabulary that
is there, on steps that neither has learned from: of other producers (HELD_OUT of the study, without what is among the captures),
and of lives, a third of which is left out at a time.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from teller_core.context.tpe.default import FILE  # noqa: E402 - the checkout is put on the path first
from teller_core.context.tpe.train import learned  # noqa: E402
from teller_core.context.tpe.vocabulary import Vocabulary, load  # noqa: E402
from teller_core.data.tree import Tree  # noqa: E402
from teller_core.lab.benchmark.lives import table  # noqa: E402
from teller_core.lab.benchmark.pack import LIVES, capture_of, lives  # noqa: E402
from tests.bench.tpe_study import (  # noqa: E402
    ADDS,
    HELD_OUT,
    MOST_STEPS,
    SLOWER,
    Step,
    encoded,
    share_visible,
    slow_operators,
    steps_in,
    steps_of,
)

SYMBOLS = 1024
FOLDS, PER_LIFE = 3, 12
"""A life is measured on so many of its steps, when its third is left out."""
TIER = 4
"""Windows of a profiler are there alone."""


def folders(root: Path) -> list[Path]:
    """Of the producers in ``root``."""
    return [path for path in sorted(root.iterdir()) if path.is_dir()]


def of_lives(folder: Path) -> dict[str, list[Step]]:
    """The steps of each life of the training side."""
    if (folder / LIVES).is_dir():
        training = [life for life in lives(folder) if life.about["side"] == "train"]
        return {life.name: list(steps_in(life.name, capture_of(life, TIER))) for life in training}
    names = {plan.name for plan in table() if plan.side == "train"}
    recorded = [each for each in folders(folder) if each.name in names]
    return {
        each.name: [step for bundle in sorted(each.glob("bundle-*")) for step in steps_of(bundle)] for each in recorded
    }


def trees(found: Sequence[Sequence[Step]]) -> list[Tree]:
    """All of their steps."""
    return [step.tree for steps in found for step in steps]


def some(steps: Sequence[Step], most: int = MOST_STEPS) -> Sequence[Step]:
    """At most so many of one producer, else as many as the study takes."""
    return steps[:: -(-len(steps) // most) or 1]


def compared(captures: dict[str, list[Step]], by_life: dict[str, list[Step]], traces: Path) -> Iterator[str]:
    """A table: what is there and what would be, on what neither has learned from."""
    there, known = load(FILE), trees([*captures.values()])
    columns = [f"x{times} +{adds:.0%}" for adds in ADDS for times in SLOWER]
    yield f"| measured on | steps | vocabulary | tokens a step | fewer, % | opened, % | {' | '.join(columns)} |"
    yield "|" + "---|" * (6 + len(columns))
    wanted = [each for each in folders(traces) if each.name.startswith(HELD_OUT) and each.name not in captures]
    others = [step for folder in wanted for step in some(list(steps_of(folder)))]
    new = learned(known + trees([*by_life.values()]), SYMBOLS)
    yield from rows("other producers", others, {"there": [(there, others)], "with lives": [(new, others)]})
    names = sorted(by_life)
    folds = [names[number::FOLDS] for number in range(FOLDS)]
    tests = [[step for name in fold for step in some(by_life[name], PER_LIFE)] for fold in folds]
    made = [learned(known + trees([by_life[name] for name in names if name not in fold]), SYMBOLS) for fold in folds]
    all_tests = [step for test in tests for step in test]
    given = {"there": [(there, all_tests)], "with other lives": list(zip(made, tests, strict=True))}
    yield from rows("lives left out", all_tests, given)


def rows(
    what: str, test: Sequence[Step], given: dict[str, Sequence[tuple[Vocabulary, Sequence[Step]]]]
) -> Iterator[str]:
    """A row for each of the ``given``: vocabularies, and which steps each of them encodes."""
    events = sum(len(step.tree) for step in test)
    for name, parts in given.items():
        done = [encoded(vocabulary, steps, slow_operators(steps), True) for vocabulary, steps in parts]
        tokens, open_ = sum(each[0] for each in done), sum(each[1] for each in done)
        seen = [one for each in done for one in each[2]]
        cells = [f"{tokens / len(test):.1f}", f"{100 * (1 - tokens / events):.2f}", f"{100 * open_ / tokens:.2f}"]
        cells += [share_visible(seen, times, adds) for adds in ADDS for times in SLOWER]
        yield f"| {what} | {len(test)} | {name}: {len(parts[0][0]):,} symbols | {' | '.join(cells)} |"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=Path, required=True)
    parser.add_argument("--lives", type=Path)
    parser.add_argument("--held-out", type=Path)
    parser.add_argument("--out", type=Path, default=FILE)
    chosen = parser.parse_args()
    captures = {folder.name: found for folder in folders(chosen.captures) if (found := list(steps_of(folder)))}
    by_life = of_lives(chosen.lives) if chosen.lives else {}
    print(f"{sum(map(len, captures.values()))} steps of captures", end="")
    print("".join(f", {len(steps)} of life {name}" for name, steps in by_life.items()), flush=True)
    if chosen.held_out:
        for line in compared(captures, by_life, chosen.held_out):
            print(line, flush=True)
        return
    steps = trees([*captures.values(), *by_life.values()])
    whose = ", ".join(captures) + (f", and {len(by_life)} lives of the benchmark's training side" if by_life else "")
    origin = f"learned from {len(steps)} steps of recordings on CPUs: {whose}"
    made = replace(learned(steps, SYMBOLS), origin=origin)
    made.write(chosen.out)
    print(f"{len(made):,} symbols, {made.origin}; {made.hash}")


if __name__ == "__main__":
    main()
