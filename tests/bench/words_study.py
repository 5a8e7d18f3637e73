"""What explanations say: the plain templates beside the plain words of the grammar of claims, on lives of the training side.

    python tests/bench/words_study.py --lives FOLDER [--tier T] [--lives-at-most N] [--to DIR]

FOLDER holds packed lives. By method, the share of answers that say each thing that is wanted (see ``words.completeness``), their
length, and sentences that the answer does not bear out. DIR gets a file a method of texts by answer, for blind_choice.py.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from teller_core.data.report import WhyReport
from teller_core.data.said import unsupported
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose_all
from teller_core.lab.benchmark.pack import capture_of, lives
from teller_core.model.words.checking import checked
from teller_core.model.words.completeness import completeness, told
from teller_core.model.words.saying import said
from teller_core.tell.explain import explain

METHODS: Mapping[str, Callable[[WhyReport], str]] = {
    "templates": lambda report: report.explanation,
    "words": lambda report: said(report).text,
}


def row(name: str, reports: Sequence[WhyReport], texts: Sequence[str], took: float) -> str:
    """One line of the table."""
    found = [told(text, report) for text, report in zip(texts, reports, strict=True)]
    parts = ("request", "what", "where", "how_much", "how_sure", "next")
    shares = [np.mean([each[part] for each in found if part in each] or [np.nan]) for part in parts]
    whole = np.mean([completeness(text, report) for text, report in zip(texts, reports, strict=True)])
    words = np.median([len(text.split()) for text in texts])
    dropped = sum(sum(checked(text, report).dropped.values()) for text, report in zip(texts, reports, strict=True))
    loose = sum(len(unsupported(text, report)) for text, report in zip(texts, reports, strict=True))
    cells = [f"{share:.2f}" for share in (*shares, whole)]
    return f"| {name} | {' | '.join(cells)} | {words:.0f} | {dropped} | {loose} | {1e3 * took / len(texts):.1f} |"


def main() -> None:
    """Print the table of answers with a cause, and of the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=Path, required=True)
    parser.add_argument("--tier", type=int, default=4)
    parser.add_argument("--lives-at-most", type=int, default=2)
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    reports: dict[str, WhyReport] = {}
    for life in [each for each in lives(given.lives) if each.about["side"] == "train"][: given.lives_at_most]:
        capture = capture_of(life, given.tier)
        for report in diagnose_all(capture, assess(capture)):
            reports[f"{life.name} {report.request}"] = explain(report)
    for title, mine in (("with a cause", True), ("without", False)):
        kept = {key: report for key, report in reports.items() if bool(report.findings) == mine}
        print(f"\n{len(kept)} answers {title}\n")
        print("| | request | what | where | how much | how sure | next | all | words | not borne out | loose | ms |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for name, say in METHODS.items():
            begin = time.process_time()
            texts = [say(report) for report in kept.values()]
            print(row(name, list(kept.values()), texts, time.process_time() - begin))
            if given.to and mine:
                lines = [json.dumps({"key": key, "text": text}) for key, text in zip(kept, texts, strict=True)]
                (given.to / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
