"""Choose between two explanations of the same answer without knowing what wrote which.

    python tests/bench/blind_choice.py ONE.jsonl OTHER.jsonl --choices FILE [--seed N] [--many N]

ONE and OTHER hold a line a text: {"key": ..., "text": ...}, as words_study.py writes them. Answer 1, 2, = for neither, q to stop:
what was chosen stands in FILE and is not asked again. At the end: who was chosen how often, and how likely that is by chance.
"""

import argparse
import json
import textwrap
from collections.abc import Mapping
from pathlib import Path

from teller_core.model.words.blind import CHOICES, Pair, chosen, left, pairs, shown, tally


def texts(file: Path) -> Mapping[str, str]:
    """The texts of ``file`` by their key."""
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    return {line["key"]: line["text"] for line in lines}


def ask(pair: Pair, seed: int) -> str:
    """Show both and return what was answered."""
    print(f"\n{'-' * 100}")
    for number, method in enumerate(shown(pair, seed), 1):
        print(f"\n{number}  {textwrap.fill(pair.texts[method], 96, subsequent_indent='   ')}")
    while (answer := input("\n1, 2, = or q: ").strip()) not in (*CHOICES, "q"):
        pass
    return answer


def main() -> None:
    """Ask until all is chosen or somebody stops."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("one", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--choices", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--many", type=int, default=20)
    given = parser.parse_args()
    every = pairs((given.one.stem, texts(given.one)), (given.other.stem, texts(given.other)))
    for pair in left(every, given.choices)[: given.many]:
        answer = ask(pair, given.seed)
        if answer == "q":
            break
        chosen(given.choices, pair, given.seed, answer)
    found = tally(given.choices)
    print(f"\n{found.won}, neither {found.even}; by chance {found.chance:.3f}")


if __name__ == "__main__":
    main()
