"""What explanations say: the plain templates beside the plain words of the grammar of claims, and the words of a model.

    python tests/bench/words_study.py --lives FOLDER [--side SIDE] [--tier T] [--lives-at-most N] [--weights FILE] [--to DIR]

FOLDER holds packed lives. By method, the share of answers that say each thing that is wanted (see ``words.completeness``), their
length, and sentences that the answer does not bear out. DIR gets a file a method of texts by answer, for blind_choice.py.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from teller_core.data.report import WhyReport
from teller_core.data.said import unsupported
from teller_core.data.sheets import Sheets
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose_all
from teller_core.judge.prepare import Case, prepare
from teller_core.lab.benchmark.lives import SIDES
from teller_core.lab.benchmark.pack import capture_of, lives
from teller_core.model.judging import Model, load, spoken
from teller_core.model.words.checking import checked
from teller_core.model.words.completeness import completeness, told
from teller_core.model.words.saying import said
from teller_core.sheets import request_sheets
from teller_core.tell.explain import explain

Texts = Mapping[str, Callable[[WhyReport], str]]
PLAIN: Texts = {
    "templates": lambda report: report.explanation,
    "words": lambda report: said(report).text,
}


def spoken_by(model: Model, case: Case, sheets: Sheets) -> Callable[[WhyReport], str]:
    """What ``model`` says of the requests of ``sheets``, a sheet a request of ``case``, in its own words."""
    at = {int(position): row for row, position in enumerate(sheets.position)}
    return lambda report: (
        spoken(model, sheets, at[case.capture.requests.number.tolist().index(report.request)], report).text
    )


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
    parser.add_argument("--side", choices=SIDES, default="train")
    parser.add_argument("--tier", type=int, default=4)
    parser.add_argument("--lives-at-most", type=int, default=2)
    parser.add_argument("--weights", type=Path)
    parser.add_argument("--to", type=Path)
    given = parser.parse_args()
    model = load(given.weights) if given.weights else None
    reports: dict[str, WhyReport] = {}
    texts: dict[str, dict[str, str]] = {}
    took: Counter[tuple[str, bool]] = Counter()
    for life in [each for each in lives(given.lives) if each.about["side"] == given.side][: given.lives_at_most]:
        capture = capture_of(life, given.tier)
        case = prepare(capture, assess(capture))
        says = dict(PLAIN)
        if model is not None:
            says["model"] = spoken_by(model, case, request_sheets(case, np.arange(len(capture.requests.number))))
        for report in diagnose_all(capture, case.assessment):
            key = f"{life.name} {report.request}"
            reports[key] = explain(report)
            for name, say in says.items():
                begin = time.process_time()
                texts.setdefault(name, {})[key] = say(reports[key])
                took[name, bool(report.findings)] += time.process_time() - begin
    for title, mine in (("with a cause", True), ("without", False)):
        kept = {key: report for key, report in reports.items() if bool(report.findings) == mine}
        print(f"\n{len(kept)} answers {title}\n")
        print("| | request | what | where | how much | how sure | next | all | words | not borne out | loose | ms |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for name, all_texts in texts.items():
            own = [all_texts[key] for key in kept]
            print(row(name, list(kept.values()), own, took[name, mine]))
            if given.to and mine:
                lines = [json.dumps({"key": key, "text": text}) for key, text in zip(kept, own, strict=True)]
                (given.to / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
