"""Whether answers rest on what they cite: it is taken out of the capture, and the same request is asked about again.

    python tests/bench/cited_study.py --lives FOLDER --weights FILE --to DIR [--tier T] [--of-each N]

FOLDER holds packed lives. Of each episode of the test side at most N requests are taken whose answer by numbers, rules and the
model names a cause; then once without what that answer cites, and once without as many others of like size and duration. DIR gets
a file a life of what was answered: what stands there is not asked again. Prints the shares that became less sure by more than .1,
or abstain, with intervals by life.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from teller_core.data.report import WhyReport
from teller_core.data.whole import keep_text
from teller_core.judge.scene import scene
from teller_core.lab.benchmark import episodes as cut
from teller_core.lab.benchmark.pack import Packed, capture_of, lives
from teller_core.lab.evaluation.bootstrap import by_life, ratio
from teller_core.lab.evaluation.loading import episode_of, of_test
from teller_core.lab.evaluation.methods.fused import reports
from teller_core.lab.evaluation.seen import Seen
from teller_core.lab.faithfulness.cited import cited
from teller_core.lab.faithfulness.taking_out import others, without
from teller_core.model.judging import Model, load

LESS = 0.10
"""What a confidence falls by where it rested on what is gone."""
Row = Mapping[str, Any]


def rows_of(model: Model, life: Packed, tier: int, of_each: int) -> Iterator[Row]:
    """What is answered about some requests of each episode of ``life``, whole and without what is cited, or others."""
    for at, each in enumerate(cut.episodes(life, capture_of(life, tier), tier)):
        given = episode_of(life, each)
        told = [(request, report) for request, report in reports(model, given.seen) if report.verdict == "cause"]
        chosen = np.unique(np.linspace(0, len(told) - 1, min(of_each, len(told))).astype(np.int64)).tolist()
        for request, report in (told[place] for place in chosen):
            yield {"episode": at, **row(model, given.seen, request, report), "truth": given.labels.request[request]}


def row(model: Model, seen: Seen, request: int, report: WhyReport) -> Row:
    """One answer, and what becomes of it."""
    first, marks = report.findings[0], cited(seen.case, request, report)
    said: dict[str, Any] = {"request": request, "cause": first.cause, "sure": first.confidence}
    if marks is None:
        return said
    view = scene(seen.case, request, report.metric)
    matched = others(seen.case, marks, (view.low, view.high), request)
    for name, gone in (("cited", marks), ("others", matched)):
        again = Seen(without(seen.capture, gone), np.arange(len(seen.capture.requests.number)) == request)
        [(_, after)] = list(reports(model, again))
        said |= {name: _sure(after, first.cause), f"{name}_verdict": after.verdict}
        said |= {f"{name}_first": after.findings[0].cause if after.findings else ""}
        said |= {f"{name}_gone": {key: int(mask.sum()) for key, mask in gone.items()}}
    return said


def _sure(report: WhyReport, cause: str) -> float:
    """How sure an answer is of a cause: not at all where it does not name it."""
    return max((finding.confidence for finding in report.findings if finding.cause == cause), default=0.0)


def fell(row: Row, name: str) -> bool:
    """Whether an answer became less sure, or abstains."""
    return bool(row["sure"] - row[name] > LESS or row[f"{name}_verdict"] != "cause")


def share(rows: Sequence[Row], name: str) -> str:
    """Of ``rows`` that fell, in words."""
    life = np.unique([row["life"] for row in rows], return_inverse=True)[1].astype(np.int32)
    [found] = by_life(ratio(life, np.array([fell(row, name) for row in rows]), np.ones(len(rows))))
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def told(rows: Sequence[Row]) -> None:
    """Print the table."""
    known = [row for row in rows if "cited" in row]
    lives_seen, unknown = len({row["life"] for row in known}), len(rows) - len(known)
    print(
        f"{len(known)} answers with a cause, of {lives_seen} lives; of {unknown} more it is not known what they cite."
    )
    whole, found = (sum(sum(row[f"{name}_gone"].values()) for row in known) for name in ("cited", "others"))
    print(f"Others were found for {found / max(whole, 1):.1%} of what was taken out.\n")
    print("| cause named | answers | less sure, or abstains, without what is cited | without others |")
    print("|---|---|---|---|")
    print(f"| any | {len(known)} | {share(known, 'cited')} | {share(known, 'others')} |")
    for cause, many in sorted(Counter(row["cause"] for row in known).items()):
        mine = [row for row in known if row["cause"] == cause]
        cells = [f"{np.mean([fell(row, name) for row in mine]):.3f}" for name in ("cited", "others")]
        print(f"| {cause} | {many} | {' | '.join(cells)} |")


def main() -> None:
    """Ask what was not asked yet, and print the table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=Path, required=True)
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    parser.add_argument("--tier", type=int, default=4)
    parser.add_argument("--of-each", type=int, default=4)
    given = parser.parse_args()
    model = load(given.weights, threads=1)
    found: list[Row] = []
    for life in filter(of_test, lives(given.lives)):
        file = given.to / f"{life.name}.T{given.tier}.jsonl"
        if not file.exists():
            made = [json.dumps(one) + "\n" for one in rows_of(model, life, given.tier, given.of_each)]
            keep_text(file, "".join(made))
        found += [{"life": life.name, **json.loads(line)} for line in file.read_text("utf-8").splitlines()]
    told(found)


if __name__ == "__main__":
    main()
