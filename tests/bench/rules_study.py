"""What ours says of the lives that rules may be chosen on: those of the training side, each beside the others.

    python tests/bench/rules_study.py [--lives FOLDER] [--tier N] [--name LIFE]... [--said]

A line a life: of struck requests, how often the cause comes first and among three; of healthy requests and of hard negatives, how
often none is claimed. With ``--said`` also a line for each kind of mistake, the most frequent ones first: what struck, and what
was said of how many requests. The test side is not read: whoever looks there before choosing has nothing left to be judged on.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from teller_core.ingest.files.room import cores  # noqa: E402 - the checkout is put on the path first
from teller_core.lab.benchmark import episodes as cut  # noqa: E402
from teller_core.lab.benchmark.pack import Packed, capture_of, lives  # noqa: E402
from teller_core.lab.evaluation.episode import HEALTHY, NOT_JUDGED, TRAIN, Episode  # noqa: E402
from teller_core.lab.evaluation.loading import episode_of  # noqa: E402
from teller_core.lab.evaluation.method import Judged  # noqa: E402
from teller_core.lab.evaluation.methods import method  # noqa: E402
from teller_core.lab.side_by_side import side_by_side  # noqa: E402

CAUSE = "cause"
KINDS = ("struck", "first", "among three", "healthy", "not claimed", "hard negatives", "not claimed of these")
Mistake = tuple[str, str, str, str]


def counted(episode: Episode, told: Judged) -> tuple[Counter[str], Counter[Mistake]]:
    """How many requests of each of KINDS, and the mistakes: (fault, severity, what is true, what was said)."""
    many, wrong = Counter[str](), Counter[Mistake]()
    labels = episode.labels
    for at, truth in enumerate(labels.request):
        if truth == NOT_JUDGED:
            continue
        named = [claim.cause for claim in told.causes[at]] if told.verdict[at] == CAUSE else []
        said = ", ".join(named[:3]) or str(told.verdict[at])
        if truth == HEALTHY:
            kind, free = KINDS[5:] if labels.hard[at] else KINDS[3:5]
            many[kind] += 1
            many[free] += not named
            right = not named
        else:
            many["struck"] += 1
            many["first"] += named[:1] == [truth]
            many["among three"] += truth in named[:3]
            right = named[:1] == [truth]
        if not right:
            wrong[
                labels.fault, labels.severity, "hard negative" if labels.hard[at] else str(truth) or "healthy", said
            ] += 1
    return many, wrong


def judged(life: Packed, tier: int) -> tuple[Counter[str], Counter[Mistake]]:
    """The counts of all episodes of one life."""
    many, wrong, ours = Counter[str](), Counter[Mistake](), method("ours")
    capture = capture_of(life, tier)
    for each in cut.episodes(life, capture, tier):
        episode = episode_of(life, each)
        of_episode, mistakes = counted(episode, ours.judge(None, episode.seen))
        many.update(of_episode)
        wrong.update(mistakes)
    return many, wrong


def row(name: str, many: Counter[str]) -> str:
    """As a row of a table."""

    def share(part: str, whole: str) -> str:
        return f"{many[part] / many[whole]:.3f}" if many[whole] else "-"

    cells = [name, str(many["struck"]), share("first", "struck"), share("among three", "struck")]
    cells += [str(many["healthy"]), share("not claimed", "healthy"), str(many["hard negatives"])]
    return f"| {' | '.join([*cells, share('not claimed of these', 'hard negatives')])} |"


def table(found: Sequence[Packed], tier: int, said: bool) -> Iterator[str]:
    """The study's lines."""
    both = side_by_side([lambda life=life: judged(life, tier) for life in found], cores())
    yield f"| life | {' | '.join(KINDS)} |"
    yield "|" + "---|" * (len(KINDS) + 1)
    for life, (many, _) in zip(found, both, strict=True):
        about = {**life.about, **life.about["kind"]}
        yield row(f"{life.name} {about['engine']} {about['ranks']} {about['model']} {about['load']}", many)
    yield row("all", sum((many for many, _ in both), Counter[str]()))
    for life, (_, wrong) in zip(found, both, strict=True) if said else ():
        yield f"\n{life.name}"
        for (fault, severity, truth, answer), count in wrong.most_common():
            yield f"  {count:4} {fault} {severity}: {truth} -> {answer}"


def main() -> None:
    """Print the table. Raises SystemExit where no such life is there."""
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--lives", type=Path, default=ROOT / "tests" / "lab")
    asked.add_argument("--tier", type=int, default=4, choices=range(5))
    asked.add_argument("--name", action="append", default=[])
    asked.add_argument("--said", action="store_true", help="a line for each kind of mistake, too")
    given = asked.parse_args()
    found = [life for life in lives(given.lives) if life.about["side"] == TRAIN]
    found = [life for life in found if not given.name or life.name in given.name]
    if not found:
        raise SystemExit("No such life stands on the training side")
    for line in table(found, given.tier, given.said):
        print(line)


if __name__ == "__main__":
    main()
