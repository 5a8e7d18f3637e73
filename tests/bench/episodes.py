"""How often verdicts are right over recorded episodes: FOLDER holds one folder an episode, with bundle/ and truth.json.

    python tests/bench/episodes.py FOLDER [--below SEED] [--misses]

For every episode: struck requests whose first finding is the injected cause, other requests of which a cause is claimed, and
whether the slowest struck request (under no fault: the slowest of all) is judged rightly. Then the sums by fault.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from teller_core.data.report import WhyReport
from teller_core.ingest.reading import plan, read_group
from teller_core.judge.assess import assess
from teller_core.judge.diagnose import diagnose_all
from teller_core.rebuild.capture import rebuild
from teller_core.rebuild.nest import nest
from teller_core.tell.explain import explain, unsupported

WARM_UP = "warmup"


@dataclass(frozen=True)
class Score:
    """One episode. ``claimed``: unstruck requests of which a cause is claimed; ``right``: the slowest one is judged rightly."""

    name: str
    fault: str
    struck: int
    hit: int
    unstruck: int
    claimed: int
    right: bool
    unsupported: int
    misses: Sequence[str]


def answers(bundle: Path) -> list[WhyReport]:
    """The explained answer for every request of a bundle."""
    (group,) = plan([bundle], False)
    recording = read_group(group, lambda *_: None)
    trees = [nest(trace) for _, trace in recording.traces]
    ordered = [(file, tree.trace) for (file, _), tree in zip(recording.traces, trees, strict=True)]
    recording = replace(recording, traces=ordered)
    capture = rebuild(recording, trees, capture_id=bundle.parent.name, name=bundle.parent.name)
    return [explain(report) for report in diagnose_all(capture, assess(capture))]


def first(report: WhyReport) -> str:
    """The first cause, else the verdict."""
    return report.findings[0].cause if report.findings else report.verdict


def score(episode: Path) -> Score:
    """Judge one episode and compare with its truth, which is read last."""
    reports = [one for one in answers(episode / "bundle") if not (one.engine_id or "").startswith(WARM_UP)]
    truth: dict[str, Any] = json.loads((episode / "truth.json").read_text())
    struck = [one for one in reports if one.engine_id in truth["struck"]]
    unstruck = [one for one in reports if one.engine_id not in truth["struck"]]
    wrong = [one for one in struck if first(one) != truth["cause"]] + [one for one in unstruck if one.findings]
    slowest = max(struck or reports, key=lambda one: one.value_ms or 0.0)
    return Score(
        name=episode.name,
        fault=truth["fault"],
        struck=len(struck),
        hit=sum(first(one) == truth["cause"] for one in struck),
        unstruck=len(unstruck),
        claimed=sum(bool(one.findings) for one in unstruck),
        right=first(slowest) == truth["cause"] if struck else not slowest.findings,
        unsupported=sum(bool(unsupported(one)) for one in reports),
        misses=[
            f"{one.engine_id} {first(one)}, over its work {one.over_work}, its load {one.over_load}" for one in wrong
        ],
    )


def table(scores: Sequence[Score]) -> str:
    """Sums by fault, as a Markdown table."""
    lines = ["| fault | episodes | slowest right | struck named | unstruck claimed |", "|---|---|---|---|---|"]
    for fault in [*sorted({one.fault for one in scores}), "all"]:
        mine = [one for one in scores if fault in (one.fault, "all")]
        total = Counter[str]()
        for one in mine:
            total.update(
                struck=one.struck, hit=one.hit, unstruck=one.unstruck, claimed=one.claimed, right=int(one.right)
            )
        lines.append(
            f"| {fault} | {len(mine)} | {total['right']} | {_share(total['hit'], total['struck'])} "
            f"| {_share(total['claimed'], total['unstruck'])} |"
        )
    return "\n".join(lines)


def _share(part: int, whole: int) -> str:
    return f"{part} of {whole} ({part / whole:.1%})" if whole else "-"


def main() -> None:
    """Print the scores of the episodes in a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--below", type=int, default=1000, help="leave out seeds from here on: they are kept for the last test"
    )
    parser.add_argument("--misses", action="store_true", help="say which requests were judged wrongly")
    arguments = parser.parse_args()
    scores: list[Score] = []
    for truth in sorted(arguments.folder.glob("*/truth.json")):
        if json.loads(truth.read_text())["seed"] >= arguments.below:
            continue
        scores.append(score(truth.parent))
        one = scores[-1]
        print(
            f"{one.name}: {one.hit} of {one.struck} struck, {one.claimed} of {one.unstruck} claimed, slowest", end=" "
        )
        print("right" if one.right else "WRONG", f"({one.unsupported} unsupported)" if one.unsupported else "")
        if arguments.misses:
            print(*(f"    {miss}" for miss in one.misses), sep="\n")
    print(table(scores))


if __name__ == "__main__":
    main()
