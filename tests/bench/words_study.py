"""What explanations say: the plain templates beside the plain words of the grammar of claims, and the words of a model.

    python tests/bench/words_study.py --lives FOLDER --to DIR [--side SIDE] [--tier T] [--lives-at-most N] [--of-each N]
                                      [--weights FILE]

FOLDER holds packed lives, of each of which N requests are taken, evenly over its time. With weights answers are those of numbers,
rules and the model. By method, the share of answers that say each thing that is wanted (see ``words.completeness``), their
length, and sentences that the answer does not bear out. DIR gets a file a life of what was said, which is not asked again, and a
file a method of texts by answer, for blind_choice.py.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from teller_core.data.report import WhyReport
from teller_core.data.said import unsupported
from teller_core.data.whole import keep_text
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import judge
from teller_core.judge.fusing import refined
from teller_core.judge.prepare import prepare
from teller_core.lab.benchmark.lives import SIDES
from teller_core.lab.benchmark.pack import Packed, capture_of, lives
from teller_core.model.judging import Model, load, opinions, spoken
from teller_core.model.words.checking import checked
from teller_core.model.words.completeness import completeness, told
from teller_core.model.words.saying import Said, said
from teller_core.sheets import request_sheets
from teller_core.tell.explain import explain

PLAIN: Mapping[str, Callable[[WhyReport], Said]] = {
    "templates": lambda report: Said(report.explanation, (), {}),
    "words": said,
}


class Answer(NamedTuple):
    """One answer in the words of each method; ``took`` CPU s; ``unsaid``: sentences of the model that it does not bear out."""

    key: str
    report: WhyReport
    texts: Mapping[str, str]
    took: Mapping[str, float]
    unsaid: Mapping[str, int]

    def written(self) -> str:
        """As a line of JSON."""
        return json.dumps({**self._asdict(), "report": self.report.model_dump()}) + "\n"


def read(line: str) -> Answer:
    """What was written."""
    found = json.loads(line)
    return Answer(**{**found, "report": WhyReport.model_validate(found["report"])})


def answers(life: Packed, tier: int, of_each: int, model: Model | None) -> Iterator[Answer]:
    """Answers to requests of ``life`` in the words of all."""
    capture = capture_of(life, tier)
    case, count = prepare(capture, assess(capture)), len(capture.requests.number)
    chosen = np.unique(np.linspace(0, count - 1, min(count, of_each)).astype(np.int64))
    sheets = request_sheets(case, chosen) if model else None
    opinion = opinions(model, sheets) if model and sheets else [None] * len(chosen)
    for row, (request, second) in enumerate(zip(chosen.tolist(), opinion, strict=True)):
        rules = judge(case, request)
        report = explain(rules if second is None else refined(case, request, rules, second))
        says = {**PLAIN, "model": partial(spoken, model, sheets, row)} if model and sheets else PLAIN
        texts: dict[str, str] = {}
        took: dict[str, float] = {}
        unsaid: Mapping[str, int] = {}
        for name, say in says.items():
            begin = time.process_time()
            found = say(report)
            took[name], texts[name], unsaid = time.process_time() - begin, found.text, found.dropped
        yield Answer(f"{life.name} {report.request}", report, texts, took, unsaid)


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


def tables(every: Sequence[Answer], to: Path) -> None:
    """Print the table of answers with a cause, and of the others; the texts of the former are written."""
    unsaid = sum((Counter(answer.unsaid) for answer in every), Counter[str]())
    print(f"Sentences of the model that its answer does not bear out, and that did not leave: {dict(unsaid)}")
    for title, mine in (("with a cause", True), ("without", False)):
        kept = [answer for answer in every if bool(answer.report.findings) == mine]
        print(f"\n{len(kept)} answers {title}\n")
        print("| | request | what | where | how much | how sure | next | all | words | not borne out | loose | ms |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for name in kept[0].texts if kept else ():
            texts = [answer.texts[name] for answer in kept]
            print(row(name, [answer.report for answer in kept], texts, sum(answer.took[name] for answer in kept)))
            if mine:
                lines = [json.dumps({"key": answer.key, "text": answer.texts[name]}) for answer in kept]
                (to / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    """Ask what was not asked yet, and print the tables of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--side", choices=SIDES, default="train")
    parser.add_argument("--tier", type=int, default=4)
    parser.add_argument("--lives-at-most", type=int, default=2)
    parser.add_argument("--of-each", type=int, default=60)
    parser.add_argument("--weights", type=Path)
    given = parser.parse_args()
    model = load(given.weights) if given.weights else None
    every: list[Answer] = []
    for life in [each for each in lives(given.lives) if each.about["side"] == given.side][: given.lives_at_most]:
        file = given.to / f"{life.name}.T{given.tier}.answers"
        if not file.exists():
            made = "".join(one.written() for one in answers(life, given.tier, given.of_each, model))
            keep_text(file, made)
        every += [read(line) for line in file.read_text("utf-8").splitlines()]
    tables(every, given.to)


if __name__ == "__main__":
    main()
